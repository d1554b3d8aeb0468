"""[metrics]: where an engine publishes its counters, gauges and histograms, and their names there."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals since the engine started. `a + b` is a sum, `a{label="value"}` one label's part."""

    prompt_tokens: str = ""
    cached_prompt_tokens: str = ""
    host_cached_tokens: str = ""  # of the cached ones: from host memory, or wherever the KV cache spills to
    output_tokens: str = ""
    preemptions: str = ""
    image_queries: str = ""  # images that were looked up in a cache of encoded or prepared ones
    image_hits: str = ""
    draft_tokens: str = ""
    accepted_tokens: str = ""


@dataclass(frozen=True, slots=True)
class Gauges:
    """Current values. `a / b` is a quotient of two."""

    running: str = ""  # requests
    waiting: str = ""
    kv_use: str = ""  # 0 to 1
    cache_hit_rate: str = ""  # 0 to 1, over a window of the engine's choice


@dataclass(frozen=True, slots=True)
class Histograms:
    """Histograms of times; names without _bucket, _sum and _count."""

    ttft: str = ""
    itl: str = ""
    tpot: str = ""
    e2e: str = ""
    queue: str = ""
    transfer: str = ""  # of a request's KV cache, from the engine that read its prompt


@dataclass(frozen=True, slots=True)
class JsonMetrics:
    """A JSON route next to the Prometheus one; gauges are paths into the last element of its answer."""

    path: str
    gauges: Gauges = Gauges()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Prometheus series by the names that bench gives them; a series missing from every answer is null."""

    path: str
    counters: Counters = Counters()
    gauges: Gauges = Gauges()
    histograms: Histograms = Histograms()
    histogram_unit: Literal["s", "ms"] = "s"
    own_port: bool = False  # at {second_port} of an engine that bench starts, else at --metrics-url
    prompt_tokens_exclude_cached: bool = False
    json: JsonMetrics | None = None
    note: str = ""
