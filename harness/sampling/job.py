"""The task of the sampler and its report: plain, picklable data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.host.access import Access

# At this rate GPUs are read; everything that costs more or changes less is read at a fixed part of it.
DEFAULT_HZ = 10.0
LEAST_HZ, MOST_HZ = 0.01, 100.0


@dataclass(frozen=True, slots=True)
class Exporter:
    """An engine's metrics: our names to its series."""

    url: str
    access: Access
    counters: Mapping[str, str] = field(default_factory=dict)
    gauges: Mapping[str, str] = field(default_factory=dict)
    prompt_tokens_exclude_cached: bool = False
    json_url: str = ""  # of a JSON answer that has the gauges which the Prometheus one lacks
    json_gauges: Mapping[str, str] = field(default_factory=dict)  # our names → dotted paths


@dataclass(frozen=True, slots=True)
class Watch:
    """`engine_pid` None: look for the process that listens on `engine_ports` of this machine, if there are
    any."""

    bench_pid: int
    folder: Path = Path()  # where samples are spilled; must exist
    hz: float = DEFAULT_HZ
    exporters: tuple[Exporter, ...] = ()
    engine_pid: int | None = None
    engine_ports: tuple[int, ...] = ()
    engine_env: Mapping[str, str] = field(default_factory=dict)  # which GPUs it was given
    apart: bool = False  # exporters are of engines with other roles: nothing of them adds up
    partner_pids: tuple[int, ...] = ()  # other engines below bench: no part of its load
    partner_ports: tuple[int, ...] = ()  # of other engines on this machine that were there before bench
    duet: bool = False  # partners are loaded at the same moments, so what they use is expected
    engine_here: bool = True  # False: what this machine's GPUs and CPUs draw is not the engine's


@dataclass(slots=True)
class SourceFacts:
    """`missing` has the reason for each series that could not be read."""

    period_s: float = 0.0
    reads: int = 0
    failures: int = 0
    last_failure: str = ""
    failing_since_ns: int | None = None  # CLOCK_MONOTONIC; None: the last read worked, or none was tried
    longest_read_ms: float = 0.0
    cpu_s: float = 0.0  # of all reads
    unavailable: str = ""  # why there is nothing from this source at all
    missing: dict[str, str] = field(default_factory=dict)
    about: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    sources: Mapping[str, SourceFacts]
    cpu_s: float  # of the sampler, between its first and its last sample
    wall_s: float
    peak_rss_bytes: int
    stalls: tuple[tuple[int, int], ...]  # when on CLOCK_MONOTONIC, how long at least, ns: it stood still
