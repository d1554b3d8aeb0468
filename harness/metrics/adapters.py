"""The cost of LoRA adapters: against the base model, and of loading one first."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from harness.metrics.latency import median_ms
from harness.metrics.view import CellView, Figures
from harness.model import AdapterFigures
from harness.model.numbers import quotient
from harness.records.layout import UNKNOWN
from harness.records.request_table import BASE


def compute(cell: CellView) -> Figures:
    """The costs of adapters; None where no request names one."""
    requested, count = cell.requested, cell.facts.workload.adapters
    if requested is None or not count:
        return Figures(adapters=None)
    if "lora" in cell.facts.request.unsupported:
        why = "requests to this engine cannot name an adapter: all went to the base model"
        return Figures({"adapters": why}, adapters=None)
    kinds = requested.kinds_of(cell.requests["seq"])
    slots = (cell.facts.engine_values or {}).get("lora_slots")
    base = kinds == BASE
    order = np.argsort(cell.requests["sent_ns"], kind="stable")
    order = order[cell.requests["sent_ns"][order] != UNKNOWN]
    first = np.zeros(len(kinds), bool)
    if isinstance(slots, int):
        first[order] = loaded([str(kind) for kind in kinds[order]], slots)
    held = ~base & ~first
    parts = {"base": cell.part(base), "held": cell.part(held)}
    ttft, tpot = (
        {name: median_ms(part, metric) for name, part in parts.items()} for metric in ("ttft_ms", "tpot_ms")
    )
    swapped = median_ms(cell.part(first), "ttft_ms")
    return Figures(
        adapters=AdapterFigures(
            count=count,
            slots=slots if isinstance(slots, int) else None,
            swaps=len(cell.part(first).measured_requests),
            swap_ms=_less(swapped, ttft["held"]),
            ttft_over_base=quotient(ttft["held"] if ttft["held"] is not None else swapped, ttft["base"]),
            tpot_over_base=quotient(tpot["held"], tpot["base"]),
        )
    )


def loaded(names: Sequence[str], slots: int) -> list[bool]:
    """Whether each request, in order, names an adapter that none of the last `slots` adapters is."""
    held: OrderedDict[str, None] = OrderedDict()
    first = []
    for name in names:
        first.append(name != BASE and name not in held)
        if name != BASE:
            held[name] = None
            held.move_to_end(name)
            if len(held) > slots:
                held.popitem(last=False)
    return first


def _less(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other
