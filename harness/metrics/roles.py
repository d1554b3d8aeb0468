"""Engines behind one address that have roles: what each did, and its part of the time to the first token."""

from collections.abc import Mapping

from harness.metrics import series
from harness.metrics.ttft_parts import client_ttft_ms, mean_ms, whole
from harness.metrics.view import CellView, Figures
from harness.model import HistogramIncrease, Range, RoleFacts, Roles, known
from harness.model.choices import DECODE, PREFILL
from harness.model.replicas import RoleFigures, TtftSplit


def compute(cell: CellView) -> Figures:
    """None where no engine has a role."""
    facts = known(cell.facts.roles)
    if not facts:
        return Figures(roles=None)
    split, why = ttft_split(cell, {each.role: each.histograms for each in facts})
    return Figures(
        roles=Roles(of={each.role: _figures(cell, each) for each in facts}, ttft_split=split),
        nulls={"roles.ttft_split": why} if why else {},
    )


def _figures(cell: CellView, facts: RoleFacts) -> RoleFigures:
    """Gauges are of the role's engines together; how full a KV cache is, of the fullest."""
    running, waiting, kv_use = (_gauges(cell, facts, name) for name in ("running", "waiting", "kv_use"))
    counted = facts.counters or {}
    return RoleFigures(
        urls=facts.urls,
        prompt_tokens=counted.get("prompt_tokens"),
        cached_prompt_tokens=counted.get("cached_prompt_tokens"),
        output_tokens=counted.get("output_tokens"),
        running=sum(each.mean for each in running) if running else None,
        waiting=sum(each.mean for each in waiting) if waiting else None,
        kv_use=max(each.max for each in kv_use) if kv_use else None,
        ttft_ms=mean_ms(facts.histograms.get("ttft")),
        e2e_ms=mean_ms(facts.histograms.get("e2e")),
    )


def _gauges(cell: CellView, facts: RoleFacts, name: str) -> list[Range]:
    """Returns the gauge of each engine of the role; empty where one was not sampled over the window."""
    if cell.window is None:
        return []
    samples = (cell.telemetry.get(f"engine.{number}.{name}") for number in facts.places)
    found = [series.describe(each, cell.window) for each in samples]
    return [each for each in found if each is not None] if None not in found else []


def ttft_split(
    cell: CellView, shapes: Mapping[str, Mapping[str, HistogramIncrease]]
) -> tuple[TtftSplit | None, str]:
    """Splits the mean TTFT of all answers, the warm-up's too, as the engines counted them; or why not."""
    answered = whole(cell)
    read = shapes.get(PREFILL, {}).get("e2e")
    written = shapes.get(DECODE, {}).get("ttft")
    if read is None or written is None:
        return None, "the engines do not count the times of both roles"
    if not len(answered) or {read.count, written.count} != {len(answered)}:
        counts = f"{read.count:g} read, {written.count:g} went on with, {len(answered)} answered"
        return None, f"not every request went through both roles once: {counts}"
    client_ms = client_ttft_ms(answered)
    prefill_ms, decode_ms = mean_ms(read) or 0.0, mean_ms(written) or 0.0
    return TtftSplit(
        client_ms=client_ms,
        prefill_ms=prefill_ms,
        decode_ms=decode_ms,
        transfer_ms=mean_ms(shapes[DECODE].get("transfer")),
        rest_ms=client_ms - prefill_ms - decode_ms,
    ), ""
