"""Requests from files: a trace's lengths and sharing with text of our own, or prompts as they stand."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise
from random import Random

from harness.errors import SpecError
from harness.host import paths
from harness.records.request_table import Part
from harness.spec.scenario import PromptFile, Prompts, TraceReplay
from harness.workload.prompts.calls import replay_calls
from harness.workload.prompts.request import ChatRequest, Message
from harness.workload.prompts.text import TextMaker
from harness.workload.traces import (
    Dataset,
    Prompt,
    Trace,
    clip,
    read_dataset,
    read_trace,
    window,
    with_sessions,
)

_BATCH = 64  # requests whose texts stand in memory together

# A part's id, and which of the stretches that its cuts divide it into; or None, and whose own rest it is.
Segment = tuple[int | None, int]


@lru_cache(maxsize=1)
def _windowed(spec: TraceReplay) -> Trace:
    trace = read_trace(paths.data_file(spec.file), spec.format, spec.block_tokens)
    return window(trace, spec.start_s, spec.end_s)


def trace_of(spec: TraceReplay, count: int) -> Trace:
    """Reads a trace: its first `count` requests.

    Raises SpecError for a file that is no trace, or a window that is empty.
    """
    first = window(_windowed(spec), max_requests=count)
    clipped = clip(first, spec.max_input_tokens, spec.max_output_tokens)
    return with_sessions(clipped, spec.max_wait_s, unique=spec.unique_sessions)


@lru_cache(maxsize=1)
def dataset_of(spec: PromptFile) -> Dataset:
    """Raises SpecError for a file that holds no prompt."""
    return read_dataset(paths.data_file(spec.file), spec.format, spec.turns)


def source_of(prompts: Prompts, count: int) -> Trace | Dataset | None:
    """Returns what `count` prompts come from, read once; None for prompts that are made up.

    Raises SpecError.
    """
    if isinstance(prompts, TraceReplay):
        return trace_of(prompts, count)
    return dataset_of(prompts) if isinstance(prompts, PromptFile) else None


def replay(spec: TraceReplay, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    trace = trace_of(spec, count)
    if trace.calls is not None:
        yield from replay_calls(trace, trace.calls, random, texts)
        return
    prompts = _sharing(trace, random, texts) if trace.parts else _unique(trace, random, texts)
    columns = (values.tolist() for values in (trace.at_ns, trace.input_tokens, trace.output_tokens))
    for at_ns, given, asked, (text, shared) in zip(*columns, prompts, strict=True):
        yield ChatRequest((("user", text),), asked, content_tokens=given, shared=shared, at_ns=at_ns)


def _unique(trace: Trace, random: Random, texts: TextMaker) -> Iterator[tuple[str, tuple[Part, ...]]]:
    lengths = trace.input_tokens.tolist()
    for start in range(0, len(lengths), _BATCH):
        for text in texts.make(lengths[start : start + _BATCH], random):
            yield text, ()


def _sharing(trace: Trace, random: Random, texts: TextMaker) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """Equal parts are equal text, to the token; one that is cut short is the beginning of the whole one."""
    paths_of = list(_segments(trace))
    uses = Counter(segment for path in paths_of for segment, _ in path)
    parts = {segment: index for index, segment in enumerate(segment for segment, n in uses.items() if n > 1)}
    texts_made: dict[Segment, str] = {}
    pending = iter(paths_of)
    while batch := list(islice(pending, _BATCH)):
        new = {segment: tokens for path in batch for segment, tokens in path if segment not in texts_made}
        # What is shared is checked alone: mended at the end of each prompt, it would be shared no more.
        common = {segment: tokens for segment, tokens in new.items() if segment in parts}
        own = {segment: tokens for segment, tokens in new.items() if segment not in parts}
        exact = texts.make(list(common.values()), random)
        texts_made |= zip(common, (f" {text}" for text in exact), strict=True)
        texts_made |= zip(own, texts.draft(list(own.values()), random), strict=True)
        drafts = ["".join(texts_made[segment] for segment, _ in path) for path in batch]
        lengths = [sum(tokens for _, tokens in path) for path in batch]
        for path, text in zip(batch, texts.settle(drafts, lengths, random), strict=True):
            shared = []
            for segment, tokens in path:
                if segment not in parts:
                    break
                shared.append(Part(parts[segment], tokens))
            yield text, tuple(shared)
        for path in batch:
            for segment, _ in path:
                uses[segment] -= 1
                if not uses[segment]:
                    del texts_made[segment]


def _segments(trace: Trace) -> Iterator[list[tuple[Segment, int]]]:
    """Yields, per request its parts' segments and their tokens: a part is divided where any request ends
    in it.
    """
    cuts: dict[int, set[int]] = {}
    for path in trace.parts:
        for part in path:
            cuts.setdefault(part.id, {0}).add(part.tokens)
    stretches = {name: list(pairwise(sorted(ends))) for name, ends in cuts.items()}
    for index, (path, length) in enumerate(zip(trace.parts, trace.input_tokens.tolist(), strict=True)):
        segments: list[tuple[Segment, int]] = [
            ((part.id, number), stop - start)
            for part in path
            for number, (start, stop) in enumerate(stretches[part.id])
            if stop <= part.tokens
        ]
        rest = length - sum(tokens for _, tokens in segments)
        yield [*segments, ((None, index), rest)] if rest else segments


def from_file(spec: PromptFile, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    dataset = dataset_of(spec)
    prompts = list(dataset.prompts)
    if spec.order == "shuffled":
        random.shuffle(prompts)
    matches = 0
    names: dict[Message, int] = {}  # of messages that other prompts may begin with as well
    for prompt, lengths, answer_tokens in _counted(prompts, texts):
        given = sum(lengths)
        if not spec.min_input_tokens <= given <= (spec.max_input_tokens or given):
            continue
        asked = spec.output_tokens or prompt.output_tokens or answer_tokens or spec.unknown_output_tokens
        yield ChatRequest(
            prompt.messages,
            min(asked, spec.max_output_tokens or asked),
            content_tokens=given,
            shared=tuple(
                Part(names.setdefault(message, len(names)), tokens)
                for message, tokens in zip(prompt.messages[:-1], lengths, strict=False)
            ),
        )
        matches += 1
        if matches == count:
            return
    if not matches:
        raise SpecError(
            f"of {len(prompts)} prompts none has {spec.min_input_tokens} to {spec.max_input_tokens} tokens",
            where=dataset.source,
        )


def _counted(prompts: list[Prompt], texts: TextMaker) -> Iterator[tuple[Prompt, list[int], int]]:
    """Each with the tokens of its messages and of the answer that the file holds (0: none)."""
    pending = iter(prompts)
    while batch := list(islice(pending, _BATCH)):
        contents = [content for prompt in batch for _, content in prompt.messages]
        counts = iter(texts.count([*contents, *(prompt.answer or "" for prompt in batch)]))
        lengths = [list(islice(counts, len(prompt.messages))) for prompt in batch]
        yield from zip(batch, lengths, counts, strict=True)
