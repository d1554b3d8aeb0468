"""Whether the figures of a file can be true together: other units, or two runs in one, cannot."""

from itertools import pairwise

from harness.imports.source import plain, wrong
from harness.imports.taken import Taken
from harness.model import PERCENTILES
from harness.model.numbers import short
from harness.records.layout import Outcome

_ROUNDED = 1.001
_MOST, _LEAST = 3.0, 0.01  # of the slots, which are in flight by Little's law; units differ by 1,000


def check(taken: Taken, where: str) -> None:
    """Raises SpecError if they cannot."""
    stated = taken.reported
    for metric in {path.partition(".")[0] for path in stated}:
        known = [(name, stated[f"{metric}.{name}"]) for name in PERCENTILES if f"{metric}.{name}" in stated]
        for (lower, less), (upper, more) in pairwise(known):
            if less > more * _ROUNDED:
                text = f"its {metric} has a {lower} of {short(less, 6)} and a {upper} of {short(more, 6)}"
                raise wrong(text, where)
    for name in ("mean", "p50"):
        first, whole = stated.get(f"ttft_ms.{name}"), stated.get(f"e2e_ms.{name}")
        if first is not None and whole is not None and first > whole * _ROUNDED:
            ends = f"after {short(first, 6)} ms, and its answers take {short(whole, 6)} ms ({name})"
            raise wrong(f"its first tokens come {ends}: other units?", where)
    _check_in_flight(taken, where)


def _check_in_flight(taken: Taken, where: str) -> None:
    """Checks that no more were in flight than all requests, if the load is not known."""
    whole, rate, slots = _whole_ms(taken), taken.reported.get("requests_per_s"), taken.load.slots
    most = taken.answered if taken.load.kind == "unknown" else slots
    if not whole or not rate or not most:
        return
    least = _LEAST * (min(slots, taken.answered or slots) if slots else 1)
    in_flight = (whole / 1e3 + (plain(taken.load.think_time_s) or 0.0)) * rate  # or about to send again
    if not least <= in_flight <= _MOST * most:
        came = f"its answers take {short(whole, 6)} ms and {short(rate, 6)} come each second"
        raise wrong(
            f"{came}: {short(in_flight)} were in flight, and there were {most} at most: "
            "other units, or two runs in one",
            where,
        )


def _whole_ms(taken: Taken) -> float | None:
    """The mean time of an answer, as stated, else from the requests."""
    if (stated := taken.reported.get("e2e_ms.mean")) is not None:
        return stated
    rows = taken.records.requests
    good = rows[rows["outcome"] == Outcome.OK]
    return float((good["last_text_ns"] - good["sent_ns"]).mean()) / 1e6 if len(good) else None
