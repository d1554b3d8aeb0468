"""Open questions of a run, and commands that would close them."""

import math
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.model import (
    Capacity,
    CellResult,
    IssueCode,
    Manifest,
    NextStep,
    Reason,
    Summary,
    UnderLoad,
    Validity,
    known,
)
from harness.model.change import (
    AUTO,
    BUDGET,
    DURATION,
    LONGER,
    MOST,
    REPEATS,
    REQUESTS,
    Change,
    Value,
    alters,
    of_cells,
    united,
)
from harness.model.figures import share_of
from harness.model.grouping import grouped
from harness.model.numbers import as_given, counted, duration
from harness.report.findings import again
from harness.report.findings.missing_loads import missing_loads
from harness.report.findings.undecided import undecided
from harness.report.view import labels, repeats
from harness.report.wording import are, listing, plain, were
from harness.validity import LONGEST_AGAIN_S, RULES, blame, spoiled
from harness.verdicts.capacity import invalid_cells
from harness.verdicts.per_user import asked_speeds

BY_URL = "first-look"  # the scenario of `bench URL`, which lacks most flags
STEPS = 3  # that are given: what follows from them may close the others
MORE_USERS = (2, 4)  # times the most that were measured
HARDER = 4  # times the highest load of a search that found no end, and the lowest that was too high
_ROOM = 1.2  # times the budget that should be enough
_BY_URL = " (of `bench URL`: --minutes)"


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """A question that a run leaves open. `change`: of a new run that closes it; None: `do` is the advice."""

    why: str
    do: str = ""
    change: Change | None = None

    @property
    def scope(self) -> str:
        """What differs in the run that closes it: the loads, or its requests; ""; no run does."""
        if self.change is None:
            return ""
        return "loads" if again.loads(self.change) else "requests" if alters(self.change) else "same"


_UNFINISHED = {"interrupted": "the run was interrupted", "running": "the run is unfinished"}


def next_steps(
    summary: Summary, courses: Sequence[UnderLoad], manifest: Manifest | None = None
) -> Iterator[NextStep]:
    """Most important first; at least one for a finished run. All that a new run of the same requests would
    close is one command. What needs other loads is another: it costs more, and adds no verdict at those of
    before. So is what needs other requests: whether they answer the same question is the reader's to say.

    `manifest`: has the command of the run; None: the steps say what to add to it.
    """
    found = list(_open(summary, courses, manifest))
    if again.is_tune(manifest):  # it takes one load
        found = [each for each in found if each.scope != "loads"]
    run = shlex.quote(plain(summary.run))
    steps = []
    if unfinished := _UNFINISHED.get(summary.state) or _cut_short(summary, manifest):
        steps.append(NextStep(why=unfinished, do=f"bench resume {run}", is_command=True))
        # A new run would measure again what is there, and `bench resume` may close the same questions.
        found = [each for each in found if each.change is None and "bench resume" not in each.do]
    for scope, mine in grouped((each.scope or each, each) for each in found).items():
        if isinstance(scope, str):
            steps.append(_new_run(scope, mine, found, summary, manifest))
        else:
            steps.append(NextStep(why=scope.why, do=scope.do))
    later = f"bench compare {run} latest"
    yield from steps[:STEPS] or [NextStep(why="to see a later change", do=later, is_command=True)]


def _cut_short(summary: Summary, manifest: Manifest | None) -> str:
    """The reason why a run of one backend lacks cells; "": it lacks none, or a rule may have ended it."""
    if manifest is None or manifest.stopping is not None or len(manifest.backends) != 1:
        return ""
    missing = len({*manifest.order} - {cell.cell for cell in summary.cells})
    if not missing:
        return ""
    return f"{missing} of {len(manifest.order)} cells {are(missing)} missing (mend the cause first)"


def _new_run(
    scope: str, closed: Sequence[_Open], found: Sequence[_Open], summary: Summary, manifest: Manifest | None
) -> NextStep:
    """`found`: all questions. Cells at other loads need to be as long; who sends other requests does not send
    the same again.
    """
    changes = [each.change or {} for each in closed]
    for each in found:
        if each.change is not None and each.scope != scope:
            whole = (scope, each.scope) == ("requests", "same")
            changes.append(each.change if whole else of_cells(each.change))
    change = again.united(changes, summary, manifest)
    do = again.command(manifest, change)
    why = "; ".join(dict.fromkeys(each.why for each in closed))
    return NextStep(
        why=f"{why}; this changes what is measured" if scope == "requests" else why,
        do=do,
        is_command=do.startswith("bench "),
        expected_s=again.expected_s(summary, manifest, change),
        least_s=again.expected_s(summary, manifest, change, least=True),
        longest=again.is_longest(summary, change),
    )


def reason_and_time(step: NextStep) -> str:
    """The reason, with the time of the command: `1 of 1 pair is undecided (takes 4 min to 12 min)`."""
    if step.expected_s is None:
        return step.why
    least, most = (duration(seconds) for seconds in (step.least_s or step.expected_s, step.expected_s))
    takes = f"{least} to" if least != most else "up to" if step.longest else "about"
    return f"{step.why} (takes {takes} {most})"


def _open(summary: Summary, courses: Sequence[UnderLoad], manifest: Manifest | None) -> Iterator[_Open]:
    if summary.state not in _UNFINISHED:
        yield from _of_missing(summary)
    yield from _of_verdict(summary, "INVALID", manifest)
    speeds = list(_of_speeds(summary))
    if asked_speeds(summary.cells):
        yield from speeds
    doubtful, repeated = list(_of_verdict(summary, "SUSPECT", manifest)), list(_of_repeats(summary, manifest))
    # More repeats of what is in doubt for one reason in most cells would be in doubt as well.
    yield from [*doubtful, *repeated] if _most_in_doubt(summary) else [*repeated, *doubtful]
    higher = max((max(again.loads(each.change or {}), default=0.0) for each in speeds), default=0.0)
    yield from _of_limit(summary, courses, higher)
    if not asked_speeds(summary.cells):
        yield from speeds
    yield from _of_capacity(summary)
    yield from _of_warnings(summary, manifest)


def _of_warnings(summary: Summary, manifest: Manifest | None) -> Iterator[_Open]:
    """What warnings of the run advise; a rule that breaks in cells speaks for itself."""
    advised = grouped((warning.code, warning) for warning in summary.warnings if known(warning.change))
    for alike in advised.values():
        asked = united(known(warning.change) or {} for warning in alike)
        if change := again.taken(asked, summary, manifest):
            more = f" ({len(alike) - 1} more like it)" if alike[1:] else ""
            yield _Open(plain(f"{alike[0].text}{more}"), change=change)


def _of_missing(summary: Summary) -> Iterator[_Open]:
    """Advises a new run for backends without a cell: in a resumed one the runs of the others came before."""
    names = dict.fromkeys(
        warning.backend for warning in summary.warnings if warning.code == IssueCode.NOT_MEASURED
    )
    missing = [plain(name) for name in names if name and name not in labels(summary)]
    if missing:
        why = f"{listing(missing)} {were(len(missing))} not measured: mend the cause first"
        yield _Open(f"{why} (`bench resume` gives figures without a verdict)", change={})


def _of_verdict(summary: Summary, verdict: str, manifest: Manifest | None) -> Iterator[_Open]:
    """The advice of all rules that a new run can follow. Of the others that of the rule which speaks of most
    cells, first of those that no load generator can break.
    """
    cells = invalid_cells(summary.cells, summary.capacity) if verdict == "INVALID" else summary.cells
    judged = [cell for cell in cells if cell.validity.verdict == verdict]
    codes = Counter(code for cell in judged for code in _causes(cell.validity))
    sure = {code for code in codes if code in RULES and RULES[code].certain}
    # Of all cells, as the warnings have it: what would do for some of them is not enough for the others.
    reasons = (reason for cell in summary.cells for reason in cell.validity.reasons)
    alike = grouped((reason.code, reason) for reason in reasons if reason.verdict == verdict)
    followed: dict[bool, dict[str, Change]] = {}
    for rank, code in enumerate(sorted(codes, key=lambda code: (code not in sure, -codes[code]))):
        asked = united(known(reason.change) or {} for reason in alike[code])
        if change := again.taken(asked, summary, manifest):
            followed.setdefault(alters(change), {})[code] = change
        elif not rank and (hint := advice(summary, code, alike[code])):
            if verdict == "INVALID" and any(map(_took_too_long, judged)):
                hint += f"; only a new run measures a cell of over {duration(LONGEST_AGAIN_S)} again"
            yield _Open(_broken(summary, judged, [code]), plain(hint))
    for changes in followed.values():
        yield _Open(_broken(summary, judged, changes), change=united(changes.values()))


def _broken(summary: Summary, judged: Sequence[CellResult], codes: Collection[str]) -> str:
    """`3 of 4 cells are SUSPECT, lockstep`; of several rules, the cells of each."""
    causes = [set(_causes(cell.validity)).intersection(codes) for cell in judged]
    count = sum(map(bool, causes))
    named = [f"{sum(code in found for found in causes)} {code}" for code in codes]
    which = listing(named) if len(named) > 1 else next(iter(codes))
    verdict = judged[0].validity.verdict
    return plain(f"{count} of {counted(len(summary.cells), 'cell')} {are(count)} {verdict}, {which}")


def _took_too_long(cell: CellResult) -> bool:
    """Whether its INVALID measurement would have been made again, had it been shorter."""
    blamed = blame(cell.validity)
    ours = blamed is not None and spoiled(blamed[0])
    return ours and cell.sample is not None and cell.sample.seconds > LONGEST_AGAIN_S


def _causes(cell: Validity) -> Iterable[IssueCode]:
    """Names the one rule to blame for an INVALID cell: the requests of an engine that died failed too."""
    blamed = blame(cell)
    # Of rules that speak of equally many cells, one about all metrics comes first.
    wide_first = sorted(cell.reasons, key=lambda reason: bool(reason.metrics))
    return [blamed[1]] if blamed else dict.fromkeys(reason.code for reason in wide_first)


def _most_in_doubt(summary: Summary) -> bool:
    """Whether one rule alone makes more than half of the cells SUSPECT."""
    codes = Counter(
        code for cell in summary.cells for code in {reason.code for reason in cell.validity.reasons}
    )
    return 2 * max(codes.values(), default=0) > len(summary.cells)


def advice(summary: Summary, code: str, reasons: Sequence[Reason]) -> str:
    """One hint for all: the run's own, else the one that asks for the most."""
    for warning in summary.warnings:
        if warning.code == code and warning.hint:
            return warning.hint
    most = max(reasons, key=_asked)
    longer = {REQUESTS, DURATION}.intersection(known(most.change) or {})
    return f"{most.hint}{_BY_URL}" if longer and summary.scenario == BY_URL else most.hint


def _asked(reason: Reason) -> float:
    numbers = (value or 0 for value in (known(reason.change) or {}).values())
    return known(reason.requests_needed) or max(numbers, default=0)


def _of_repeats(summary: Summary, manifest: Manifest | None) -> Iterator[_Open]:
    """Nothing of a capacity search: its pairs met at loads by chance, and it refuses --repeats auto."""
    if summary.capacity:
        return
    waiting = undecided(summary)
    several, most = len(labels(summary)) > 1, repeats(summary)
    stopping, is_noise = summary.stopping, bool(summary.noise)
    if (
        several
        and most == 1
        and not is_noise
        and not any(entry.tested for entry in summary.comparison if entry.primary)
    ):
        why = "one repeat cannot tell a difference from noise"
        change: Change = {REPEATS: AUTO, **_budget(summary, 0)}
        yield _again(summary, why, change, "three files of each or more")
    elif waiting is None:
        return
    elif not waiting.primary:
        # The other metrics do not stop a run: with --repeats auto it would end where this one did.
        if waiting.repeats:
            why = plain(f"{listing(waiting.names)}: {waiting.words}")
            yield _again(summary, why, {REPEATS: waiting.repeats}, f"{waiting.repeats} files of each")
    elif waiting.out_of_reach:
        why = f"{waiting.words}, and more repeats would hardly help, but longer ones"
        yield _again(summary, why, _longer(summary, manifest), "longer runs of each")
    elif budget := _budget(summary, waiting.repeats or 0):
        yield _again(summary, waiting.words, {REPEATS: AUTO, **budget}, "more files of each")
    elif stopping is None or stopping.reason != "no-figure":
        more = max(2 * most // summary.verdict_rules.blocks, waiting.repeats or 0)
        change = {REPEATS: AUTO, MOST: max(again.auto_repeats(summary, manifest)[1], more)}
        if is_noise:  # --aa takes a number of repeats alone
            change = {REPEATS: more}
        yield _again(summary, waiting.words, change, "more files of each")


def _budget(summary: Summary, needed: int) -> Change:
    """What --budget has to be for these repeats, and for a first verdict, where it ended the run."""
    stopping, most = summary.stopping, max(repeats(summary), 1)
    if stopping is None or stopping.reason != "budget" or not stopping.budget_s:
        return {}
    needed = max(needed * summary.verdict_rules.blocks, stopping.looks[0])
    return {BUDGET: math.ceil(max(2 * stopping.budget_s, _ROOM * needed * stopping.spent_s / most))}


def _longer(summary: Summary, manifest: Manifest | None) -> Change:
    """More requests, and a longer duration where one may end the load."""
    before_s, counts = again.ends_s(manifest), [cell.requests for cell in summary.cells]
    found: dict[str, Value] = {DURATION: LONGER * before_s} if before_s else {}
    if any(each.planned < LONGER * each.sent for each in counts):
        found[REQUESTS] = LONGER * max(each.sent for each in counts)
    return found


def _again(summary: Summary, why: str, change: Change, files: str) -> _Open:
    """A new run. No command measures an imported run again: `files` says what else to import."""
    imported = any(cell.imported for cell in summary.cells)
    return _Open(why, f"import {files}") if imported else _Open(why, change=change)


def _of_speeds(summary: Summary) -> Iterator[_Open]:
    """One repeat has no verdict at any speed."""
    auto: Change = {}
    if len(labels(summary)) > 1 and repeats(summary) == 1 and not summary.noise:
        auto = {REPEATS: AUTO}
    for lacking in missing_loads(summary):
        loads = ", ".join(map(as_given, lacking.loads))
        change = {f"--{lacking.kind}": lacking.loads, **auto, **_budget(summary, 0)}
        yield _again(summary, plain(lacking.why), change, f"files of these loads: {loads}")


def _of_limit(summary: Summary, courses: Sequence[UnderLoad], higher: float) -> Iterator[_Open]:
    """Nothing if any backend reached its limit, if too few loads tell, or of a capacity search. `higher`: a
    load that is advised anyway and may show it.
    """
    users = max((max(course.users) for course in courses), default=0.0)
    if not courses or summary.capacity or users < higher:
        return
    if all(each.limit_reached is False for each in courses):
        loads = tuple(float(times * users) for times in MORE_USERS)
        files = f"files of {' and '.join(map(as_given, loads))} users"
        yield _again(summary, "the limit was not reached", {"--concurrency": loads}, files)


def _of_capacity(summary: Summary) -> Iterator[_Open]:
    """A search that met an end of its loads: from what is known to be carried up, or from the lowest down."""
    found = [each for each in summary.capacity or () if each.tested and each.highest]
    higher = [each for each in found if each.interval[1] is not None and each.interval[2] is None]
    lower = [each for each in found if _may_keep_less(each, summary.cells)]
    if not higher and not lower:
        return
    low = min(_lowest(each) for each in found)
    high = max(each.highest or 0.0 for each in found)
    why = []
    if higher:
        high *= HARDER
        why.append(f"{listing([each.label for each in higher])} kept the limits at the highest load")
    if lower:
        low = low / HARDER if lower[0].kind == "rate" else max(low // HARDER, 1.0)
        why.append(f"{listing([each.label for each in lower])} missed them at the lowest")
    yield _Open(plain("; ".join(why)), change={f"--{found[0].kind}": (low, high)})


def _lowest(found: Capacity) -> float:
    """The load from which a new search has to begin: the one that is surely carried, else the lowest."""
    return found.interval[0] or found.tested[0].value


def _may_keep_less(found: Capacity, cells: Iterable[CellResult]) -> bool:
    """Whether the server itself missed the limits at the lowest load, and may keep them at a lower one."""
    lowest = found.tested[0]
    if found.interval[1] is not None or lowest.spoiled or lowest.kept:
        return False
    if found.kind == "concurrency":
        return lowest.value > 1
    here = (cell for cell in cells if cell.label == found.label and cell.load.value == lowest.value)
    return not any(map(_missed_alone, here))


def _missed_alone(cell: CellResult) -> bool:
    """Whether requests that met no other one missed a limit: so many meet one as arrivals by chance would."""
    if cell.slo is None or cell.backlog is None:
        return False
    meet = 1 - math.exp(-cell.backlog.in_system_mean)
    return any(share_of(limit.share) - limit.within > meet for limit in cell.slo.limits)
