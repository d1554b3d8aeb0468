"""Whose doing each reason to doubt a cell is."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from harness.model import Validity

Blame = Literal["engine", "client", "machine", "work"]


# What an INVALID cell says by its code. engine: the run failed, which counts against the engine. client and
# machine: nothing about the engine, so it is measured again. work: of what was asked; again is no better.
_CODES: Mapping[Blame, tuple[str, ...]] = MappingProxyType(
    {
        "engine": (
            "dropped-requests",
            "engine-died",
            "engine-restarted",
            "failed-requests",
            "tokens-per-event",
            "usage-missing",
        ),
        "client": (
            "arrivals-differ",
            "client-busy",
            "does-not-add-up",
            "loop-lag",
            "merged-events",
            "rate-missed",
            "requests-resent",
            "schedule-lag",
            "slot-idle",
            "stamp-uncertainty",
            "token-count",
            "worker-lost",
        ),
        "machine": (
            "clock-step",
            "contended",
            "gpu-busy",
            "gpu-shared",
            "gpu-throttled",
            "packet-loss",
        ),
        "work": (
            "cache-not-cold",
            "cache-not-primed",
            "cache-not-warm",
            "first-event-tokens",
            "form-refused",
            "itl-merged",
            "lockstep",
            "not-steady",
            "output-length",
            "structured-cut",
            "structured-ignored",
            "structured-invalid",
            "thinking-not-off",
            "too-few-samples",
            "too-short",
        ),
    }
)
BLAME: Mapping[str, Blame] = MappingProxyType(
    {code: blame for blame, codes in _CODES.items() for code in codes}
)
# Nothing that the load generator does can bring these about.
_SURE = frozenset({"engine-died", "engine-restarted"})


def blame(validity: Validity) -> tuple[Blame, str] | None:
    """Whose doing it is that a cell is INVALID, and the code that says so; None where it is not INVALID.

    Where engine and client are both at fault the client may have caused the failures, so it has the blame.
    A code that is not known is taken for the work's: it decides nothing either way.
    """
    if validity.verdict != "INVALID":
        return None
    codes = [reason.code for reason in validity.reasons if reason.verdict == "INVALID"]
    if sure := next((code for code in codes if code in _SURE), None):
        return "engine", sure
    order: tuple[Blame, ...] = ("client", "machine", "engine")
    for kind in order:
        if code := next((code for code in codes if BLAME.get(code) == kind), None):
            return kind, code
    return "work", next(iter(codes), "INVALID")
