"""Conditions under which a cell was measured, as far as another cell's may differ from them."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.conditions.cache_in_effect import state, verify
from harness.metrics.view import RequestView, Rows
from harness.model import (
    AnsweredModel,
    CacheState,
    CellFacts,
    Conditions,
    ExactOutput,
    OutputText,
    PromptTokens,
    Sampling,
    Thinking,
    known,
)
from harness.records.layout import UNKNOWN, EventKind
from harness.records.request_table import RequestTable

_FIRST = 8  # chats whose prompt tokens are kept one by one, so that a difference can be shown


def conditions(
    view: RequestView, facts: CellFacts, hit_rate: float | None, requested: RequestTable | None = None
) -> Conditions:
    """Cells measured before a fact was kept have null in its place."""
    request = facts.request
    stated = facts.imported.reported if facts.imported else {}
    verified = verify(view, facts, hit_rate)
    reasoned = bool((view.records.events["kind"] == EventKind.REASONING).any())
    chats = view.requests
    if requested is not None:  # without later turns, which hold the answers that this engine gave
        chats = chats[requested.numbers["turn"][chats["seq"]] <= 0]
    return Conditions(
        cache=CacheState(
            requested=state(facts),
            description=facts.cache.description,
            holds=verified.holds,
            measured=verified.measured,
            limit=verified.limit,
        ),
        prefix_cache=facts.prefix_cache,
        exact_output=ExactOutput(asked=request.exact_output, forced=facts.workload.exact_output),
        output_tokens_mean=_mean(view.answers["output_tokens"])
        or stated_length(stated, "output_tokens_per_s"),
        output_text=_output_text(view.answers),
        prompt_tokens=_prompt_tokens(chats, stated_length(stated, "input_tokens_per_s")),
        sampling=Sampling(temperature=request.temperature, top_p=request.top_p, seed=request.seed),
        # A file of another tool says neither which texts were reasoning nor which API was used.
        thinking=None if facts.imported else Thinking(asked=request.thinking, seen=reasoned),
        api=None if facts.imported else request.api,
        content=facts.workload.content,
        images=facts.workload.images,
        sent_fields=request.fields,
        own_fields=request.own_fields,
        unsupported=request.unsupported,
        engine_values=facts.engine_values,
        engine=facts.engine,
        answered_model=_answered_model(known(facts.answered_models) or ()),
    )


def _answered_model(found: Sequence[AnsweredModel]) -> dict[str, str]:
    several = Counter(model.requested for model in found)
    return {model.requested: model.answered for model in found if several[model.requested] == 1}


def stated_length(reported: Mapping[str, float], rate: str) -> float | None:
    """Mean tokens of a request, by the rates that a file of another tool states; None: it does not."""
    tokens, requests = reported.get(rate), reported.get("requests_per_s")
    return tokens / requests if tokens and requests else None


def _mean(values: NDArray[np.int32]) -> float | None:
    """None where one is not known."""
    return float(values.mean()) if len(values) and (values != UNKNOWN).all() else None


def _output_text(rows: Rows) -> OutputText | None:
    if not len(rows):
        return None
    chars, tokens = rows["output_chars"].astype(float), rows["output_tokens"].astype(float)
    if (chars < 0).any():
        return None
    root = len(rows) ** 0.5
    counted = bool((rows["output_tokens"] != UNKNOWN).all()) and tokens.sum() > 0
    each = float(chars.sum() / tokens.sum()) if counted else None
    return OutputText(
        per_answer=float(chars.mean()),
        per_answer_error=float(chars.std() / root),
        per_token=each,
        per_token_error=None if each is None else float((chars - each * tokens).std() / tokens.mean() / root),
    )


def _prompt_tokens(requests: Rows, stated: float | None) -> PromptTokens:
    """Counts tokens of the chats of the cell, warm-up included: what two templates make of the same
    messages. `stated`: their mean, where no chat is known.
    """
    counts = requests["prompt_tokens"].astype("<i4")
    known = counts[counts != UNKNOWN]
    complete = bool(len(counts)) and len(known) == len(counts)
    return PromptTokens(
        mean=float(known.mean()) if len(known) else stated,
        first=[None if count == UNKNOWN else int(count) for count in counts[:_FIRST]],
        sha256=hashlib.sha256(counts.tobytes()).hexdigest() if complete else None,
    )
