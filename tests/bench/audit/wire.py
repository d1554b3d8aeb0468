"""HTTP/1.1 as the servers of the audit speak it: models, health, and chats, which each answers in its way."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

Document = dict[str, Any]
Answer = Callable[[Document, asyncio.StreamWriter], Awaitable[None]]  # writes what answers a chat
PROMPT_TOKENS = 40
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
END = b"data: [DONE]\n\n"


@contextmanager
def serving(*answers: Answer) -> Iterator[list[str]]:
    """URLs of a server for each of `answers`, on 127.0.0.1, in a thread of this process."""
    loop = asyncio.new_event_loop()
    servers = [loop.run_until_complete(listening(answer)) for answer in answers]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield [f"http://127.0.0.1:{port_of(server)}" for server in servers]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        for server in servers:
            server.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def listening(answer: Answer, port: int = 0) -> asyncio.Server:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await _respond(reader, writer, answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went away
        finally:
            writer.close()

    return await asyncio.start_server(talk, "127.0.0.1", port, backlog=512)


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


async def _respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    path = head.split(b" ", 2)[1]
    lines = head.split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
    body = await reader.readexactly(length)
    if path.endswith(b"/chat/completions"):
        await answer(json.loads(body), writer)
    elif path.endswith(b"/models"):
        writer.write(page({"object": "list", "data": [{"id": "m", "object": "model"}]}))
    elif path.endswith(b"/health"):
        writer.write(page({}))
    else:
        writer.write(page({"error": {"message": "no such page"}}, "404 Not Found"))


def tokens_asked(chat: Document) -> int:
    return int(chat.get("max_completion_tokens") or chat.get("max_tokens") or 16)


def usage(tokens: int, prompt: int = PROMPT_TOKENS) -> Document:
    return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


def page(document: Document, status: str = "200 OK") -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def whole(text: str, usage: Document, finish: str = "length") -> bytes:
    """The answer to a chat that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return page({"id": "a", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def delta(content: Document, finish: str | None = None) -> bytes:
    return _event({"choices": [{"index": 0, "delta": content, "finish_reason": finish}]})


def counted(usage: Document) -> bytes:
    """The last event before END."""
    return _event({"choices": [], "usage": usage})


def _event(document: Document) -> bytes:
    full = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", **document}
    return b"data: " + json.dumps(full).encode() + b"\n\n"


def chunk(data: bytes = b"") -> bytes:
    """Without data: the end of the answer."""
    return b"%x\r\n" % len(data) + data + b"\r\n"
