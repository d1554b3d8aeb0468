"""The limits of one exchange, and its account while it runs."""

import time
from dataclasses import dataclass, field

CONNECT_S = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    total_s: float = 60.0  # from the first step of connecting to the last byte
    wire_bytes: int = 8 << 20  # all that is received, heads and interim answers included
    body_bytes: int = 8 << 20  # decompressed
    head_bytes: int = 64 << 10
    headers: int = 200


class LimitError(Exception):
    """The message names the limit."""


@dataclass(slots=True)
class Account:
    """One deadline for the whole exchange, not for each read."""

    limits: Limits
    received_bytes: int = 0
    connected: bool = False  # for this exchange, and not kept from one before
    head_over: bool = False
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.limits.total_s

    def left_s(self, asked_s: float | None) -> float:
        """Seconds left for the next step, at most `asked_s`. Raises LimitError."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise LimitError(self.late)
        return left if asked_s is None else min(left, asked_s)

    @property
    def late(self) -> str:
        limit_s = self.limits.total_s  # what is left of a deadline is 29.9998 s
        words = f"{limit_s:.3g}" if limit_s < 100 else f"{limit_s:.0f}"
        return f"the answer did not end within {words} s"

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    @property
    def long_head(self) -> str:
        return f"the head of the answer is longer than {self.limits.head_bytes} bytes"

    @property
    def long_body(self) -> str:
        return f"the answer is longer than {self.limits.body_bytes} bytes"

    @property
    def head_is_too_long(self) -> bool:
        return not self.head_over and self.received_bytes >= self.limits.head_bytes

    def receive(self, count: int) -> None:
        if self.head_is_too_long:
            raise LimitError(self.long_head)
        self.received_bytes += count
        if self.received_bytes > self.limits.wire_bytes:
            raise LimitError(f"the answer is longer than {self.limits.wire_bytes} bytes")
