"""Notes next to the numbers: how sure they are, what is missing and why, what is unequal."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.metrics.cost import NO_PRICE
from harness.metrics.sample_size import MIN_ANSWERS, MIN_SECONDS
from harness.model import CellResult, IssueCode, LoadPoint, Reason, Summary
from harness.model.grouping import grouped
from harness.model.numbers import as_given, counted, percent, short
from harness.report.findings.classes import class_lines
from harness.report.findings.grid import Column, columns, known, never
from harness.report.findings.next_steps import advice
from harness.report.findings.stopping import one_start
from harness.report.findings.two_groups import HINT, two_groups
from harness.report.findings.verdict_words import tested
from harness.report.view import Group, Row, charged, first_cells, groups, labels, repeats, repeats_words
from harness.report.wording import listing, plain
from harness.validity import RULES, unchecked

MOST_PLACES = 4  # cells that a note names one by one
SIMULATED = "SIMULATED: no inference engine was measured; these numbers say nothing about any product"


_OF_EVERY_FIGURE = (
    IssueCode.ENGINE_CHANGED,
    IssueCode.NOT_MEASURED,
    IssueCode.ENGINE_DIED,
    IssueCode.CELL_MISSING,
    IssueCode.GPU_LOST,
    IssueCode.GPU_IDLE,
    IssueCode.CELL_DAMAGED,
    IssueCode.CELL_UNREADABLE,
    IssueCode.NO_MANIFEST,
)
# Ranks of warnings: what changes the meaning of every figure first.
_RUN, _INVALID, _SURE, _SUSPECT, _IN_PART, _SETTING = range(6)


@dataclass(frozen=True, slots=True)
class Note:
    kind: str  # note, warning
    text: str
    hint: str = ""
    rank: int = _SETTING
    code: str = ""  # of the rule or the notice
    cells: int = 0  # that it is about; 0: the whole run
    short: str = ""  # the same without the names of the cells


def notes(summary: Summary) -> list[Note]:
    """Sorted by how much they change what the table means."""
    return [
        *_state(summary),
        *_work(summary),
        *_tracks(summary),
        *_divisions(summary),
        *_validity(summary),
        *_errors(summary),
        *_bursts(summary),
        *_hang_ups(summary),
        *_own_fields(summary),
        *_first_look(summary),
        *(Note("note", text, hint) for text, hint in one_start(summary)),
        *(Note("note", line) for line in class_lines(summary)),
        *(Note("warning", text, HINT, code="two-groups") for text in two_groups(summary)),
        *_pooled(groups(summary)),
        *_unknown(groups(summary)),
        *_stamps(summary),
        *_imported(summary),
        *_limits(summary),
        *(Note("note", line) for line in prices(summary)),
        *warnings(summary),
    ]


def banner(summary: Summary) -> str:
    """The loud line over and under everything; empty for a real measurement."""
    made_up = simulated(summary)
    if not made_up:
        return SIMULATED if summary.simulated else ""
    return (
        SIMULATED if len(made_up) == len(labels(summary)) else f"SIMULATED IN PART: {plain(listing(made_up))}"
    )


def simulated(summary: Summary) -> list[str]:
    """Backends that are not inference engines."""
    return [label for label, cell in first_cells(summary).items() if cell.simulated]


def most_important(summary: Summary) -> list[Note]:
    """Warnings alone, by how much they change what the figures mean, each once.

    Those that the first screen says elsewhere are left out: the weights below the table, and the number of
    repeats as the verdict.
    """
    elsewhere = (IssueCode.DIFFERENT_TRACKS, IssueCode.ONE_REPEAT)
    found = [note for note in notes(summary) if note.kind == "warning" and note.code not in elsewhere]
    alike = grouped(
        ((note.text if note.cells else note.code or note.text, note.hint), note) for note in found
    )
    firsts = map(_with_count, alike.values())
    return sorted(firsts, key=lambda note: (note.rank, -note.cells))


def _with_count(alike: list[Note]) -> Note:
    first, *rest = alike
    return replace(first, text=f"{first.text} ({len(rest)} more like it)") if rest else first


def warnings(summary: Summary) -> Iterator[Note]:
    """Warnings of the whole run, without those that a rule gives for its cells."""
    rules = {reason.code for cell in summary.cells for reason in cell.validity.reasons}
    for item in summary.warnings:
        if item.code not in rules:
            rank = _RUN if item.code in _OF_EVERY_FIGURE else _SETTING
            yield Note("warning", plain(f"{item.code}: {item.text}"), plain(item.hint or ""), rank, item.code)


def reason_text(reason: Reason) -> str:
    return plain(f"{reason.code}, {reason.measured}; limit {reason.limit}")


def place(cell: CellResult) -> str:
    """`vllm c8 r0`: the name of a cell in notes."""
    return plain(f"{cell.label} {cell.point.label} r{cell.repeat}")


def odd_tracks(summary: Summary) -> set[str]:
    """Backends whose weights are not those of the first."""
    tracks = {label: cell.track for label, cell in first_cells(summary).items()}
    first = next(iter(tracks.values()), None)
    return {label for label, track in tracks.items() if track != first}


def same_work(summary: Summary) -> bool:
    """Whether every backend got the same bytes at each load point and repeat."""
    hashes: dict[tuple[LoadPoint, int], set[str]] = {}
    for cell in summary.cells:
        hashes.setdefault((cell.point, cell.repeat), set()).add(cell.workload_sha256)
    return all(len(own) == 1 for own in hashes.values())


def no_verdict(summary: Summary) -> str:
    """The reason nothing was tested; "" if something was, if there is nothing to compare, or if runs enough
    were measured: each load then says what became of them. A search says which backend carries more."""
    if len(labels(summary)) < 2 or tested(summary) or summary.capacity:
        return ""
    refused = [warning.text for warning in summary.warnings if warning.code == IssueCode.TOO_MANY_BACKENDS]
    refused += [entry.text for entry in summary.unequal if entry.matters and not entry.metrics]
    if refused:
        more = f" ({len(refused) - 1} more in the report)" if refused[1:] else ""
        return plain(f"No verdict: {refused[0]}{more}.")
    if summary.comparison and repeats(summary) >= summary.verdict_rules.min_runs:
        return ""
    return (
        f"No verdict: {repeats_words(summary)} per backend; whether a difference is more than "
        "that between two runs of the same backend was not tested."
    )


def _state(summary: Summary) -> Iterator[Note]:
    state = summary.state
    if state == "interrupted":
        text, hint = "the run was interrupted: cells are missing", "`bench resume` measures the rest"
        yield Note("warning", text, hint, _RUN)
    elif state == "running":
        text = "the run is unfinished: it is still measuring, or it was cut off"
        yield Note("warning", text, "`bench resume` measures the rest of one that was cut off", _RUN)
    elif state not in ("complete", "invalid"):  # the cells say which are INVALID
        yield Note("warning", f"the state of this run is {plain(state)}", rank=_RUN)


def _work(summary: Summary) -> Iterator[Note]:
    if not same_work(summary):
        text = "the backends were not given the same requests: their numbers cannot be compared"
        yield Note("warning", text, rank=_RUN)


def _tracks(summary: Summary) -> Iterator[Note]:
    if odd_tracks(summary):
        first = labels(summary)[0]
        yield Note("note", plain(f"* weights other than those of {first}, or unknown"))


def _divisions(summary: Summary) -> Iterator[Note]:
    """Nothing if every engine runs as shipped, or was measured before this was kept."""
    known = {label: cell.division for label, cell in first_cells(summary).items()}
    changed = [f"{label} {division}" for label, division in known.items() if division in ("tuned", "custom")]
    if changed:
        others = " (the others as shipped)" if "default" in known.values() else ""
        yield Note("note", plain(f"divisions: {listing(changed)}{others}"))


def _validity(summary: Summary) -> Iterator[Note]:
    """One note per rule and verdict, however many cells it is about; the report has their numbers.

    Failed requests have one per status or outcome: a refused key is not like an error of the server.
    """
    where = grouped(
        ((reason.verdict, reason.code, reason.failure), (place(cell), reason))
        for cell in summary.cells
        for reason in cell.validity.reasons
    )
    for (title, code, _failure), cases in where.items():
        reasons = [reason for _, reason in cases]
        texts = list(map(reason_text, reasons))
        what = f"{texts[0]}{' (others similar)' if len(set(texts)) > 1 else ''}"
        places = list(dict.fromkeys(subject for subject, _ in cases))
        text = f"{title} {_places_words(places)}: {what}"
        # Of a dead engine the failed requests and the few samples are the consequence. Answers that are worth
        # nothing matter more than how exactly their times are known.
        sure = code in RULES and RULES[code].certain
        doubt = _IN_PART if all(reason.metrics for reason in reasons) else _SURE if sure else _SUSPECT
        rank = doubt if title == "SUSPECT" else _RUN if sure else _INVALID
        at = places[0] if len(places) == 1 else counted(len(places), "cell")
        brief = plain(f"{title} {at}: {what}")
        yield Note("warning", text, plain(advice(summary, code, reasons)), rank, code, len(places), brief)


def _places_words(places: list[str]) -> str:
    return listing(places if len(places) <= MOST_PLACES else [*places[:2], f"{len(places) - 2} more cells"])


def _errors(summary: Summary) -> Iterator[Note]:
    for cell in summary.cells:
        outcomes = cell.requests.outcomes.items()
        ended = ("ok", "abandoned")  # as the scenario says
        faults = [
            f"{count} {name.replace('_', ' ')}" for name, count in outcomes if name not in ended and count
        ]
        if faults:
            yield Note("note", plain(f"not answered, {place(cell)}: {listing(faults)}"))


def _bursts(summary: Summary) -> Iterator[Note]:
    """Lockstep that the scenario declares is a label, not a doubt."""
    declared = (cell for cell in summary.cells if cell.load.start_declared == "together")
    where = grouped(
        (f"{found.burst:g}", place(cell))
        for cell in declared
        if (found := cell.synchrony) and found.in_bursts
    )
    for burst, places in where.items():
        text = f'bursts of {burst}, as declared (start = "together"): {_places_words(places)}'
        yield Note("note", text)


def _hang_ups(summary: Summary) -> Iterator[Note]:
    """Noted once per way in which users hang up."""
    by_way = grouped(
        (f"{percent(users.share)}% of the users hang up after {users.after_s:g} s", cell.requests)
        for cell in summary.cells
        if (users := cell.load.abandonment)
    )
    for way, requests in by_way.items():
        left = sum(each.abandoned for each in requests)
        due = sum(each.due for each in requests)
        if left:
            yield Note(
                "note", f"{way}, as declared: {left} of {due} did; latencies are of the users who stay"
            )
        else:
            text = f"nobody hung up: {way}, and each of their answers came before"
            yield Note("warning", text, "longer answers, or --set load.abandon_after_s=SHORTER", _RUN)


def _own_fields(summary: Summary) -> Iterator[Note]:
    """Noted where engines of several kinds were sent them: names differ, and most engines ignore others."""
    sent = {cell.label: cell for cell in summary.cells if cell.conditions.own_fields}
    if len({cell.backend for cell in sent.values()}) > 1:
        fields = " and ".join(dict.fromkeys(str(cell.conditions.fields_stated) for cell in sent.values()))
        text = f"{listing(list(sent))} were sent {fields}: an engine that does not know a field may ignore it"
        hint = "names differ by engine: a field of one engine belongs in its definition, [dialect] extra"
        yield Note("warning", plain(text), hint)


def _first_look(summary: Summary) -> Iterator[Note]:
    """Noted once per run, if a cell was declared to be enough with less than the default, and had less."""
    samples = [cell.sample for cell in summary.cells if cell.sample]
    few = [
        sample
        for sample in samples
        if (sample.min_answers < MIN_ANSWERS and sample.answers < MIN_ANSWERS)
        or (sample.min_seconds < MIN_SECONDS and sample.seconds < MIN_SECONDS)
    ]
    if few:
        answers, seconds = min(minimum.answers for minimum in few), min(minimum.seconds for minimum in few)
        yield Note(
            "note",
            f"a first look: cells of {counted(answers, 'answer')} and {short(seconds)} s at the least; "
            f"the default is {MIN_ANSWERS} and {MIN_SECONDS:g} s",
        )


def _stamps(summary: Summary) -> Iterator[Note]:
    """The load generator's own notes say why."""
    stamped = [cell.client for cell in summary.cells if cell.client.stamp_source == "user"]
    for why in dict.fromkeys(note for client in stamped for note in client.notes if "stamps" in note):
        yield Note("note", plain(f"{why} ({len(stamped)} of {len(summary.cells)} cells)"))


def _imported(summary: Summary) -> Iterator[Note]:
    """What a file of another tool had and lacks, and the rules that could not be checked for that."""
    files = [cell.imported for cell in summary.cells if cell.imported]
    for file in {(file.source, file.level, file.lacks): file for file in files}.values():
        without = unchecked(file)
        rules = f"{len(without)} of {len(RULES)} rules could not be checked: {', '.join(without)}"
        lacks = f"; not in it: {'; '.join(file.lacks)}" if file.lacks else ""
        yield Note("note", plain(f"{file.words}; it has {file.took}{lacks}; {rules}", 3000))


def _limits(summary: Summary) -> Iterator[Note]:
    """The limiters by the code of their rule, with their cells; the report has the sentences with numbers."""
    where = grouped(
        (limiter.code, f"{cell.label} {cell.point.label}")
        for cell in summary.cells
        if (limiter := cell.limiter) and cell.validity.verdict != "INVALID"
    )
    parts = [f"{code} ({listing(list(dict.fromkeys(places)))})" for code, places in where.items()]
    if parts:
        yield Note("note", plain(f"limited by: {'; '.join(parts)}"))


def prices(summary: Summary) -> Iterator[str]:
    """The currency and the basis of each price, which columns of costs lack, and the reason a price leads to
    no cost."""
    bases = grouped(
        ((price.currency, price.source), f"{as_given(price.per_hour)} per hour for {price.covers}{owners}")
        for price, owners in charged(summary).items()
    )
    for (currency, source), each in bases.items():
        yield plain(f"cost in {currency}: {'; '.join(each)} ({source})", 600)
    usable = (cell for cell in summary.cells if not cell.invalid)
    without = grouped((cell.null_reasons.get("cost", NO_PRICE), cell.label) for cell in usable)
    without.pop(NO_PRICE, None)
    for why, mine in without.items():
        names = listing([*dict.fromkeys(mine)])
        yield plain(f"no cost, {names}: {why}; bench report RUN --price-per-hour gives one")


def _pooled(load_groups: list[Group]) -> Iterator[Note]:
    rows = [row for group in load_groups for row in group.rows]
    titles = [
        column.title
        for column in columns(rows)
        if any(row.pooled(column.path) and not row.spread(column.path) for row in rows)
    ]
    if titles:
        text = f"pooled, {listing(titles)}: over the requests of all repeats, since one is too short for it"
        yield Note("note", text)


def _unknown(load_groups: list[Group]) -> Iterator[Note]:
    """One note per reason for n/a, or for a missing column."""
    optional = ("when asked for", "where it applies")  # nobody misses those
    everywhere = [(group, row) for group in load_groups for row in group.rows]
    asked = [
        column
        for column in columns([row for _, row in everywhere])
        if column.path
        and (column.presence not in optional or any(never(column, row) for _, row in everywhere))
    ]
    missing = grouped(
        ((reason, _places(places, everywhere)), column)
        for column in asked
        for reason, places in _unknown_where(column, everywhere).items()
    )
    for (reason, where), lacking in missing.items():
        names = "every figure" if lacking == asked else listing([column.title for column in lacking])
        yield Note("note", f"n/a, {names}{where}: {reason}")


def _unknown_where(column: Column, everywhere: list[tuple[Group, Row]]) -> dict[str, list[tuple[Group, Row]]]:
    """The rows without this figure, by the reason."""
    lacking = ((group, row) for group, row in everywhere if not known(column, [row]))
    return grouped((plain(row.why_unknown(column.path)), (group, row)) for group, row in lacking)


def _places(places: list[tuple[Group, Row]], everywhere: list[tuple[Group, Row]]) -> str:
    if len(places) == len(everywhere):
        return ""
    cells = grouped((row.label, group.point.label) for group, row in places)
    total = {label: sum(row.label == label for _, row in everywhere) for label in cells}
    named = [plain(label) if len(points) == total[label] else plain(f"{label} {' '.join(points)}")
             for label, points in cells.items()]  # fmt: skip
    return f" of {listing(named)}"
