"""Servers whose course over time is known: each answers as `Course` says, on 127.0.0.1, from one process."""

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

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
    """Its URL. It knows `/v1/models` and streaming chat completions, one connection for each request."""
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
        listening = await asyncio.start_server(self._connection, "127.0.0.1", port, backlog=512)
        ready(listening.sockets[0].getsockname()[1])
        async with listening:
            await listening.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
            body = json.loads(await reader.readexactly(length)) if length else {}
            if head.startswith(b"POST") and b"chat/completions" in head.partition(b"\r\n")[0]:
                await self._answer(body, writer)
            else:
                models = json.dumps({"object": "list", "data": [{"id": "known", "object": "model"}]}).encode()
                found = b"200 OK" if b"/v1/models" in head.partition(b"\r\n")[0] else b"404 Not Found"
                writer.write(
                    b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (found, len(models), models)
                )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            writer.close()

    async def _answer(self, body: dict[str, object], writer: asyncio.StreamWriter) -> None:
        asked = body.get("max_completion_tokens") or body.get("max_tokens") or 16
        tokens = int(str(asked))
        if self._began is None:
            self._began = time.monotonic()
        if not body.get("stream"):
            await self._whole(tokens, writer)
            return
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n")
        async with self._places:
            self._streams += 1
            try:
                due = time.monotonic() + self._server.ttft_ms / 1000
                for token in range(tokens):
                    await asyncio.sleep(due - time.monotonic())
                    reason = "length" if token == tokens - 1 else None
                    _event(writer, [{"index": 0, "delta": {"content": "word "}, "finish_reason": reason}])
                    gap_ms = self._server.gap_ms + self._server.per_stream_ms * self._streams
                    due += gap_ms * self._server.factor(time.monotonic() - self._began) / 1000
            finally:
                self._streams -= 1
        usage = {"prompt_tokens": 40, "completion_tokens": tokens, "total_tokens": 40 + tokens}
        _event(writer, [], usage)
        writer.write(b"data: [DONE]\n\n")

    async def _whole(self, tokens: int, writer: asyncio.StreamWriter) -> None:
        message = {"role": "assistant", "content": "word " * tokens}
        answer = json.dumps(
            {
                "id": "a",
                "object": "chat.completion",
                "model": "known",
                "choices": [{"index": 0, "message": message, "finish_reason": "length"}],
                "usage": {"prompt_tokens": 40, "completion_tokens": tokens, "total_tokens": 40 + tokens},
            }
        ).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer)
        )


def _event(
    writer: asyncio.StreamWriter, choices: list[dict[str, object]], usage: dict[str, int] | None = None
) -> None:
    chunk: dict[str, object] = {
        "id": "a",
        "object": "chat.completion.chunk",
        "model": "known",
        "choices": choices,
    }
    if usage is not None:
        chunk["usage"] = usage
    writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
