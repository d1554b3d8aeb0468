"""What carries requests on asyncio: connections opened ahead, a coroutine for each request, an end."""

from collections.abc import Callable
from typing import Protocol

from harness.load.exchange import Exchange
from harness.records.layout import Outcome

OPENING_S = 10.0  # to open connections ahead of the window


class RequestError(Exception):
    """Raised for a request without a whole answer, with the outcome and the text of its record."""

    def __init__(self, outcome: Outcome, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome


class UnreadError(RequestError):
    """Raised for a request that its server says it did not begin to read, so that it may be sent again."""


class AsyncCarrier(Protocol):
    connect_ns: list[int]  # one per connection that was made

    async def open_ahead(self, count: int) -> str:
        """Opens connections for `count` requests at once; returns what prevented that, or ""."""

    async def carry(self, exchange: Exchange, body: bytes, on_send: Callable[[], object]) -> None:
        """Carries one request to the end of its answer, which grows in `exchange.answer` even if this raises.

        Sets `exchange.connect` before the first send, and calls `on_send` right before the first byte of a
        request leaves. Raises RequestError; any other exception means that the answer is not of the protocol.
        """

    async def close(self) -> None: ...
