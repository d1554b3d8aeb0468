"""[load]: how many requests, how fast."""

import math
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

from harness.errors import SpecError
from harness.model.choices import Arrival
from harness.model.numbers import as_given
from harness.spec.scenario.limits import (
    LONGEST_S,
    MOST,
    Count,
    Duration,
    Seconds,
    at_least,
    at_most,
    not_negative,
    positive,
)

_LOWEST, _HIGHEST = 0.001, 1_000_000  # of a load point: a request in 17 minutes, a million at a time
_MOST_BURSTY = 0.01  # below it gaps are so often 0, as far as numbers go, that they have no rate
_MOST_ABANDONED = 0.9
_SHORTEST_S = 0.001  # of a segment, which may be repeated until every request is sent
AtLeastOne = Annotated[int, at_least(1, math.inf)]
Burstiness = Annotated[float, at_least(_MOST_BURSTY, math.inf)]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the rate profile; the factors are of the load point's rate, linear in between."""

    seconds: float  # of the stretch
    start: float  # factor at its begin
    end: float  # factor at its end

    @property
    def gain(self) -> float:
        """Seconds at the load point's rate in which as many requests are due."""
        return self.seconds * (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class Load:
    """One load point per value of `concurrency` (closed loop), `rate` or `replay_speed` (open loop).

    Exactly one of the three is set. With `working_set` its values are the load points, each with the one
    `concurrency` that is given.
    """

    requests: Count  # measured requests per load point
    concurrency: tuple[int, ...] = ()  # closed loop: requests kept in flight
    rate: tuple[float, ...] = ()  # open loop: requests per second
    replay_speed: tuple[float, ...] = ()  # of a trace with its own times: 1 as recorded, 2 twice as fast
    # Times the KV cache: so many tokens are asked for between two uses of one prefix. 0: none is used twice.
    working_set: tuple[float, ...] = ()
    kv_tokens: AtLeastOne | None = None  # what that cache holds; None: as the first engine reports it
    rest_s: Seconds = 0.0  # with one request in flight: nothing is sent between warm-up and measured part
    arrival: Arrival = "poisson"  # of a rate
    burstiness: Burstiness = 1.0  # of gamma arrivals: 1 is Poisson, below it more bursty, above more regular
    profile: tuple[Segment, ...] = ()  # of the rate over time: stretches, factors of it; empty: flat
    repeat_profile: bool = False  # start over at its end; else its last rate goes on
    think_time_s: Seconds = 0.0  # closed loop: mean wait before a slot sends again
    think_time: Literal["exponential", "constant"] = "exponential"  # how these waits are spread
    abandon_share: float = 0.0  # of the requests, drawn: their users hang up, and no latency is of them
    abandon_after_s: float = 0.0  # from the send until these users do
    # Closed loop: slots begin one after another, over the time of one answer, or all at once. Spread takes a
    # first wave of warm-up requests; "together" declares that bursts are what is to be measured.
    start: Literal["spread", "together"] = "spread"
    warmup_requests: int = 0  # sent first, recorded, excluded from every statistic
    duration_s: Duration | None = None  # of the measured part: then no more is sent, even if some are left
    min_seconds: Annotated[float, not_negative] = 10.0  # of a cell; a shorter one is SUSPECT
    min_answers: AtLeastOne = 100  # of a cell; with fewer it is SUSPECT
    min_coverage: float = 0.0  # share of duration_s that first tokens and further ones reach; else INVALID
    max_in_flight: AtLeastOne = 4096  # of an open loop
    over_cap: Literal["wait", "drop"] = "wait"  # what a request does that is due above that cap


_DEFAULTS = {field.name: field.default for field in fields(Load)}
# Keys that decide which others are read.
_DECIDING = (
    "concurrency",
    "rate",
    "replay_speed",
    "arrival",
    "profile",
    "working_set",
    "think_time_s",
    "abandon_share",
)


def without_unread(load: Load, where: str, given: Collection[str]) -> Load:
    """The load without keys of the file that no such load reads, where `given` on the command line chose it.

    Raises SpecError for others that are not read: they would be kept with the run as if they had an effect.
    """
    read = {
        "arrival": (bool(load.rate), "a rate"),
        "burstiness": (bool(load.rate) and load.arrival == "gamma", 'a rate with arrival = "gamma"'),
        "repeat_profile": (bool(load.profile), "a profile"),
        "max_in_flight": (not load.concurrency, "an open loop"),
        "over_cap": (not load.concurrency, "an open loop"),
        "kv_tokens": (bool(load.working_set), "working_set"),
        "start": (bool(load.concurrency), "a closed loop"),
        "abandon_after_s": (load.abandon_share > 0, "abandon_share"),
        "think_time": (load.think_time_s > 0, "think_time_s"),
    }
    by_flag = {key for key in _DEFAULTS if f"load.{key}" in given}
    unread = {
        key: what
        for key, (is_read, what) in read.items()
        if not is_read and (key in by_flag or getattr(load, key) != _DEFAULTS[key])
    }
    for key, what in unread.items():
        if key in by_flag or by_flag.isdisjoint(_DECIDING):
            raise SpecError(f"only applies to {what}", where=f"{where}.{key}", hint="leave it out")
    return replace(load, **{key: _DEFAULTS[key] for key in unread})  # type: ignore[arg-type]  # of its fields


def for_duration(load: Load, where: str, given: Collection[str]) -> Load:
    """The load with as many requests as a rate sends in the time that is `given` without a number of them.

    How many a closed loop sends is the server's doing. Raises SpecError for more than a schedule can have.
    """
    by_time = "load.duration_s" in given and "load.requests" not in given
    if not load.rate or load.duration_s is None or not by_time:
        return load
    highest = max((max(part.start, part.end) for part in load.profile), default=1)
    sent = math.ceil(max(load.rate) * highest * load.duration_s)
    if sent > MOST:
        raise SpecError(
            f"a rate of {max(load.rate) * highest:g} sends more than {MOST:,} requests in that time",
            where=f"{where}.duration_s",
            hint="lower the rate or the time",
        )
    return replace(load, requests=max(load.requests, sent))


def check_load(load: Load, where: str, *, sessions: bool) -> None:
    points = {key: getattr(load, key) for key in ("concurrency", "rate", "replay_speed")}
    if sum(map(bool, points.values())) != 1:
        raise SpecError(
            "exactly one of concurrency (closed loop), rate and replay_speed (open loop) must be given",
            where=where,
        )
    for key, values in {**points, "working_set": load.working_set}.items():
        for value in values:
            if (key, value) != ("working_set", 0):
                positive(value, f"{where}.{key}", _HIGHEST)
            if key in ("rate", "replay_speed") and value < _LOWEST:
                raise SpecError(f"must be at least {_LOWEST:g}, not {value:g}", where=f"{where}.{key}")
        if len(set(map(as_given, values))) != len(values):
            raise SpecError(
                "duplicate value; use --repeats to measure a load point again", where=f"{where}.{key}"
            )
    at_most(load.warmup_requests, f"{where}.warmup_requests", MOST)
    if load.warmup_requests < 0:
        raise SpecError("must not be negative", where=f"{where}.warmup_requests")
    if load.think_time_s and not load.concurrency and not sessions:
        raise SpecError("an open loop has think time only between turns", where=f"{where}.think_time_s")
    _check_abandonment(load, where, sessions=sessions)
    _check_profile(load, f"{where}.profile")
    _check_working_set(load, where)
    _check_rest(load, where, sessions=sessions)
    if load.min_coverage and not (0 < load.min_coverage <= 1 and load.duration_s):
        raise SpecError(
            f"must be from 0 to 1, and is of duration_s, not {load.min_coverage:g}",
            where=f"{where}.min_coverage",
        )


def _check_abandonment(load: Load, where: str, *, sessions: bool) -> None:
    if not 0 <= load.abandon_share <= _MOST_ABANDONED:
        raise SpecError(
            f"must be from 0 to {_MOST_ABANDONED:g}, not {load.abandon_share:g}",
            where=f"{where}.abandon_share",
            hint="who stays is measured",
        )
    if load.abandon_share and sessions:
        raise SpecError("is of prompts with one turn", where=f"{where}.abandon_share", hint="leave it out")
    if load.abandon_share and not load.abandon_after_s:
        raise SpecError(
            "needs abandon_after_s",
            where=f"{where}.abandon_share",
            hint="--set load.abandon_after_s=2: these users hang up 2 s after the send",
        )
    if load.abandon_share:
        positive(load.abandon_after_s, f"{where}.abandon_after_s", LONGEST_S)


def _check_working_set(load: Load, where: str) -> None:
    if load.working_set and len(load.concurrency) != 1:
        key = "concurrency" if load.concurrency else "rate" if load.rate else "replay_speed"
        raise SpecError(
            "a working set needs one value of concurrency, and no other load",
            where=f"{where}.{key}",
            hint="concurrency = [1] asks one prompt after the other, so that their order is known",
        )


def _check_rest(load: Load, where: str, *, sessions: bool) -> None:
    if load.rest_s and (load.concurrency != (1,) or not load.warmup_requests):
        raise SpecError("needs concurrency = [1] and warmup_requests", where=f"{where}.rest_s")
    if load.rest_s and sessions:
        raise SpecError("is of prompts with one turn", where=f"{where}.rest_s", hint="leave it out")


def _check_profile(load: Load, where: str) -> None:
    if load.profile and not load.rate:
        raise SpecError("only applies to a rate", where=where, hint="--set load.profile=[] leaves it out")
    for index, part in enumerate(load.profile):
        at_most(part.seconds, f"{where}[{index}].seconds", LONGEST_S)
        if 0 < part.seconds < _SHORTEST_S:
            raise SpecError(f"must be at least {_SHORTEST_S:g}", where=f"{where}[{index}].seconds")
        if part.seconds <= 0 or part.start < 0 or part.end < 0:
            raise SpecError("seconds must be above 0, start and end not negative", where=f"{where}[{index}]")
    if not load.profile:
        return
    if not (sum(part.gain for part in load.profile) if load.repeat_profile else load.profile[-1].end):
        raise SpecError("the rate ends at 0, before every request is sent", where=where)
