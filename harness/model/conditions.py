"""Conditions under which a cell was measured, as far as another cell's may differ from them."""

from typing import Annotated, Any

import msgspec

from harness.model.cell_facts import Value
from harness.model.record import Record, doc


class CacheState(Record, frozen=True, kw_only=True):
    """State that the prefix cache was asked to be in, and whether the engine's counts confirm it."""

    requested: Annotated[str, doc("cold, warm, primed or any.")]
    description: Annotated[str | None, doc("How it was prepared.")]
    holds: Annotated[bool | None, doc("Null: the engine's counts cannot tell.")]
    measured: Annotated[str, doc("What they say.")]
    limit: Annotated[str, doc("What they should say.")]


class ExactOutput(Record, frozen=True, kw_only=True):
    """Whether answers were to have an exact length, and whether the engine was made to keep it."""

    asked: Annotated[bool | None, doc("Whether an exact length was asked for.")]
    forced: Annotated[bool, doc("Whether the engine was made to keep it.")]


class PromptTokens(Record, frozen=True, kw_only=True):
    """Tokens of the chats of the cell, warm-up included."""

    mean: Annotated[float | None, doc("Tokens per prompt.")]
    first: Annotated[list[int | None], doc("Of the first few.")]
    sha256: Annotated[str | None, doc("Of all counts; null where one is not known.")]


class OutputText(Record, frozen=True, kw_only=True):
    """Characters of the measured answers."""

    per_answer: Annotated[float, doc("Mean.")]
    per_answer_error: Annotated[float, doc("Its standard error.")]
    per_token: Annotated[float | None, doc("By the server's count of tokens; null where one is not known.")]
    per_token_error: Annotated[float | None, doc("Its standard error.")]


class Sampling(Record, frozen=True, kw_only=True):
    """Parameters by which tokens are sampled."""

    temperature: Annotated[float | None, doc("0: greedy.")]
    top_p: Annotated[float | None, doc("0 to 1.")]
    seed: Annotated[int | None, doc("Null where nothing is drawn.")]


class Thinking(Record, frozen=True, kw_only=True):
    """Whether a model was to reason before it answers, and whether it did."""

    asked: Annotated[str | None, doc("on or off.")]
    seen: Annotated[bool, doc("Whether reasoning came.")]


class Conditions(Record, frozen=True, kw_only=True):
    """Conditions that must be equal between backends: cache, lengths, sampling, engine values."""

    api: Annotated[
        str,
        doc(
            "That requests spoke: chat, completions, responses, messages, embeddings, rerank or "
            "transcriptions."
        ),
    ] = "chat"
    content: Annotated[
        str | None, doc("Of the prompts: random, prose, code, json or a file; null: not kept.")
    ] = None
    images: Annotated[str | None, doc("Images of the requests, in words; null: none.")] = None
    cache: Annotated[CacheState | None, doc("Of the prefix cache.")] = None
    prefix_cache: Annotated[bool | None, doc("On or off.")] = None
    exact_output: Annotated[ExactOutput | None, doc("Of the answers.")] = None
    output_tokens_mean: Annotated[float | None, doc("Of the measured answers.")] = None
    output_text: Annotated[OutputText | None, doc("Of the measured answers; null without any.")] = None
    prompt_tokens: Annotated[PromptTokens | None, doc("Mean, the first few, and a hash of all.")] = None
    sampling: Annotated[Sampling | None, doc("As asked.")] = None
    thinking: Annotated[Thinking | None, doc("Asked for, and seen.")] = None
    # A dialect may send any JSON.
    sent_fields: Annotated[dict[str, Any] | None, doc("Of every request, in the engine's words.")] = None
    unsupported: Annotated[dict[str, str], doc("What the engine has no field for, and why.")] = msgspec.field(
        default_factory=dict
    )
    engine_values: Annotated[
        dict[str, Value] | None, doc("Values of the definition that the engine was started with.")
    ] = None
    settings: Annotated[
        dict[str, str], doc("By code of the table of conditions, as the run's manifest says.")
    ] = msgspec.field(default_factory=dict)
    unclassified: Annotated[
        dict[str, str] | None, doc("Flags, variables and values outside that table; null: none are known.")
    ] = None
    tuned: Annotated[tuple[str, ...], doc("Engine values that follow from the workload.")] = ()
    searched: Annotated[tuple[str, ...], doc("Codes of the table of conditions that `bench tune` set.")] = ()
    disagrees: Annotated[
        dict[str, str], doc("By the other backend: answers that differ beyond what load does.")
    ] = msgspec.field(default_factory=dict)
