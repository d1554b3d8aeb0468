"""An engine's own counters and histograms, read before a load and after it."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from harness.engines.liveness import Question
from harness.engines.provide.logged import Reporter
from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.model import UNSET, HistogramIncrease, RoleFacts, UnsetType
from harness.records.series import Telemetry
from harness.run.measure.roles import by_role, together
from harness.run.measure.watch import COUNTERS
from harness.sampling.counter_deltas import (
    Falls,
    added,
    added_histograms,
    counted,
    histogram_increase,
    idle,
    settled,
)

T = TypeVar("T")
_LOOK_S = 0.2


class CountersOverLoad(NamedTuple):
    """Fields of CellFacts. Where engines have roles, each role has its own histograms."""

    server_counters: dict[str, float] | None
    roles: tuple[RoleFacts, ...] | UnsetType
    counter_restarts: int
    counter_falls_s: Falls
    server_histograms: dict[str, HistogramIncrease]


class EngineCounters:
    """Counters of every part of an engine. The first reading is taken here, once it holds no request.

    `say`: takes a line for each wait of several seconds.
    """

    def __init__(self, engine: EngineSession, say: Callable[[str], None]) -> None:
        self._roles, self._sources, self._say = engine.roles, engine.counter_sources, say
        self._reads = [partial(_shown, source.counters) for source in self._sources]
        waits = [partial(idle, read) for read in self._reads]
        self._before = _answers(waits, say, "waiting until the engine holds no request")
        self._shapes_before = [_shown(source.histograms) for source in self._sources]

    def read_again(self) -> None:
        """The second reading: right after the load, once the last tokens are counted."""
        self._ended_ns = time.monotonic_ns()
        waits = [partial(settled, read, COUNTERS) for read in self._reads]
        self._after = _answers(waits, self._say, "reading the engine's counters")
        self._shapes_after = [
            None if counts is None else _shown(source.histograms)
            for source, counts in zip(self._sources, self._after, strict=True)
        ]
        self._read_ns = time.monotonic_ns()

    @property
    def fell_silent(self) -> bool:
        """Whether any part answered before the load, and no longer after it."""
        ends = zip(self._before, self._after, strict=True)
        return any(first is not None and last is None for first, last in ends)

    def over_load(self, telemetry: Telemetry, t0_ns: int) -> CountersOverLoad:
        """`telemetry`: of the whole window; `t0_ns`: its start on the monotonic clock."""
        during = telemetry.between(0, self._ended_ns - t0_ns)
        after_s = (self._read_ns - t0_ns) / 1e9
        several = len(self._sources) > 1
        counts = [
            counted(*ends, after_s, during, COUNTERS, f"engine.{index}" if several else "engine")
            for index, ends in enumerate(zip(self._before, self._after, strict=True))
        ]
        shapes = list(map(histogram_increase, self._shapes_before, self._shapes_after))
        roles = by_role(self._roles, [source.base_url for source in self._sources], counts, shapes)
        counters, falls = added(counts)
        return CountersOverLoad(
            server_counters=together(roles) if roles else counters,
            roles=roles or UNSET,
            counter_restarts=len(falls),
            counter_falls_s=falls,
            server_histograms={} if roles else added_histograms(shapes),
        )


def _answers(calls: Sequence[Callable[[], T]], say: Callable[[str], None], label: str) -> list[T]:
    """What they return, asked at the same time: a server that hangs takes 20 seconds to be given up."""
    reporter = Reporter(say, label, str)
    questions = [Question(call) for call in calls]
    for question in questions:
        while question.waits(_LOOK_S):
            reporter.tick()
    return [question.answer() for question in questions]


def _shown(metrics: Callable[[], T | None]) -> T | None:
    """None if the engine has no such metrics or does not answer: a cell is not lost for lack of them."""
    try:
        return metrics()
    except SetupError:
        return None
