"""Prompt generators: a scenario's [prompts] table and a seed to the requests of one cell."""

from bisect import bisect
from collections.abc import Callable, Iterator
from itertools import accumulate
from random import Random
from typing import Any

from harness.asked import Part
from harness.prompts.recorded import from_file, replay
from harness.prompts.request import ChatRequest
from harness.prompts.text import TextMaker
from harness.prompts.workload import Workload, workload
from harness.spec.scenario import FixedLength, PromptFile, Prompts, SharedPrefix, TraceReplay

# Table, number of requests, source of chance, texts: so many requests, from a file at most so many, in order.
Maker = Callable[[Any, int, Random, TextMaker], Iterator[ChatRequest]]


def generate(prompts: Prompts, count: int, seed: int, texts: TextMaker) -> Workload:
    """Equal arguments and tokenizer give equal bytes on every machine."""
    make = MAKERS[type(prompts)]
    return workload(make(prompts, count, Random(seed), texts), texts.exact)


def _fixed_length(spec: FixedLength, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    for text in texts.make([spec.input_tokens] * count, random):
        yield ChatRequest((("user", text),), spec.output_tokens, content_tokens=spec.input_tokens)


def _shared_prefix(spec: SharedPrefix, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    systems = texts.make([spec.prefix_tokens] * spec.groups, random)
    questions = texts.make([spec.question_tokens] * count, random)
    weights = list(accumulate((rank + 1) ** -spec.zipf_exponent for rank in range(spec.groups)))
    for question in questions:
        group = bisect(weights, random.random() * weights[-1])
        yield ChatRequest(
            (("system", systems[group]), ("user", question)),
            spec.output_tokens,
            content_tokens=spec.prefix_tokens + spec.question_tokens,
            group=group,
            shared=(Part(group, spec.prefix_tokens),),
        )


MAKERS: dict[type[Prompts], Maker] = {
    FixedLength: _fixed_length,
    SharedPrefix: _shared_prefix,
    TraceReplay: replay,
    PromptFile: from_file,
}
