"""What every way of starting an engine hands to the session that waits for it and speaks to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from harness.engines.weights import Weights


class Life(Protocol):
    """Of an engine that was started here."""

    def exited(self) -> str | None:
        """None while it lives, else one sentence."""


@dataclass(frozen=True, slots=True)
class Started:
    """An engine that was told to start and may still be loading."""

    life: Life
    base_url: str
    weights: Weights | None  # None: it brings its own
    facts: Callable[[], dict[str, Any]]  # for the record, once it serves: plain JSON, nothing secret
    startup_timeout_s: float
    began_s: float  # monotonic clock, when it was told to start
