"""Asks the same questions free and constrained: by JSON schemas, regular expressions and choices."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from random import Random

from harness.records.request_table import FREE, Expected
from harness.spec.scenario.synthetic import Structured
from harness.spec.schemas import read_schemas
from harness.workload.prompts.request import ChatRequest, Constraint
from harness.workload.prompts.text import TextMaker
from harness.workload.prompts.topics import PATTERNS, TOPICS


@dataclass(frozen=True, slots=True)
class _Task:
    question: str
    constraint: Constraint
    expected: Expected


def structured(
    spec: Structured, count: int, random: Random, texts: TextMaker, *, warmup: int = 0
) -> Iterator[ChatRequest]:
    """Yields four stretches after the warm-up: free, constrained, constrained, free.

    The first two ask the same tasks, and so do the last two. Warm-up is free, so that each schema is new to
    the measured part.
    """
    choice = Random(random.random())
    tasks = list(_tasks(spec, choice))

    def messages() -> Iterator[tuple[bool, _Task, str]]:
        prompts = texts.stream(repeat(spec.text_tokens, count), random)
        for (constrained, index), text in zip(_stretches(count, warmup, spec.free), prompts, strict=True):
            task = tasks[index % len(tasks)]
            yield constrained, task, f"{text}\n\n{task.question}"

    for (constrained, task, message), tokens in texts.counted(messages(), lambda prompts: prompts[2]):
        yield ChatRequest(
            (("user", message),),
            spec.output_tokens,
            tokens,
            kind=task.constraint.shape if constrained else FREE,
            constraint=task.constraint if constrained else None,
            expected=task.expected,
        )


def _stretches(count: int, warmup: int, free: bool) -> Iterator[tuple[bool, int]]:
    """Yields for each request whether it is constrained, and the number of its task."""
    if not free:
        yield from ((True, index) for index in range(count))
        return
    yield from ((False, index) for index in range(warmup))
    bounds = [round((count - warmup) * quarter / 4) for quarter in range(5)]
    sizes = [end - start for start, end in pairwise(bounds)]
    for constrained, first, size in zip(
        (False, True, True, False), (0, 0, sizes[1], sizes[1]), sizes, strict=True
    ):
        yield from ((constrained, first + index) for index in range(size))


def _tasks(spec: Structured, choice: Random) -> Iterator[_Task]:
    """Yields tasks of the shapes in turn. No engine has compiled their schemas before."""
    makers = {"json_schema": _by_schema, "regex": _by_pattern, "choice": _by_choice}
    lists = [list(makers[shape](spec, choice)) for shape in spec.shapes]
    for index in range(max(map(len, lists))):
        yield from (tasks[index] for tasks in lists if index < len(tasks))


def _by_schema(spec: Structured, choice: Random) -> Iterator[_Task]:
    for name, schema in read_schemas(spec.schemas).items():
        question = "Answer with JSON."
        if spec.schema_in_prompt:
            question = f"Answer with JSON that follows this schema: {json.dumps(schema)}"
        # Engines cache compiled grammars by the schema text: a new title misses it, with equal answers.
        salted: dict[str, object] = {
            **schema,
            "title": f"{schema.get('title', name)} {choice.randrange(10**6)}",
        }
        yield _Task(question, Constraint("json_schema", salted), Expected("json_schema", schema, name))


def set_apart(constraint: Constraint, number: int) -> Constraint:
    """The same with a schema of another title, for a server that may have compiled this one."""
    if constraint.shape != "json_schema":
        return constraint
    title = f"{constraint.value.get('title', 'answer')} {number}"
    return replace(constraint, value={**constraint.value, "title": title})


def _by_pattern(spec: Structured, choice: Random) -> Iterator[_Task]:
    for name, pattern, question in PATTERNS:
        yield _Task(
            f"{question} Answer with it alone.",
            Constraint("regex", pattern),
            Expected("regex", pattern, name),
        )


def _by_choice(spec: Structured, choice: Random) -> Iterator[_Task]:
    for size in (2, 4, 8):
        words = choice.sample(sorted(TOPICS), size)
        question = f"Which of these fits the text best: {', '.join(words)}? Answer with that word only."
        yield _Task(question, Constraint("choice", words), Expected("choice", words, f"one of {size}"))
