"""The conclusion: how exact this client is here, what limits it, what to change."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from harness.doctor.loads import Kind, Load
from harness.model import Exactness, MeasuredLoad, Reach
from harness.model.numbers import apart

TOLERANCES_MS = (0.1, 0.2, 0.5, 1.0)
EXACT_MS = TOLERANCES_MS[-1]
MIN_STREAMS = 256  # a machine that is not exact here is not one to measure on
SERVER_LATE_MS = 5.0
SERVER_BUSY = 0.9
OTHER_CORES = 0.2
HALF = 0.5  # of a core: what a worker is to use at most, with room for bursts
FURTHER = 4.0  # times a load that was measured; beyond it nothing is concluded


def conclude(
    measured: Sequence[MeasuredLoad],
    left_out: Sequence[Load],
    hints: Sequence[str],
    repeated: Sequence[MeasuredLoad] = (),
    *,
    whole: bool = False,
) -> Exactness:
    """`measured` has the lightest load first; `hints` are about the machine, whatever was measured.

    `repeated`: what was found of some of these loads the first time. `whole`: answers are no streams.
    """
    reaches = tuple(_reaches(measured))
    on_time = list(takewhile(lambda result: result.on_time(EXACT_MS), _of_kind("rate", measured)))
    exact_streams = reaches[-1].streams if reaches else 0
    return Exactness(
        sentence=_sentence(reaches, on_time[-1] if on_time else None, whole=whole),
        reaches=reaches,
        exact_streams=exact_streams,
        on_time_per_s=on_time[-1].load.value if on_time else 0,
        tried_streams=max((result.load.value for result in _of_kind("concurrency", measured)), default=0),
        tried_per_s=max((result.load.value for result in _of_kind("rate", measured)), default=0),
        streams_per_worker=_per_worker(_holding(measured, EXACT_MS)),
        arrivals_per_worker=_per_worker(on_time),
        limits=(*_limits(measured, left_out), *_repeats(repeated)),
        hints=tuple(dict.fromkeys([*_hints(measured), *hints])),
        fit_to_measure=exact_streams >= MIN_STREAMS,
    )


def _of_kind(kind: Kind, measured: Sequence[MeasuredLoad]) -> list[MeasuredLoad]:
    return [result for result in measured if result.load.kind == kind]


def _reaches(measured: Sequence[MeasuredLoad]) -> Iterator[Reach]:
    furthest = 0
    for tolerance_ms in TOLERANCES_MS:
        good = _holding(measured, tolerance_ms)
        if len(good) > furthest:
            furthest = len(good)
            tokens_per_s = max(result.tokens_per_s for result in good)
            yield Reach(tolerance_ms, good[-1].load.value, tokens_per_s)


def _holding(measured: Sequence[MeasuredLoad], tolerance_ms: float) -> list[MeasuredLoad]:
    return list(takewhile(lambda result: result.exact(tolerance_ms), _of_kind("concurrency", measured)))


def _per_worker(good: Sequence[MeasuredLoad]) -> int:
    """One worker's part of the heaviest good load, as often as it would carry it within HALF a core."""
    if not good:
        return 0
    busy = good[-1].client.busy_share or 0.0
    times = min(HALF / busy, FURTHER) if busy > 0 else FURTHER
    return max(1, int(good[-1].load.value / good[-1].client.workers * times))


def _sentence(reaches: Sequence[Reach], on_time: MeasuredLoad | None, *, whole: bool) -> str:
    if not reaches:
        return f"not exact to {EXACT_MS:g} ms at any load here"
    unit, figures = ("answers", "E2E p99") if whole else ("tokens", "TTFT and ITL p99")
    parts = [
        f"to ±{reach.tolerance_ms:g} ms up to {reach.streams:,} streams"
        f" and {reach.tokens_per_s:,.0f} {unit}/s"
        for reach in reaches
    ]
    sentence = f"exact {', '.join(parts)} here ({figures})"
    if on_time is not None:
        lag_ms = max(on_time.send_lag_p99_ms, 0.01)
        sentence += f"; Poisson arrivals leave within {lag_ms:.2f} ms (p99) at {on_time.load.value:,}/s"
    return sentence


def _limits(measured: Sequence[MeasuredLoad], left_out: Sequence[Load]) -> Iterator[str]:
    for result in measured:
        limits = list(faults(result))
        if limits:
            yield f"{result.load.title}: {result.verdict}: {'; '.join(limits)}"
    late = [result.load.title for result in measured if _server_late(result)]
    if late:
        yield (
            f"the scripted server was late itself at {len(late)} of {len(measured)} loads, by its own limit "
            "or by other work on its core; client errors are against its real write times"
        )
    for load in left_out:
        yield f"{load.title}: left out, the limit of open files is too low"


def _repeats(repeated: Sequence[MeasuredLoad]) -> Iterator[str]:
    for result in repeated:
        reasons = "; ".join(faults(result))
        yield f"{result.load.title}: measured twice; the first time {result.verdict}: {reasons}"


def faults(result: MeasuredLoad) -> Iterator[str]:
    for reason in result.reasons:
        yield f"{reason.code} {reason.measured} (limit {reason.limit})"
    if result.errors is not None and result.errors.p99_ms > EXACT_MS:
        yield f"{_beyond(result.errors.p99_ms)} ms off at p99"
    if result.load.kind == "rate" and result.client.send_lag_ms.p99 is None:
        yield "how late requests were sent is not known"
    elif result.load.kind == "rate" and result.send_lag_p99_ms > EXACT_MS:
        yield f"sent {_beyond(result.send_lag_p99_ms)} ms late at p99"


def _beyond(value_ms: float) -> str:
    """More digits where two would read as what is still exact."""
    return apart(value_ms, EXACT_MS, 2)[0]


def _server_late(result: MeasuredLoad) -> bool:
    late_ms, busy = result.server.late_p99_ms, result.server.busy_share
    return (late_ms is not None and late_ms > SERVER_LATE_MS) or (busy is not None and busy > SERVER_BUSY)


def _hints(measured: Sequence[MeasuredLoad]) -> Iterator[str]:
    for result in measured:
        yield from (reason.hint for reason in result.reasons)
    others = [result.other_cores for result in measured if result.other_cores is not None]
    if max(others, default=0.0) > OTHER_CORES:
        yield (
            f"other work kept up to {max(others):.1f} cores busy meanwhile: stop it, or put `chrt --rr 1` "
            "before the command as root"
        )
