"""A streaming server on 127.0.0.1 whose speed, stalls and refusals are set, and changed, by the caller."""

import asyncio
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Behaviour:
    """Of every answer from now on. Times in s of this process's monotonic clock."""

    ttft_s: float = 0.06
    gap_s: float = 0.01
    slower: float = 1.0  # factor of both
    stall_every_s: float = 0.0  # 0: never
    stall_s: float = 0.0  # nothing is sent in this time
    refused: float = 0.0  # share of the requests that get 503
    noise: float = 0.0  # relative deviation of an answer's speed
    draw: random.Random = field(default_factory=lambda: random.Random(1))


@dataclass(frozen=True)
class Served:
    url: str
    behaviour: Behaviour


@contextmanager
def serving() -> Iterator[Served]:
    """In a thread of this process; stopped at the end."""
    behaviour, loop, port = Behaviour(), asyncio.new_event_loop(), 0
    server = loop.run_until_complete(
        asyncio.start_server(lambda reader, writer: _talk(reader, writer, behaviour), "127.0.0.1", 0)
    )
    port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{port}", behaviour)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, behaviour: Behaviour) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if ": " in line)
            length = next((value for key, value in fields.items() if key.lower() == "content-length"), "0")
            body = await reader.readexactly(int(length))
            path = head.split(b" ", 2)[1]
            if path.endswith(b"/models"):
                await _plain(writer, "200 OK", {"object": "list", "data": [{"id": "m", "object": "model"}]})
            elif path.endswith(b"/chat/completions"):
                await _answer(writer, json.loads(body), behaviour)
            else:
                await _plain(writer, "404 Not Found", {"error": "no such page"})
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _plain(writer: asyncio.StreamWriter, status: str, document: object) -> None:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()


async def _answer(writer: asyncio.StreamWriter, asked: dict[str, object], behaviour: Behaviour) -> None:
    if behaviour.draw.random() < behaviour.refused:
        await _plain(writer, "503 Service Unavailable", {"error": "busy"})
        return
    tokens = int(str(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16))
    usage = {"prompt_tokens": 40, "completion_tokens": tokens, "total_tokens": 40 + tokens}
    if not asked.get("stream"):  # as bench counts tokens before the first cell
        message = {"role": "assistant", "content": " word" * tokens}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        await _plain(writer, "200 OK", {"id": "a", "model": "m", "choices": [choice], "usage": usage})
        return
    pace = behaviour.slower * max(0.1, behaviour.draw.gauss(1, behaviour.noise))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    due = asyncio.get_running_loop().time()
    for index in range(tokens):
        due += pace * (behaviour.gap_s if index else behaviour.ttft_s)
        due = await _sleep_until(due, behaviour)
        delta = {"content": " word"} if index else {"role": "assistant", "content": "A"}
        _event(writer, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    _event(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    _event(writer, {"choices": [], "usage": usage})
    _chunk(writer, b"data: [DONE]\n\n")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _sleep_until(due: float, behaviour: Behaviour) -> float:
    """Returns when it really went on: a stall moves what is due in it behind its end."""
    if behaviour.stall_every_s:
        inside = due % behaviour.stall_every_s
        if inside < behaviour.stall_s:
            due += behaviour.stall_s - inside
    await asyncio.sleep(due - asyncio.get_running_loop().time())
    return due


def _event(writer: asyncio.StreamWriter, document: dict[str, object]) -> None:
    full = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", **document}
    _chunk(writer, b"data: " + json.dumps(full).encode() + b"\n\n")


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
