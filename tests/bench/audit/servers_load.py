"""Servers whose course over time is known: each answers as `Course` says, on 127.0.0.1, from one process."""

import asyncio
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from tests.bench.audit import wire

_READY_S = 30.0


@dataclass(frozen=True)
class Server:
    """Each answer: a wait for one of `places`, `ttft_ms` of reading, then a gap before each further token.

    The gap is `gap_ms` plus `per_stream_ms` for each answer in progress, times a factor of the seconds since
    the first request: one plus `drift_per_s` for each second, and `step` from `step_at_s` on.
    """

    ttft_ms: float = 20.0
    gap_ms: float = 5.0
    per_stream_ms: float = 0.0
    places: int = 1000
    drift_per_s: float = 0.0
    step: float = 1.0
    step_at_s: float = 0.0

    def factor(self, since_s: float) -> float:
        return (1 + self.drift_per_s * since_s) * (self.step if since_s >= self.step_at_s else 1.0)


@contextmanager
def serving(server: Server) -> Iterator[str]:
    """Its URL. Each stream has a connection of its own: streams that share them get in step."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(server, theirs), daemon=True)
    process.start()
    try:
        if not ours.poll(_READY_S):
            raise TimeoutError("the server of the audit did not start")
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join(10)


def _run(server: Server, ready: Connection) -> None:
    asyncio.run(_Answers(server).serve(ready.send))


def serve_at(port: int, server: Server) -> None:
    """Serves until the process is ended."""
    asyncio.run(_Answers(server).serve(lambda _: None, port))


class _Answers:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._places = asyncio.Semaphore(server.places)
        self._streams = 0
        self._began: float | None = None

    async def serve(self, ready: Callable[[int], object], port: int = 0) -> None:
        server = await wire.listening(self._answer, port)
        ready(wire.port_of(server))
        async with server:
            await server.serve_forever()

    async def _answer(self, chat: wire.Document, writer: asyncio.StreamWriter) -> None:
        tokens = wire.tokens_asked(chat)
        if self._began is None:
            self._began = time.monotonic()
        if not chat.get("stream"):
            writer.write(wire.whole("word " * tokens, wire.usage(tokens)))
            return
        writer.write(wire.UNTIL_CLOSED)
        async with self._places:
            self._streams += 1
            try:
                due = time.monotonic() + self._server.ttft_ms / 1000
                for token in range(tokens):
                    await asyncio.sleep(due - time.monotonic())
                    reason = "length" if token == tokens - 1 else None
                    writer.write(wire.delta({"content": "word "}, reason))
                    gap_ms = self._server.gap_ms + self._server.per_stream_ms * self._streams
                    due += gap_ms * self._server.factor(time.monotonic() - self._began) / 1000
            finally:
                self._streams -= 1
        writer.write(wire.counted(wire.usage(tokens)) + wire.END)
        writer.close()
