"""What stands behind each verdict: the value of every run, the pairs, the intervals, p and its level."""

from collections.abc import Iterator, Mapping, Sequence

from harness.dotted import number_at
from harness.plan import LoadPoint
from harness.report.html.source import Source
from harness.report.html.tags import Html, details, items, join, table, tag
from harness.report.measures import Measure, measure
from harness.report.text import NOT_KNOWN, number, plain
from harness.report.view import Json, point_words, verdict


def evidence(source: Source) -> Iterator[Html]:
    """One that opens per verdict; those of the primary metric first, the others folded together."""
    entries: Sequence[Json] = source.summary.get("comparison") or ()
    tested = [entry for entry in entries if entry.get("ratio") or any(entry.get("failed") or ())]
    primary = [_verdict(source, entry) for entry in tested if entry.get("primary")]
    others = [_verdict(source, entry) for entry in tested if not entry.get("primary")]
    if primary:
        yield tag("h3", "Evidence for each verdict")
        yield from primary
    if others:
        yield details(f"Evidence for the other metrics: {len(others)} verdicts", *others)


def _verdict(source: Source, entry: Json) -> Html:
    of, point = measure(str(entry["metric"])), LoadPoint.of(entry)
    title = f"{entry['a']} against {entry['b']}, {of.name}, {point_words(point)}: {entry['verdict']}"
    return details(
        plain(title, 300),
        tag("p", plain(str(entry.get("why") or ""), 1000)),
        _runs(source.summary, entry, of),
        items(_facts(source.summary, entry, of)),
    )


def _runs(summary: Json, entry: Json, of: Measure) -> Html:
    a, b = (_cells(summary, entry, str(entry[side])) for side in ("a", "b"))
    rows = [
        [str(repeat), _value(a.get(repeat), of), _value(b.get(repeat), of), _quotient(a, b, repeat, of)]
        for repeat in sorted({*a, *b})
    ]
    head = ["repeat", plain(str(entry["a"]), 60), plain(str(entry["b"]), 60), "first / second"]
    return table(f"{of.title} of each run", head, rows, class_="numbers")


def _cells(summary: Json, entry: Json, label: str) -> Mapping[int, Json]:
    found = (cell for cell in summary.get("cells") or () if cell["label"] == label)
    here = LoadPoint.of(entry)
    return {int(cell.get("repeat", 0)): cell for cell in found if LoadPoint.of(cell) == here}


def _value(cell: Json | None, of: Measure) -> Html:
    if cell is None:
        return tag("span", "not measured", class_="unknown")
    if verdict(cell) == "INVALID":
        codes = ", ".join(str(one["code"]) for one in cell["validity"].get("reasons") or ())
        return tag("span", f"INVALID: {codes}", class_="invalid")
    value = number_at(cell, of.path)
    shown = tag("span", NOT_KNOWN if value is None else number(value * of.scale))
    state = cell.get("state")
    return join([shown, tag("small", str(state), class_="range")]) if state else shown


def _quotient(a: Mapping[int, Json], b: Mapping[int, Json], repeat: int, of: Measure) -> str:
    pair = [cells.get(repeat) for cells in (a, b)]
    if any(cell is None or verdict(cell) == "INVALID" for cell in pair):
        return ""
    first, second = (number_at(cell, of.path) for cell in pair)
    return f"{first / second:.3f}" if first is not None and second else ""


def _facts(summary: Json, entry: Json, of: Measure) -> Iterator[str]:
    rules = summary.get("verdict_rules") or {}
    confidence = rules.get("confidence")
    if entry.get("ratio"):
        at = f"{100 * confidence:g} % interval" if confidence else "interval"
        yield f"ratio, first over second: {_interval(entry['ratio'])}, {at} of this pair alone"
    if entry.get("family_ratio"):
        yield f"the same at the level that all verdicts together allow: {_interval(entry['family_ratio'])}"
    if entry.get("difference"):
        low, middle, high = (number(end * of.scale) for end in entry["difference"])
        yield f"difference, first minus second: {middle} ({low} to {high}) {of.unit}".strip()
    yield from _tests(entry, rules)
    paired = "in pairs of the same requests" if entry.get("paired") else "not paired"
    yield f"runs with a figure: {_both(entry.get('runs'))}, {paired}"
    yield f"runs measured: {_both(entry.get('measured'))}"
    if any(entry.get("failed") or ()):
        yield f"failed by the engine's doing: {_both(entry['failed'])}"
    if (smallest := entry.get("smallest_detectable")) is not None:
        yield f"smallest difference found in 4 of 5 such experiments: {100 * smallest:.3g} %"
    unequal = list(dict.fromkeys(_unequal(summary, entry)))
    yield from (f"unequal: {text}" for text in unequal)
    if not unequal:
        yield "unequal: nothing that is known"


def _tests(entry: Json, rules: Json) -> Iterator[str]:
    """Adjusted for the family, so that both are read against the same level."""
    level = rules.get("alpha")
    against = f", level {level:g}" if level is not None else ""
    for key, what in (("p_holm", "apart by more than the floor"), ("p_same_holm", "within the margin")):
        if entry.get(key) is not None:
            yield f"{what}: p = {entry[key]:.2g} after Holm{against}"


def _unequal(summary: Json, entry: Json) -> Iterator[str]:
    for one in summary.get("unequal") or ():
        if {entry["a"], entry["b"]} & set(one.get("labels") or ()):
            yield plain(str(one["text"]), 300) + (" (forbids a comparison)" if one.get("matters") else "")


def _interval(ratio: Sequence[float]) -> str:
    low, middle, high = ratio
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def _both(counts: Sequence[int] | None) -> str:
    return " and ".join(map(str, counts)) if counts else NOT_KNOWN
