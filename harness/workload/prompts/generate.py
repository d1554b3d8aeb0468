"""Makes the requests of one cell from a scenario's [prompts] table and a seed."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import Any

from harness.spec.scenario import PromptFile, Prompts, TraceReplay, synthetic
from harness.workload.prompts.agent import agent
from harness.workload.prompts.audio import audio
from harness.workload.prompts.batches import documents, rerank
from harness.workload.prompts.plain import classification, copy_and_write, fixed_length, mix
from harness.workload.prompts.recorded import from_file, replay
from harness.workload.prompts.request import ChatRequest
from harness.workload.prompts.shared import few_shot, rag, shared_prefix
from harness.workload.prompts.structured import structured
from harness.workload.prompts.text import TextMaker
from harness.workload.prompts.victim import victim
from harness.workload.prompts.workload import Workload, workload

# From table, number, random source and texts to that many requests in order; from a file, at most that many.
Maker = Callable[[Any, int, Random, TextMaker], Iterator[ChatRequest]]

# From requests and a seed to the same requests with adapters or images.
Decorator = Callable[[Iterable[ChatRequest], int], Iterable[ChatRequest]]


def as_they_are(requests: Iterable[ChatRequest], _seed: int) -> Iterable[ChatRequest]:
    return requests


def generate(
    prompts: Prompts,
    count: int,
    seed: int,
    texts: TextMaker,
    decorate: Decorator = as_they_are,
    *,
    warmup: int = 0,
    each_first: bool = False,
) -> Workload:
    """Makes the workload. Equal arguments and an equal tokenizer give equal bytes on every machine.

    `warmup`: how many of the requests come before the measured ones. `each_first`: that of `shared_prefix`.
    """
    make = MAKERS[type(prompts)]
    if isinstance(prompts, synthetic.Structured):
        make = partial(structured, warmup=warmup)
    if isinstance(prompts, synthetic.SharedPrefix):
        make = partial(shared_prefix, each_first=each_first)
    return workload(decorate(make(prompts, count, Random(seed), texts), seed), texts.exact)


MAKERS: dict[type[Prompts], Maker] = {
    synthetic.FixedLength: fixed_length,
    synthetic.Mix: mix,
    synthetic.Classification: classification,
    synthetic.CopyAndWrite: copy_and_write,
    synthetic.SharedPrefix: shared_prefix,
    synthetic.FewShot: few_shot,
    synthetic.Rag: rag,
    synthetic.Agent: agent,
    synthetic.Structured: structured,
    TraceReplay: replay,
    PromptFile: from_file,
    synthetic.Documents: documents,
    synthetic.Rerank: rerank,
    synthetic.Victim: victim,
    synthetic.Audio: audio,
}
