"""Servers of known truth for tests/bench/audit/tokens.py: what each sends, and counts, is set by hand."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.bench.audit import wire

Usage = Callable[[int, int], wire.Document]  # of prompt tokens and text events: the usage block


def honest(prompt: int, events: int) -> wire.Document:
    return wire.usage(events, prompt)


def doubled(prompt: int, events: int) -> wire.Document:
    return honest(prompt, 2 * events)


def halved(prompt: int, events: int) -> wire.Document:
    return honest(prompt, events // 2)


def total(prompt: int, events: int) -> wire.Document:
    """The total in place of the output."""
    return honest(prompt, prompt + events)


def cached_beyond_prompt(prompt: int, events: int) -> wire.Document:
    return honest(prompt, events) | {"prompt_tokens_details": {"cached_tokens": 3 * prompt}}


def inflated(prompt: int, events: int) -> wire.Document:
    """4% more tokens than were sent."""
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

    async def answer(self, chat: wire.Document, writer: asyncio.StreamWriter) -> None:
        async with self._slots:
            await self._chat(chat, writer)

    async def _chat(self, asked: wire.Document, writer: asyncio.StreamWriter) -> None:
        what = self._behaviour
        tokens = max(1, round(what.share * wire.tokens_asked(asked)))
        prompt = json.dumps(asked["messages"]).encode()
        first_s = what.cached_ttft_s if what.cached_ttft_s and prompt in self._seen else what.ttft_s
        self._seen.add(prompt)
        usage = what.usage(wire.PROMPT_TOKENS, tokens)
        if not (what.streams and asked.get("stream")):
            await asyncio.sleep(first_s + what.gap_s * (tokens - 1))
            writer.write(wire.whole(" abc" * tokens, usage, what.finish))
            return
        events = [wire.delta({"content": " abc"})] * tokens
        end = wire.delta({}, what.finish) + wire.counted(usage) + wire.END
        writer.write(wire.STREAM)
        loop = asyncio.get_running_loop()
        began = loop.time()
        if what.at_once:
            await asyncio.sleep(first_s + what.gap_s * (tokens - 1))
            writer.write(wire.chunk(b"".join(events) + end) + wire.chunk())
            return
        for number, event in enumerate(events):
            await asyncio.sleep(max(0.0, began + first_s + what.gap_s * number - loop.time()))
            writer.write(wire.chunk(event))
        writer.write(wire.chunk(end) + wire.chunk())


def serving(*behaviours: Behaviour) -> AbstractContextManager[list[str]]:
    """URLs of one server for each behaviour, on 127.0.0.1, until the block ends."""
    return wire.serving(*(_Server(behaviour).answer for behaviour in behaviours))
