"""What one number per backend hides: what is wrong with answers, drafts kept, latencies by class and turn."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from harness.model import WITHOUT_TEXT, Summary, known
from harness.model.json_path import value_at
from harness.model.measures import Measure, measure
from harness.model.numbers import number, percent_figure
from harness.records.request_table import FREE
from harness.report.depths import depths
from harness.report.view import Row, groups
from harness.report.wording import plain

_OWN = ("constrained", "asked", "rate", "valid")  # of a kind's counts; the others say what is wrong
_LEFT_OUT = ("truncated", "unjudged", "refused", "failed")
_TURNS = 6


def class_lines(summary: Summary) -> Iterator[str]:
    for group in groups(summary):
        for row in group.rows:
            subject = f"{row.label} {group.point.label}"
            yield from (plain(f"{subject}, {line}", 600) for line in _row_lines(row))


def _row_lines(row: Row) -> Iterator[str]:
    for check, kinds in _answers(row).items():
        parts = (_counts(kind if kind != check else "", counts) for kind, counts in sorted(kinds.items()))
        yield f"{check.replace('_', ' ')}: {'; '.join(parts)}"
    refusals = Counter[str]()
    for cell in row.usable:
        refusals.update((known(cell.answers.refusals) if cell.answers else None) or {})
    if refusals:
        yield "refused: " + "; ".join(f"{count} x {reason}" for reason, count in refusals.most_common())
    if (kept := row.median("server.acceptance_rate")) is not None:
        yield f"drafts: {percent_figure(kept)}% of the drafted tokens were kept (engine's counters)"
    for shown in _waits(row):
        yield from _latencies(row, "by_kind", shown)
    if any(tokens > 1 for tokens in medians(row, "by_kind", "tokens_per_event").values()):
        yield from _by_class(row, "by_kind", "tokens_per_event", "tokens per event", str)
    if not any(cell.sessions for cell in row.cells):  # whose calls are looked at by depth
        yield from _latencies(row, "by_turn", measure("ttft_ms.p50"))


def _waits(row: Row) -> list[Measure]:
    whole = any(cell.conditions.api in WITHOUT_TEXT for cell in row.cells)
    return list(map(measure, ("e2e_ms.p50",) if whole else ("ttft_ms.p50", "tpot_ms.p50")))


def kinds_words(row: Row) -> str:
    """`TTFT p50 short: 104 ms, long: 255 ms; TPOT p50 short: 10.0 ms, long: 10.2 ms`; "" for requests of one
    kind, and where a table or other words have its kinds.
    """
    if depths(row) or any(cell.adapters or cell.images for cell in row.cells):
        return ""
    found = ((shown.name, _listed(row, "by_kind", shown.path, shown.with_unit)) for shown in _waits(row))
    return plain("; ".join(f"{name} {parts}" for name, parts in found if parts), 600)


def _answers(row: Row) -> dict[str, dict[str, Counter[str]]]:
    """Counts by check and kind, summed over the repeats that count."""
    by_kind: dict[str, dict[str, Counter[str]]] = {}
    for cell in row.usable:
        for check, kinds in (cell.answers.checks if cell.answers else {}).items():
            for kind, added in kinds.items():
                counts = {key: int(n or 0) for key, n in added.items() if key != "rate"}
                by_kind.setdefault(check, {}).setdefault(kind, Counter()).update(counts)
    return by_kind


def _counts(kind: str, counts: Mapping[str, int]) -> str:
    judged = counts["asked"] - sum(counts[key] for key in _LEFT_OUT)
    wrong = [f"{n} {what}" for what, n in counts.items() if n and what not in _OWN]
    free = "" if counts["constrained"] or kind == FREE else ", not constrained"
    right = f"{counts['valid']} of {judged} right" if judged else "none to judge"
    return f"{kind} {right}{free}".lstrip() + (f" ({', '.join(wrong)})" if wrong else "")


def _latencies(row: Row, key: str, shown: Measure) -> Iterator[str]:
    return _by_class(row, key, shown.path, shown.name, shown.with_unit)


def _by_class(row: Row, key: str, path: str, title: str, with_unit: Callable[[str], str]) -> Iterator[str]:
    if parts := _listed(row, key, path, with_unit):
        yield f"{title} {key.replace('_', ' ')}: {parts}"


def _listed(row: Row, key: str, path: str, with_unit: Callable[[str], str]) -> str:
    """`short: 104 ms, long: 255 ms`; "" without such a figure."""
    by_name = medians(row, key, path)
    parts = [with_unit(f"{name}: {number(median)}") for name, median in islice(by_name.items(), _TURNS)]
    rest = len(by_name) - _TURNS
    return ", ".join(parts) + (f", and {rest} more" if rest > 0 else "")


def medians(row: Row, key: str, path: str) -> dict[str, float]:
    """Medians of the repeats by class, as in the tables; classes without a figure are left out."""
    names = dict.fromkeys(name for cell in row.usable for name in value_at(cell, key) or ())
    found = ((name, row.median(f"{key}.{name}.{path}")) for name in names)
    return {name: median for name, median in found if median is not None}
