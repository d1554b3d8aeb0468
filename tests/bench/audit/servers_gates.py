"""A streaming server on 127.0.0.1 whose speed, stalls and refusals are set, and changed, by the caller."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.bench.audit import wire


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
    behaviour = Behaviour()
    with wire.serving(lambda chat, writer: _answer(chat, writer, behaviour)) as (url,):
        yield Served(url, behaviour)


async def _answer(chat: wire.Document, writer: asyncio.StreamWriter, behaviour: Behaviour) -> None:
    if behaviour.draw.random() < behaviour.refused:
        writer.write(wire.page({"error": "busy"}, "503 Service Unavailable"))
        return
    tokens = wire.tokens_asked(chat)
    if not chat.get("stream"):  # as bench counts tokens before the first cell
        writer.write(wire.whole(" word" * tokens, wire.usage(tokens)))
        return
    pace = behaviour.slower * max(0.1, behaviour.draw.gauss(1, behaviour.noise))
    writer.write(wire.STREAM)
    due = asyncio.get_running_loop().time()
    for index in range(tokens):
        due += pace * (behaviour.gap_s if index else behaviour.ttft_s)
        due = await _sleep_until(due, behaviour)
        content = {"content": " word"} if index else {"role": "assistant", "content": "A"}
        writer.write(wire.chunk(wire.delta(content)))
    for last in (wire.delta({}, "length"), wire.counted(wire.usage(tokens)), wire.END, b""):
        writer.write(wire.chunk(last))


async def _sleep_until(due: float, behaviour: Behaviour) -> float:
    """Returns when it really went on: a stall moves what is due in it behind its end."""
    if behaviour.stall_every_s:
        inside = due % behaviour.stall_every_s
        if inside < behaviour.stall_s:
            due += behaviour.stall_s - inside
    await asyncio.sleep(due - asyncio.get_running_loop().time())
    return due
