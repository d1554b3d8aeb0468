"""Latencies of a cell by class of request: kind, turn, depth in a session, URL."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.metrics import in_flight, latency
from harness.metrics.cache_hits import cached_share
from harness.metrics.counts import output_tokens
from harness.metrics.distribution import NEVER, made_infinite
from harness.metrics.replicas import replicas
from harness.metrics.view import CellView, Figures, Mask, RequestView
from harness.model import ClassStats, LatencyStats
from harness.records.request_table import ALONE, BESIDE, HEAVY, RequestTable

_LEAST_POWER = 7  # shorter prompts are of one depth

# Latencies by the name of the class, and by its dotted path the reason for each that failed requests made
# infinite. Reasons of classes that are merely small are left out: they would be most of a summary.
ByClass = tuple[dict[str, ClassStats] | None, dict[str, str]]


def compute(cell: CellView) -> Figures:
    loss, why = victim_loss(cell, cell.requested)
    nulls = {"victim_loss": why} if why else {}
    stats: dict[str, dict[str, ClassStats] | None] = {}
    for key in _CLASSES:
        stats[key], reasons = by_class(key, cell, cell.requested)
        nulls |= reasons
    by_url = replicas(cell, cell.facts, cell.window, cell.shares)
    return Figures(nulls, victim_loss=loss, replicas=by_url, **stats)


def _kinds(requested: RequestTable, rows: NDArray[Any]) -> Iterator[tuple[str, Mask]]:
    """Yields nothing for a workload of one kind."""
    names = set(requested.kinds)
    if len(names) > 1:
        kinds = requested.kinds_of(rows)
        yield from (
            (str(kind), kinds == kind) for kind in sorted(names, key=lambda kind: (size_of(kind), kind))
        )


def size_of(name: str) -> int:
    """The number that the name of a class begins with, such as 4096 of `4k`; 0: none."""
    number = re.match(r"(\d+)(k?)", name)
    return int(number[1]) * (1024 if number[2] else 1) if number else 0


def victim_loss(view: RequestView, requested: RequestTable | None) -> tuple[float | None, str]:
    """Mean E2E of victims next to heavy requests over that of those alone, or the reason there is none.

    A victim that was to be alone is not counted if a heavy request was still in flight.
    """
    if requested is None or not {ALONE, BESIDE} <= set(requested.kinds):
        return None, "no victim probe"
    kinds = requested.kinds_of(view.requests["seq"])
    disturbed = (kinds == ALONE) & in_flight.at_once_with(view.requests, kinds == HEAVY)
    chosen = (kinds == ALONE) & ~disturbed, kinds == BESIDE
    alone, beside = (latency.values_ms(view.part(mask))["e2e_ms"] for mask in chosen)
    if disturbed.any() and not len(alone):
        return None, "heavy requests were in flight whenever a victim was to be alone"
    if not len(alone) or not len(beside) or not alone.any():
        return None, "no victim was measured"
    if lost := np.count_nonzero(np.isinf([*alone, *beside])):
        return None, f"{lost} of {len(alone) + len(beside)} victims {NEVER}"
    return float(beside.mean() / alone.mean()), ""


def _turns(requested: RequestTable, rows: NDArray[Any]) -> Iterator[tuple[str, Mask]]:
    """Counts turns from "1"; yields nothing where requests are not turns of a chat."""
    if requested.has_sessions():
        turns = requested.numbers["turn"][rows]
        yield from ((str(turn + 1), turns == turn) for turn in np.unique(turns).tolist())


def _depths(requested: RequestTable, rows: NDArray[Any]) -> Iterator[tuple[str, Mask]]:
    """Goes by prompt tokens without the chat template, up to a power of two; only recorded calls have it."""
    if requested.has_calls():
        numbers = requested.numbers[rows]
        tokens = np.maximum(numbers["kept"] + numbers["content_tokens"], 1)
        powers = np.maximum(np.ceil(np.log2(tokens)), _LEAST_POWER).astype(int)
        yield from ((_tokens(1 << power), powers == power) for power in np.unique(powers).tolist())


_CLASSES = {"by_kind": _kinds, "by_turn": _turns, "by_depth": _depths}


def classes_of(requested: RequestTable) -> list[str]:
    """Classes that its requests are of, as paths of metrics name them: `by_kind.long`."""
    rows = np.arange(len(requested))
    return [f"{key}.{name}" for key, split in _CLASSES.items() for name, _ in split(requested, rows)]


def _tokens(count: int) -> str:
    return str(count) if count < 1024 else f"{count >> 10}k"


def by_class(key: str, view: RequestView, requested: RequestTable | None) -> ByClass:
    """Latencies by the classes of `key`, such as by_kind; None where the workload has none of them."""
    classes: dict[str, ClassStats] = {}
    nulls: dict[str, str] = {}
    for kind, mask in () if requested is None else _CLASSES[key](requested, view.requests["seq"]):
        part = view.part(mask)
        stats: dict[str, LatencyStats] = {}
        for metric, values in latency.values_ms(part).items():
            if metric in ClassStats.__struct_fields__:
                stats[metric], reasons = latency.stats_of(metric, values)
                never = {name: why for name, why in reasons.items() if made_infinite(why)}
                nulls |= {f"{key}.{kind}.{metric}.{name}": why for name, why in never.items()}
        classes[kind] = ClassStats(
            requests=len(part.measured_requests),
            ok=len(part.answers),
            **stats,
            cached_share=cached_share(part.answers),
            tokens_per_event=output_tokens(part).tokens_per_event,
        )
    return classes or None, nulls
