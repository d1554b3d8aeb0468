"""What a load point showed, in one sentence. Knows no output format."""

from collections.abc import Iterator, Sequence

from harness.model import Summary
from harness.report.measures import Measure, measure
from harness.report.text import listing, number, plain
from harness.report.verdicts import Finding, findings, primary
from harness.report.view import Group, Row

IN_WORDS = 3  # backends: with more, a list of values is harder to read than the table
_TURNED = {"faster": "slower", "slower": "faster"}


def sentence(summary: Summary, group: Group) -> str:
    """Who is best in the primary metric, and by how much; what was measured where nobody is."""
    of = measure(primary(summary))
    pairs = [finding for finding in findings(summary, group.point) if finding.primary]
    for row in group.rows:
        mine = [_seen_from(row.label, finding) for finding in pairs if row.label in (finding.a, finding.b)]
        words = [word for word, _other, _times in mine]
        if "faster" in words and "slower" not in words:
            return plain(_leads(row, of, mine), 600)
    return plain(_why_nobody(pairs, of) + _measured(group, of), 600)


def _seen_from(label: str, finding: Finding) -> tuple[str, str, str]:
    """Word, the other backend, and by how much."""
    if finding.a == label:
        return finding.word, finding.b, finding.times
    return _TURNED.get(finding.word, finding.word), finding.a, finding.times


def _leads(row: Row, of: Measure, mine: Sequence[tuple[str, str, str]]) -> str:
    value = row.spread(of.path)
    best = f"{row.label} leads in {of.name}" + (f" with {_value(value.median, of)}" if value else "")
    return f"{best}: {'; '.join(_parts(mine))}."


def _parts(mine: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    faster = [
        f"{other} ({times.partition(' ')[0]})" if times else other
        for word, other, times in mine
        if word == "faster"
    ]
    yield f"faster than {listing(faster)}"
    for word, text in (
        ("same", "the same as {} within noise"),
        ("not enough runs", "not decided against {}"),
        ("not comparable", "not comparable with {}"),
    ):
        others = [other for verdict, other, _times in mine if verdict == word]
        if others:
            yield text.format(listing(others))


def _why_nobody(pairs: Sequence[Finding], of: Measure) -> str:
    """Nothing where runs are missing: the page says so once."""
    words = {finding.word for finding in pairs}
    if words == {"same"}:
        return f"The same in {of.name} within noise. "
    if words == {"not comparable"}:
        reasons = dict.fromkeys(finding.why for finding in pairs)
        return f"Not comparable in {of.name}: {'; '.join(reasons)}. "
    return ""


def _measured(group: Group, of: Measure) -> str:
    if len(group.rows) <= IN_WORDS:
        return f"{'; '.join(map(_words, group.rows))}."
    values = [(value.median, row.label) for row in group.rows if (value := row.spread(of.path))]
    if not values:
        return "No valid measurement."
    (low, one), (high, other) = min(values), max(values)
    return f"{of.name} from {_value(low, of)} ({one}) to {_value(high, of)} ({other})."


def _words(row: Row) -> str:
    if not row.usable:
        return f"{row.label}: no valid measurement"
    first, rate = row.spread("ttft_ms.p50"), row.spread("output_tokens_per_s")
    wait = f"first token after {number(first.median)} ms" if first else "time to first token not known"
    speed = f"{number(rate.median)} output tokens/s" if rate else "token rate not known"
    return f"{row.label}: {wait} (median), {speed}" if first else f"{row.label}: {wait}, {speed}"


def _value(value: float, of: Measure) -> str:
    return f"{number(value * of.scale)} {of.unit}".strip()
