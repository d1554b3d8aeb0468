"""Counters, gauges and histograms of the imagined engine, under the names of a dialect."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from harness.mockserver.dialect import Dialect, Quantity, Series
from harness.mockserver.engine import Engine
from harness.mockserver.ledger import Record

SECONDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0
)  # fmt: skip
TOKENS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0)
NS = 1e9


class Histogram:
    def __init__(self, bounds: Sequence[float], scale: float = 1.0) -> None:
        self._bounds, self._scale = bounds, scale
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        inner = f"{labels}," if labels else ""
        total = 0
        bounds = (str(bound * self._scale) for bound in self._bounds)
        for bound, count in zip((*bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{{inner}le="{bound}"}} {total}'
        outer = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{outer} {self._sum * self._scale}"
        yield f"{name}_count{outer} {total}"


def _histogram(series: Series) -> Histogram:
    if series.quantity.endswith("lengths"):
        return Histogram(TOKENS)
    return Histogram(SECONDS, scale=1e3 if series.name.endswith("_milliseconds") else 1.0)


class Meter:
    """Times are of requests that ended, taken from the ledger's records when someone asks, never before."""

    def __init__(self, engine: Engine, dialect: Dialect, model: str) -> None:
        self._engine = engine
        self._labels = dialect.labels.replace("{model}", model)
        # A connector between engines tells of transfers where there is one.
        self._series = [
            series for series in dialect.series if series.quantity != "transfer" or engine.options.transfer_ms
        ]
        self._histograms = {
            series.name: _histogram(series) for series in self._series if series.kind == "histogram"
        }
        self._iterations = 0

    def prometheus(self) -> str:
        ended = self._engine.take_ended()
        for series in self._series:
            if series.kind == "histogram":
                for record in ended:
                    for value in _OBSERVED[series.quantity](record):
                        self._histograms[series.name].add(value)
        lines = (line for series in self._series for line in self._lines(series))
        return "".join(f"{line}\n" for line in dict.fromkeys(lines))  # the type of a split one once

    def json(self) -> list[dict[str, object]]:
        """TensorRT-LLM's iteration statistics, of one iteration."""
        self._iterations += 1
        return [
            {
                "iter": self._iterations,
                "numActiveRequests": _VALUES["running"](self._engine),
                "numQueuedRequests": _VALUES["waiting"](self._engine),
                "kvCacheStats": {"cacheHitRate": _VALUES["hit_rate"](self._engine)},
            }
        ]

    def _lines(self, series: Series) -> Iterator[str]:
        yield f"# TYPE {series.name} {series.kind}"
        if series.kind == "histogram":
            yield from self._histograms[series.name].lines(series.name, self._labels)
        else:
            labels = ",".join(filter(None, (self._labels, series.label)))
            yield f"{series.name}{f'{{{labels}}}' if labels else ''} {_VALUES[series.quantity](self._engine)}"


_VALUES: dict[Quantity, Callable[[Engine], float]] = {
    "running": lambda engine: len(engine.running),
    "waiting": lambda engine: len(engine.waiting),
    "kv_use": lambda engine: engine.cache.used_share,
    "hit_rate": lambda engine: engine.cached_tokens / max(engine.prompt_tokens, 1),
    "prompt": lambda engine: engine.prompt_tokens,
    "uncached": lambda engine: engine.prompt_tokens - engine.cached_tokens,
    "cached": lambda engine: engine.cached_tokens,
    "device_cached": lambda engine: engine.cached_tokens - engine.host_cached_tokens,
    "host_cached": lambda engine: engine.host_cached_tokens,
    "image_queries": lambda engine: engine.image_cache.queries,
    "image_hits": lambda engine: engine.image_cache.hits,
    "generated": lambda engine: engine.generated_tokens,
    "finished": lambda engine: engine.finished,
    "zero": lambda _: 0,
    "whole": lambda _: 1,
}


def _itl(record: Record) -> list[float]:
    return [(later - earlier) / NS for earlier, later in pairwise(record.write_ns)]


def _tpot(record: Record) -> list[float]:
    if record.tokens < 2 or len(record.write_ns) < 2:
        return []
    return [(record.write_ns[-1] - record.write_ns[0]) / (record.tokens - 1) / NS]


_OBSERVED: dict[Quantity, Callable[[Record], list[float]]] = {
    "ttft": lambda record: [(record.write_ns[0] - record.received_ns) / NS],
    "itl": _itl,
    "tpot": _tpot,
    "e2e": lambda record: [(record.write_ns[-1] - record.received_ns) / NS],
    "queue": lambda record: [(record.admitted_ns - record.received_ns) / NS],
    "transfer": lambda record: [record.transfer_ns / NS],
    "input_lengths": lambda record: [float(record.prompt_tokens)],
    "output_lengths": lambda record: [float(record.tokens)],
    "zero": lambda _: [],
}
