"""Servers of known truth for tests/bench/audit/tokens.py: what each sends, and counts, is set by hand."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Usage = Callable[[int, int], dict[str, object]]  # of prompt tokens and text events: the usage block
PROMPT_TOKENS = 40


def honest(prompt: int, events: int) -> dict[str, object]:
    return {"prompt_tokens": prompt, "completion_tokens": events, "total_tokens": prompt + events}


def doubled(prompt: int, events: int) -> dict[str, object]:
    return honest(prompt, 2 * events)


def halved(prompt: int, events: int) -> dict[str, object]:
    return honest(prompt, events // 2)


def total(prompt: int, events: int) -> dict[str, object]:
    """The total in place of the output."""
    return honest(prompt, prompt + events)


def cached_beyond_prompt(prompt: int, events: int) -> dict[str, object]:
    return honest(prompt, events) | {"prompt_tokens_details": {"cached_tokens": 3 * prompt}}


def inflated(prompt: int, events: int) -> dict[str, object]:
    """4 % more tokens than were sent."""
    return honest(prompt, round(1.04 * events))


@dataclass(frozen=True)
class Behaviour:
    """One token in each text event, `ttft_s` and then `gap_s` apart."""

    ttft_s: float = 0.06
    gap_s: float = 0.02
    share: float = 1.0  # of the tokens that were asked for
    at_once: bool = False  # the whole answer in one write, when it is ready
    streams: bool = True
    usage: Usage = honest
    finish: str = "length"
    slots: int = 0  # answers at once; the others wait; 0: no limit
    cached_ttft_s: float = 0.0  # of a prompt that was seen before; 0: nothing is kept


class _Server:
    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._slots = asyncio.Semaphore(behaviour.slots or 10_000)
        self._seen: set[bytes] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.readline():
                length = 0
                while (line := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                body = await reader.readexactly(length) if length else b""
                await self._answer(request.split()[1], body, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path.endswith(b"/models"):
            _send(writer, b"200 OK", {"object": "list", "data": [{"id": "m", "object": "model"}]})
        elif path.endswith(b"/chat/completions"):
            async with self._slots:
                await self._chat(json.loads(body), writer)
        elif path.endswith(b"/health"):
            _send(writer, b"200 OK", {})
        else:
            _send(writer, b"404 Not Found", {"error": {"message": "no such page"}})
        await writer.drain()

    async def _chat(self, asked: dict[str, object], writer: asyncio.StreamWriter) -> None:
        what = self._behaviour
        tokens = max(1, round(what.share * int(str(asked.get("max_tokens", 16)))))
        prompt = json.dumps(asked["messages"]).encode()
        first_s = what.cached_ttft_s if what.cached_ttft_s and prompt in self._seen else what.ttft_s
        self._seen.add(prompt)
        usage = what.usage(PROMPT_TOKENS, tokens)
        if not (what.streams and asked.get("stream")):
            await asyncio.sleep(first_s + what.gap_s * (tokens - 1))
            message = {"role": "assistant", "content": " abc" * tokens}
            choice = {"index": 0, "message": message, "finish_reason": what.finish}
            _send(writer, b"200 OK", {"object": "chat.completion", "choices": [choice], "usage": usage})
            return
        events = [_delta({"content": " abc"}) for _ in range(tokens)]
        end = _delta({}, what.finish) + _event({"object": _CHUNK, "choices": [], "usage": usage})
        end += b"data: [DONE]\n\n"
        writer.write(_HEAD)
        loop = asyncio.get_running_loop()
        began = loop.time()
        if what.at_once:
            await asyncio.sleep(first_s + what.gap_s * (tokens - 1))
            writer.write(_chunk(b"".join(events) + end) + _chunk(b""))
            return
        for number, event in enumerate(events):
            await asyncio.sleep(max(0.0, began + first_s + what.gap_s * number - loop.time()))
            writer.write(_chunk(event))
        writer.write(_chunk(end) + _chunk(b""))


_CHUNK = "chat.completion.chunk"
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: keep-alive\r\n\r\n"
)


def _event(document: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _delta(delta: dict[str, str], finish: str | None = None) -> bytes:
    return _event({"object": _CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n" % len(body) + body + b"\r\n"


def _send(writer: asyncio.StreamWriter, status: bytes, document: dict[str, object]) -> None:
    body = json.dumps(document).encode()
    writer.write(
        b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nContent-Length: "
        b"%d\r\nConnection: keep-alive\r\n\r\n" % len(body) + body
    )


@contextmanager
def serving(*behaviours: Behaviour) -> Iterator[list[str]]:
    """URLs of one server for each behaviour, on 127.0.0.1, until the block ends."""
    loop, ready, urls = asyncio.new_event_loop(), threading.Event(), list[str]()

    async def start() -> None:
        for behaviour in behaviours:
            server = await asyncio.start_server(_Server(behaviour).serve, "127.0.0.1", 0)
            urls.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(20), "the servers did not start"
    try:
        yield urls
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
