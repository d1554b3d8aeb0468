"""Makes requests from files: lengths and sharing of a trace with generated text, or prompts as they are."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice, pairwise
from random import Random
from typing import Final

from harness.errors import SpecError
from harness.host import paths
from harness.records.request_table import Expected, Part
from harness.spec.scenario import PromptFile, Prompts, TraceReplay
from harness.spec.strict import check_known
from harness.workload.prompts.calls import replay_calls
from harness.workload.prompts.request import ChatRequest, Constraint, Message
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

_BATCH = 64  # requests whose texts are in memory together
UNCATEGORISED = "other"  # class of prompts without a category or a schema, where others have one
_WITH_SCHEMA: Final = "json_schema"  # class of prompts that have one, and its shape

# Id of a part and the number of a segment of it; or None and the number of the request that alone has it.
Segment = tuple[int | None, int]


@lru_cache(maxsize=1)
def _windowed(spec: TraceReplay) -> Trace:
    trace = read_trace(paths.data_file(spec.file), spec.format, spec.block_tokens)
    return window(trace, spec.start_s, spec.end_s)


def trace_of(spec: TraceReplay, count: int) -> Trace:
    """The first `count` requests of the trace in its window, cut to the limits.

    Raises SpecError for a file that is not a trace, or a window that is empty.
    """
    first = window(_windowed(spec), max_requests=count)
    clipped = clip(first, spec.max_input_tokens, spec.max_output_tokens)
    return with_sessions(clipped, spec.max_wait_s, unique=spec.unique_sessions)


@lru_cache(maxsize=1)
def dataset_of(spec: PromptFile) -> Dataset:
    """Reads the prompts of a file, and keeps the last result.

    Raises SpecError for a file without prompts, and for a category that it lacks.
    """
    dataset = read_dataset(paths.data_file(spec.file), spec.format, spec.turns)
    if not spec.categories:
        return dataset
    known = {prompt.category for prompt in dataset.prompts} - {""}
    for name in spec.categories:
        check_known(name, known, "prompts.categories", f"category of {dataset.source}")
    chosen = (prompt for prompt in dataset.prompts if prompt.category in spec.categories)
    return replace(dataset, prompts=tuple(chosen))


def source_of(prompts: Prompts, count: int) -> Trace | Dataset | None:
    """The file that `count` prompts come from, read once; None for generated prompts.

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
    """Yields texts and shared parts.

    Equal parts have equal text; a part cut short is the whole one's beginning.
    """
    paths_of = list(_segments(trace))
    uses = Counter(segment for path in paths_of for segment, _ in path)
    parts = {segment: index for index, segment in enumerate(segment for segment, n in uses.items() if n > 1)}
    texts_made: dict[Segment, str] = {}
    pending = iter(paths_of)
    while batch := list(islice(pending, _BATCH)):
        new = {segment: tokens for path in batch for segment, tokens in path if segment not in texts_made}
        # Shared text is checked alone: corrected at the end of a prompt, it would no longer be shared.
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
    """Yields the segments of each request with their tokens. A part is cut wherever a request ends in it."""
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


def _class_of(prompt: Prompt) -> str:
    return prompt.category if prompt.schema is None else _WITH_SCHEMA


def figures_of(dataset: Dataset) -> list[str]:
    """Paths of the figures of its classes: `by_kind.math`. A single class has none of its own."""
    names = {_class_of(prompt) or UNCATEGORISED for prompt in dataset.prompts}
    return [f"by_kind.{name}" for name in sorted(names)] if len(names) > 1 else []


def from_file(spec: PromptFile, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    dataset = dataset_of(spec)
    prompts = list(dataset.prompts)
    if spec.order == "shuffled":
        random.shuffle(prompts)
    matches = 0
    several = any(map(_class_of, prompts))
    names: dict[Message, int] = {}  # ids of messages, with which other prompts may begin too
    for prompt, lengths, answer_tokens in _counted(prompts, texts):
        given = sum(lengths)
        if not spec.min_input_tokens <= given <= (spec.max_input_tokens or given):
            continue
        asked = spec.output_tokens or prompt.output_tokens or answer_tokens or spec.unknown_output_tokens
        schema = prompt.schema
        constraint = None if schema is None else Constraint(_WITH_SCHEMA, schema)
        yield ChatRequest(
            prompt.messages,
            min(asked, spec.max_output_tokens or asked),
            content_tokens=given,
            kind=_class_of(prompt) or (UNCATEGORISED if several else ""),
            constraint=constraint,
            expected=None if schema is None else Expected("json_schema", schema),
            shared=tuple(
                Part(names.setdefault(message, len(names)), tokens)
                for message, tokens in zip(prompt.messages[:-1], lengths, strict=False)
            ),
        )
        matches += 1
        if matches == count:
            return
    if not matches:
        most = f"to {spec.max_input_tokens} tokens" if spec.max_input_tokens else "tokens or more"
        raise SpecError(
            f"of {len(prompts)} prompts none has {spec.min_input_tokens} {most}", where=dataset.source
        )


def _counted(prompts: list[Prompt], texts: TextMaker) -> Iterator[tuple[Prompt, list[int], int]]:
    """Yields each prompt with the tokens of its messages, and of the answer in the file (0: none)."""
    pending = iter(prompts)
    while batch := list(islice(pending, _BATCH)):
        contents = [content for prompt in batch for _, content in prompt.messages]
        counts = iter(texts.count([*contents, *(prompt.answer or "" for prompt in batch)]))
        lengths = [list(islice(counts, len(prompt.messages))) for prompt in batch]
        yield from zip(batch, lengths, counts, strict=True)
