"""Evidence that supports or limits the answer: agreement of the answers, the probe, others' claims and
definitions."""

from collections.abc import Iterator, Sequence

from harness.metrics.peers import TOOLS
from harness.model import ClaimResult, Finding
from harness.model.measures import measure
from harness.report.findings import claim_words
from harness.report.html.source import Source, backend_table
from harness.report.html.tags import Html, details, items, join, section, table, tag, text_table, with_code
from harness.report.tables.agreement_tables import agreement_tables
from harness.report.tables.peer_figures import pairs
from harness.report.view import Group, groups, point_words
from harness.report.wording import NOT_KNOWN, capital, or_unknown

AGREEMENT_EXPLAINED = (
    "The same questions with known answers, put to each backend greedily: a backend that is fast and answers "
    "differently does not do the same work."
)
PEERS_SHOWN = ("TTFT p50, ms", "ITL mean, ms", "TPOT mean, ms", "E2E p50, ms", "output, tok/s")
PEERS_EXPLAINED = (
    "The same records as other tools would have reported them: why two tools disagree about one server. "
    "`bench report RUN --as TOOL` prints every figure and the reasons."
)


def claims(source: Source) -> Html | None:
    entries = source.summary.claims
    if not entries and source.summary.simulated:
        return None
    here = claim_words.here(entries)
    parts = [
        details(f"{capital(word)}: {len(mine)}", _claim_table(word, mine))
        if word == "not decidable here"
        else _claim_table(word, mine)
        for word, mine in claim_words.by_verdict(entries).items()
    ]
    conditions = tag("p", "Here: ", "; ".join(here), ".", class_="muted") if here else None
    return section(
        "claims", "What others have claimed", tag("p", claim_words.counts(entries)), conditions, *parts
    )


def _claim_table(word: str, entries: Sequence[ClaimResult]) -> Html:
    rows = (
        [
            join([tag("span", entry.says), tag("small", _source(entry), class_="range")]),
            items(
                f"{finding.load.label} {finding.about}: {claim_words.stated(finding, entry.kind)}"
                for finding in entry.found
            ),
            items(
                f"{finding.load.label}: {claim_words.measured(finding, entry.kind)}"
                for finding in entry.found
            ),
            join([tag("span", word, class_=word.split()[0]), tag("small", entry.why, class_="range")]),
            items(claim_words.conditions(entry)),
        ]
        for entry in entries
    )
    head = ["claim", "stated", "measured", "verdict", "conditions"]
    return table(f"Claims {word}", head, rows, class_="claims")


def _source(entry: ClaimResult) -> Html:
    title, is_web = entry.source, entry.url.startswith("https://")
    link = tag("a", title, href=entry.url, rel="noreferrer") if is_web else title
    about = measure(entry.measure).name
    return join([f"{entry.id}, {about}; ", link])


def peers(source: Source) -> Html | None:
    parts = [part for group in groups(source.summary) for part in _peers_of(source, group)]
    if not parts:
        return None
    reasons = (
        details(tool.title, items(f"{name}: {why}" for name, why in tool.why.items()))
        for tool in TOOLS.values()
    )
    return section(
        "peers", "The same records in other tools", tag("p", with_code(PEERS_EXPLAINED)), *parts, *reasons
    )


def _peers_of(source: Source, group: Group) -> Iterator[Html]:
    rows = []
    for row in group.rows:
        by_tool = {
            name: {pair.name: pair for pair in pairs(row, views)} for name, views in source.views.items()
        }
        for figure in PEERS_SHOWN:
            known = [by_tool[name].get(figure) for name in by_tool]
            here = next((pair.here for pair in known if pair), None)
            if any(known):
                name = join([source.name(row.label), f" {figure}"])
                there = (or_unknown(pair.there if pair else None) for pair in known)
                rows.append((row.label, [name, or_unknown(here), *there]))
    if rows:
        title = capital(point_words(group.point))
        head = ["backend and figure", "here", *TOOLS]
        yield details(title, backend_table(source, title, head, rows, "numbers"))


def agreement(source: Source) -> Html | None:
    """None in runs that asked no questions with known answers."""
    tables = [*map(text_table, agreement_tables(source.summary))]
    if not tables:
        return None
    return section(
        "agreement", "Do the backends give the same answers?", tag("p", AGREEMENT_EXPLAINED), *tables
    )


def probe(source: Source) -> Html | None:
    """None in runs that were not probed."""
    if not source.probes:
        return None
    by_label = {
        label: {finding.topic: finding for finding in probed.findings}
        for label, probed in source.probes.items()
    }
    topics = dict.fromkeys(topic for findings in by_label.values() for topic in findings)
    rows = ([topic, *(_probed(finding.get(topic)) for finding in by_label.values())] for topic in topics)
    result = table("What each backend does", ["topic", *by_label], rows, class_="facts")
    odd = [
        f"{label}: {odd.topic}: declared {odd.declared}, seen {odd.seen}. {odd.then}".strip()
        for label, findings in by_label.items()
        for odd in findings.values()
        if odd.holds is False
    ]
    remark = items(odd) if odd else tag("p", "Every backend did what its definition declares.")
    return section("probe", "Conformance probe", remark, details("Everything that was tried", result))


def _probed(finding: Finding | None) -> Html:
    if finding is None:
        return tag("span", NOT_KNOWN, class_="unknown")
    seen = finding.seen or NOT_KNOWN
    if finding.holds is False:
        declared = tag("small", f"declared: {finding.declared}", class_="range")
        return join([tag("span", seen, class_="slower"), declared])
    return tag("span", seen)
