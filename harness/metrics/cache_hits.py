"""Prefix-cache hit rate: cached over prompt tokens, and where the figure comes from."""

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from harness.metrics import prefix
from harness.metrics.reason import OfServer
from harness.metrics.view import CellView, Figures, Mask, RequestView, Rows
from harness.model import CellFacts, known
from harness.records.layout import UNKNOWN
from harness.records.request_table import RequestTable


def compute(cell: CellView) -> Figures:
    rate, source = cell.of(hit_rate_of)
    part = host_share(cell.facts.server_counters)
    host = None if part is None or rate is None else part * rate
    nulls = (
        {} if rate is not None else {"prefix_cache_hit_rate": why_unknown(cell, cell.facts.server_counters)}
    )
    if part is None:
        nulls["host_cache_hit_rate"] = OfServer("the engine does not count by where cached tokens came from")
    elif rate is None:
        nulls["host_cache_hit_rate"] = nulls["prefix_cache_hit_rate"]
    asked, state = cell.requested, cell.facts.cache.requested
    by_block = None if asked is None else prefix.ideals(cell, asked, state=state, replicas=_went(cell, asked))
    return Figures(
        prefix_cache_hit_rate=rate,
        prefix_cache_source=source,
        host_cache_hit_rate=host,
        prefix_cache_ideal=_ideal(cell),
        prefix_cache_ideal_by_block=by_block,
        nulls=nulls,
    )


def hit_rate_of(cell: CellView) -> tuple[float | None, str | None]:
    """Cached over prompt tokens, and the source: usage blocks of measured answers, else the engine's
    counters.

    Counters are of the whole cell, warm-up included; their `prompt_tokens` include the cached ones.
    """
    share = cached_share(cell.answers)
    if share is not None:
        return share, "usage"
    share = _cached_by_counters(cell.facts.server_counters)
    return (None, None) if share is None or share > 1 else (share, "counters")


def measured_facts(cell: CellView) -> CellFacts:
    """The facts of the cell, with those of the whole workload replaced by those of the requests in the hit
    rate: of one cache, since that of several servers may be shared."""
    asked, measured = cell.requested, cell.answers["seq"]
    if asked is None or not len(measured):
        return cell.facts
    counted, counts = _in_the_rate(cell), _counts(cell, asked)
    shared, content = prefix.reusable(asked, block=1, state=None, **counts or {})
    template = 0.0
    if counts:  # prompts that the server counted have the template too, which first turns show
        first = (asked.numbers["turn"] <= 0) & (counts["prompt_tokens"] != UNKNOWN)
        beyond = (content - asked.numbers["content_tokens"])[first]
        template = max(float(beyond.sum()) / max(len(beyond), 1), 0.0)
    workload = replace(
        cell.facts.workload,
        content_tokens_mean=float(content[measured].mean()) - template,
        ideal_hit_rate=prefix.share(shared, content, counted),
        shared_share=prefix.ideal_hit_rate(asked, counted, state="warm", counts=counts),
        primed_share=prefix.ideal_hit_rate(asked, counted, state="primed", counts=counts),
    )
    return replace(cell.facts, workload=workload)


def _in_the_rate(cell: CellView) -> slice | NDArray[np.int64]:
    """Positions of the requests that the hit rate is of: counters are of warm-up too."""
    return slice(None) if cell.of(hit_rate_of)[1] == "counters" else cell.answers["seq"]


def _went(cell: CellView, asked: RequestTable) -> NDArray[np.int64] | None:
    """The replica of each request asked for, UNKNOWN if it was not sent; None for one server."""
    if known(cell.facts.urls) is None:
        return None
    went = np.full(len(asked), UNKNOWN, np.int64)
    went[cell.requests["seq"]] = cell.requests["replica"]
    return went


def _ideal(cell: CellView) -> float:
    """The ideal from the declared state; from a cold start where it is not known what was asked for."""
    asked, workload = cell.requested, cell.of(measured_facts).workload
    if asked is None or not len(cell.answers):
        return workload.ideal_hit_rate
    return prefix.ideal_hit_rate(
        asked,
        _in_the_rate(cell),
        state=cell.facts.cache.requested,
        replicas=_went(cell, asked),
        counts=_counts(cell, asked),
    )


def _counts(cell: CellView, asked: RequestTable) -> Mapping[str, NDArray[np.int64]] | None:
    """What the server counted where the length of a turn is not known otherwise: after reasoning and tool
    calls."""
    later = (asked.numbers["turn"] > 0).any() and not asked.has_calls()
    changes = prefix.reasoned(cell.requests).any() or any(cell.records.tool_calls)
    return prefix.counted(cell, asked) if later and changes else None


def counted_share(counters: Mapping[str, float] | None, part: str, whole: str) -> float | None:
    """One counter over another, above 1 where they cannot be right; None if one is missing, or `whole` 0."""
    if not counters or not counters.get(whole) or part not in counters:
        return None
    return counters[part] / counters[whole]


def _cached_by_counters(counters: Mapping[str, float] | None) -> float | None:
    return counted_share(counters, "cached_prompt_tokens", "prompt_tokens")


def host_share(counters: Mapping[str, float] | None) -> float | None:
    """The share of the cached tokens of the whole cell that came from behind the KV cache; None if not
    counted."""
    if not counters or not {"host_cached_tokens", "cached_prompt_tokens"} <= counters.keys():
        return None
    return counters["host_cached_tokens"] / max(counters["cached_prompt_tokens"], 1.0)


def cached_share(rows: Rows) -> float | None:
    """Returns the share of the prompt tokens of these answers that came from a cache; None where a usage
    does not tell, or has more of them than there were.
    """
    possible = _known(rows) & (rows["cached_tokens"] <= rows["prompt_tokens"])
    known = possible.all() and rows["prompt_tokens"].sum() > 0
    return float(rows["cached_tokens"].sum() / rows["prompt_tokens"].sum()) if known else None


def why_unknown(view: RequestView, counters: Mapping[str, float] | None) -> str:
    """The reason that there is no hit rate."""
    known, answers = len(counted(view)), len(view.answers)
    if len(beyond_prompt(view)) or (_cached_by_counters(counters) or 0.0) > 1:
        return "the server counts more cached tokens than prompt tokens"
    if not known:
        return OfServer("neither usage nor counters report cached tokens")
    if known < answers:
        return f"the server reports cached tokens of {known} of {answers} answers only"
    return "the server counts no prompt tokens"


def _known(rows: Rows) -> Mask:
    mask: Mask = (rows["prompt_tokens"] != UNKNOWN) & (rows["cached_tokens"] != UNKNOWN)
    return mask


def counted(view: RequestView) -> Rows:
    """Measured answers whose prompt and cached tokens the server reports."""
    rows: Rows = view.answers[_known(view.answers)]
    return rows


def beyond_prompt(view: RequestView) -> Rows:
    """Answers with more cached than prompt tokens. If there is one, no count of this
    server can be trusted.
    """
    rows = counted(view)
    beyond: Rows = rows[rows["cached_tokens"] > rows["prompt_tokens"]]
    return beyond
