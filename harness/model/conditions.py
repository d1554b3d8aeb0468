"""Conditions under which a cell was measured, as far as another cell's may differ from them."""

import json
from typing import Annotated, Any

import msgspec

from harness.model.cell_facts import EngineFound, Value
from harness.model.record import UNSET, Record, UnsetType, doc

NOT_GIVEN = "not given"  # in the place of a setting that only others have


class CacheState(Record, frozen=True, kw_only=True):
    """State that the prefix cache was asked to be in, and whether the engine's counts confirm it."""

    requested: Annotated[str, doc("State that the scenario asks for: cold, warm, primed or any.")]
    description: Annotated[str | None, doc("Preparation of the prefix cache, in words; null: not kept.")]
    holds: Annotated[
        bool | None, doc("Whether the engine's counts confirm the state; null: they cannot tell.")
    ]
    measured: Annotated[str, doc("Hit rate by the engine's counts, or why there is none, in words.")]
    limit: Annotated[str, doc("Limit that the hit rate has to keep to, in words; empty: none.")]


class ExactOutput(Record, frozen=True, kw_only=True):
    """Whether answers were to have an exact length, and whether the engine was made to keep it."""

    asked: Annotated[bool | None, doc("Whether answers were to have an exact length; null: not kept.")]
    forced: Annotated[bool, doc("Whether the engine was made to keep the exact length.")]


class PromptTokens(Record, frozen=True, kw_only=True):
    """Tokens of the chats of the cell, warm-up included."""

    mean: Annotated[
        float | None, doc("Mean tokens per prompt, as the server counts them; null: not reported.")
    ]
    first: Annotated[
        list[int | None], doc("Tokens of the first 8 prompts, as the server counts them; null: not reported.")
    ]
    sha256: Annotated[str | None, doc("SHA-256 of the tokens of all prompts; null: some are not reported.")]


class OutputText(Record, frozen=True, kw_only=True):
    """Characters of the measured answers."""

    per_answer: Annotated[float, doc("Mean characters per answer.")]
    per_answer_error: Annotated[float, doc("Standard error of `per_answer`, characters.")]
    per_token: Annotated[
        float | None,
        doc("Characters per output token, as the server counts tokens; null: some are not reported."),
    ]
    per_token_error: Annotated[
        float | None, doc("Standard error of `per_token`, characters; null: no `per_token`.")
    ]


class Sampling(Record, frozen=True, kw_only=True):
    """Parameters by which tokens are sampled."""

    temperature: Annotated[float | None, doc("Sampling temperature, 0: greedy; null: not kept.")]
    top_p: Annotated[
        float | None, doc("Probability mass that tokens are drawn from, 0 to 1; null: not kept.")
    ]
    seed: Annotated[int | None, doc("Seed of sampling; null: nothing is drawn.")]


class Thinking(Record, frozen=True, kw_only=True):
    """Whether a model was to reason before it answers, and whether it did."""

    asked: Annotated[str | None, doc("Thinking as requested: on or off; null: not kept.")]
    seen: Annotated[bool, doc("Whether any answer came with reasoning.")]


class Conditions(Record, frozen=True, kw_only=True):
    """Conditions that must be equal between backends: cache, lengths, sampling, engine values."""

    api: Annotated[str | None, doc("API in use, by its name in docs/apis.md; null: not known.")] = "chat"
    content: Annotated[
        str | None, doc("Content of the prompts: random, prose, code, json or a file; null: not kept.")
    ] = None
    images: Annotated[str | None, doc("Images of the requests, in words; null: none.")] = None
    cache: Annotated[CacheState | None, doc("State of the prefix cache; null: not kept.")] = None
    prefix_cache: Annotated[
        bool | None, doc("Whether the prefix cache is on, as declared; null: not known.")
    ] = None
    exact_output: Annotated[
        ExactOutput | None, doc("Exact length of the answers, as asked and as forced; null: not kept.")
    ] = None
    output_tokens_mean: Annotated[
        float | None,
        doc("Mean tokens per measured answer, as the server counts them; null: some not reported."),
    ] = None
    output_text: Annotated[
        OutputText | None, doc("Characters of the measured answers; null: no answers.")
    ] = None
    prompt_tokens: Annotated[
        PromptTokens | None,
        doc("Tokens of the prompts: mean, the first few, and a hash of all; null: not kept."),
    ] = None
    sampling: Annotated[Sampling | None, doc("Sampling parameters, as requested; null: not kept.")] = None
    thinking: Annotated[Thinking | None, doc("Thinking, as requested and as seen; null: not kept.")] = None
    # A dialect may send any JSON.
    sent_fields: Annotated[
        dict[str, Any] | None,
        doc("JSON fields that every request has, in the engine's terms; null: not kept."),
    ] = None
    own_fields: Annotated[
        dict[str, Any] | UnsetType, doc("Fields among `sent_fields` that the scenario adds; missing: none.")
    ] = UNSET
    unsupported: Annotated[
        dict[str, str],
        doc("Settings that the engine's requests have no field for, and what follows, by name."),
    ] = msgspec.field(default_factory=dict)
    engine_values: Annotated[
        dict[str, Value] | None,
        doc("Values of the definition that the engine was started with; null: bench did not start it."),
    ] = None
    engine: Annotated[
        EngineFound | UnsetType, doc("Engine as it was found when the cell was measured; missing: not kept.")
    ] = UNSET
    answered_model: Annotated[
        dict[str, str],
        doc("Model that all answers name, by the model or adapter requested, if they name it and no other."),
    ] = msgspec.field(default_factory=dict)
    settings: Annotated[
        dict[str, str],
        doc("Settings of the engine, by code of the table of conditions, from manifest and `engine.info`."),
    ] = msgspec.field(default_factory=dict)
    unclassified: Annotated[
        dict[str, str] | None,
        doc("Flags, variables and values that the table of conditions lacks; null: none are known."),
    ] = None
    tuned: Annotated[tuple[str, ...], doc("Engine values that follow from the workload, in words.")] = ()
    searched: Annotated[
        tuple[str, ...], doc("Codes of the table of conditions whose values `bench tune` set.")
    ] = ()
    disagrees: Annotated[
        dict[str, str], doc("Disagreement in answers beyond what load does, in words, by the other backend.")
    ] = msgspec.field(default_factory=dict)

    @property
    def models_stated(self) -> str | None:
        """Name in all answers; of several adapters each with what was asked for. None where none is named."""
        names = self.answered_model
        if len(names) < 2:
            return next(iter(names.values()), None)
        return ", ".join(f"{answered} for {requested}" for requested, answered in sorted(names.items()))

    @property
    def fields_stated(self) -> str | None:
        """Fields that the scenario adds, as JSON; `none` without one, None where requests were not kept."""
        if self.sent_fields is None:
            return None
        return json.dumps(self.own_fields, sort_keys=True) if self.own_fields else "none"
