"""Prompt generators by name: a scenario's [prompts] table and a seed to the requests of one cell."""

from bisect import bisect
from itertools import accumulate
from random import Random

from harness.prompts.request import ChatRequest, Workload, workload
from harness.prompts.text import TextMaker
from harness.spec.scenario import FixedLength, Prompts, SharedPrefix


def generate(prompts: Prompts, count: int, seed: int, texts: TextMaker) -> Workload:
    """Equal arguments and tokenizer give equal bytes on every machine."""
    random = Random(seed)
    match prompts:
        case FixedLength():
            requests = _fixed_length(prompts, count, random, texts)
        case SharedPrefix():
            requests = _shared_prefix(prompts, count, random, texts)
    return workload(requests, texts.exact)


def _fixed_length(spec: FixedLength, count: int, random: Random, texts: TextMaker) -> list[ChatRequest]:
    return [
        ChatRequest((("user", text),), spec.output_tokens, content_tokens=spec.input_tokens)
        for text in texts.make([spec.input_tokens] * count, random)
    ]


def _shared_prefix(spec: SharedPrefix, count: int, random: Random, texts: TextMaker) -> list[ChatRequest]:
    systems = texts.make([spec.prefix_tokens] * spec.groups, random)
    questions = texts.make([spec.question_tokens] * count, random)
    weights = list(accumulate((rank + 1) ** -spec.zipf_exponent for rank in range(spec.groups)))
    requests = []
    for question in questions:
        group = bisect(weights, random.random() * weights[-1])
        requests.append(
            ChatRequest(
                (("system", systems[group]), ("user", question)),
                spec.output_tokens,
                group=group,
                shared_tokens=spec.prefix_tokens,
                content_tokens=spec.prefix_tokens + spec.question_tokens,
            )
        )
    return requests
