"""Open questions of a run, and commands that would close them."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median_high

from harness.model import (
    Capacity,
    CellResult,
    IssueCode,
    Manifest,
    NextStep,
    PairVerdict,
    Reason,
    Summary,
    UnderLoad,
    Validity,
    known,
)
from harness.model.measures import measure
from harness.model.numbers import as_given, counted, duration
from harness.report.findings import again
from harness.report.findings.again import Change
from harness.report.findings.missing_loads import missing_loads
from harness.report.view import labels, repeats
from harness.report.wording import are, listing, plain, were
from harness.validity import LONGEST_AGAIN_S, RULES, blame
from harness.verdicts.capacity import invalid_cells
from harness.verdicts.per_user import asked_speeds

BY_URL = "first-look"  # the scenario of `bench URL`, which lacks most flags
STEPS = 3  # that are given: what follows from them may close the others
MORE_USERS = (2, 4)  # times the most that were measured
LONGER = 4  # times as many requests halve the noise that a cell has by chance
HARDER = 4  # times the highest load of a search that found no end, and the lowest that was too high
# Rules that advise to measure longer: `bench URL` has a flag of its own for that.
_TOO_SMALL = (IssueCode.TOO_FEW_SAMPLES, IssueCode.TOO_SHORT, IssueCode.FEW_WAVES)
_FLAG = re.compile(r"^(.+): (--requests|--set load\.warmup_requests)[ =](\d+)$")  # at the end of a hint
_ROOM = 1.2  # times the duration, or the budget, that should be enough
_BY_URL = " (of `bench URL`: --minutes)"
_HINT = "measure longer: --duration"


@dataclass(frozen=True, slots=True)
class _Open:
    """A question that a run leaves open. `change`: of a new run that closes it; None: `do` is the advice."""

    why: str
    do: str = ""
    change: Change | None = None


_UNFINISHED = {"interrupted": "the run was interrupted", "running": "the run is unfinished"}


def next_steps(
    summary: Summary, courses: Sequence[UnderLoad], manifest: Manifest | None = None
) -> Iterator[NextStep]:
    """Most important first; at least one for a finished run. All that a new run of the same loads would close
    is one command. What needs other loads is another: it costs more, and adds no verdict at those of before.

    `manifest`: has the command of the run; None: the steps say what to add to it.
    """
    found = list(_open(summary, courses, manifest))
    if again.is_tune(manifest):  # it takes one load
        found = [each for each in found if each.change is None or not each.change.loads]
    run = shlex.quote(plain(summary.run))
    steps = []
    if unfinished := _UNFINISHED.get(summary.state) or _cut_short(summary, manifest):
        steps.append(NextStep(why=unfinished, do=f"bench resume {run}", is_command=True))
        # A new run would measure again what is there, and `bench resume` may close the same questions.
        found = [each for each in found if each.change is None and "bench resume" not in each.do]
    same = [each for each in found if each.change and not each.change.loads]
    other = [each for each in found if each.change and each.change.loads]
    for each in found:
        if each.change is None:
            steps.append(NextStep(why=each.why, do=each.do))
        elif each is (other if each.change.loads else same)[0]:
            closed, others = (other, same) if each.change.loads else (same, [])
            steps.append(_new_run(closed, others, summary, manifest))
    later = f"bench compare {run} LATER-RUN"
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
    found: Sequence[_Open], others: Sequence[_Open], summary: Summary, manifest: Manifest | None
) -> NextStep:
    """`others`: questions of another run; where they ask for longer cells, these need to be as long."""
    changes = [each.change for each in found if each.change]
    changes += [each.change.of_cells for each in others if each.change]
    change = again.united(changes, summary, manifest)
    do = again.command(manifest, change)
    return NextStep(
        why="; ".join(dict.fromkeys(each.why for each in found)),
        do=do,
        is_command=do.startswith("bench "),
        expected_s=again.expected_s(summary, manifest, change),
        longest=again.is_longest(summary, change),
    )


def reason_and_time(step: NextStep) -> str:
    """The reason, with the time of the command: `1 of 1 pair is undecided (takes up to 12 min)`."""
    if step.expected_s is None:
        return step.why
    return f"{step.why} (takes {'up to' if step.longest else 'about'} {duration(step.expected_s)})"


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
    higher = max((max(each.change.loads, default=0.0) for each in speeds if each.change), default=0.0)
    yield from _of_limit(summary, courses, higher)
    if not asked_speeds(summary.cells):
        yield from speeds
    yield from _of_capacity(summary)


def _of_missing(summary: Summary) -> Iterator[_Open]:
    """Advises a new run for backends without a cell: in a resumed one the runs of the others came before."""
    names = dict.fromkeys(
        warning.backend for warning in summary.warnings if warning.code == IssueCode.NOT_MEASURED
    )
    missing = [plain(name) for name in names if name and name not in labels(summary)]
    if missing:
        why = f"{listing(missing)} {were(len(missing))} not measured: mend the cause first"
        yield _Open(f"{why} (`bench resume` gives figures without a verdict)", change=Change())


def _of_verdict(summary: Summary, verdict: str, manifest: Manifest | None) -> Iterator[_Open]:
    """The advice of the rule that speaks of most cells, first of those that no load generator can break."""
    judged = invalid_cells(summary.cells, summary.capacity) if verdict == "INVALID" else summary.cells
    cells = [cell.validity for cell in judged if cell.validity.verdict == verdict]
    codes = Counter(code for cell in cells for code in _causes(cell))
    if not codes:
        return
    sure = {code for code in codes if code in RULES and RULES[code].certain}
    code, count = max(codes.items(), key=lambda found: (found[0] in sure, found[1]))
    # Of all cells, as the warnings have it: what would do for some of them is not enough for the others.
    reasons = [reason for cell in summary.cells for reason in cell.validity.reasons]
    alike = [reason for reason in reasons if (reason.verdict, reason.code) == (verdict, code)]
    hint = advice(summary, code, alike)
    why = plain(f"{count} of {counted(len(summary.cells), 'cell')} {are(count)} {verdict}, {code}")
    if change := _change_of(hint, summary, manifest):
        yield _Open(why, change=change)
        return
    if hint and verdict == "INVALID" and any(_took_too_long(cell) for cell in judged):
        hint += f"; only a new run measures a cell of over {duration(LONGEST_AGAIN_S)} again"
    if hint:
        yield _Open(why, plain(hint))


def _change_of(hint: str, summary: Summary, manifest: Manifest | None) -> Change | None:
    """What a hint asks of a new run with a flag; None if it is about something else, or for another tool.

    A search chooses the sizes of its cells itself.
    """
    if summary.capacity or any(cell.imported for cell in summary.cells):
        return None
    if found := _FLAG.match(hint.removesuffix(_BY_URL)):
        return Change(numbers={found[2]: int(found[3])})
    before_s = again.ends_s(manifest)
    if hint.removesuffix(_BY_URL) != _HINT or not before_s:
        return None
    samples = [cell.sample for cell in summary.cells if cell.sample and cell.sample.answers]
    times = (max(s.min_answers / s.answers, s.min_seconds / max(s.seconds, 1.0)) for s in samples)
    return Change(numbers={again.DURATION: math.ceil(_ROOM * before_s * max(times, default=LONGER))})


def _took_too_long(cell: CellResult) -> bool:
    """Whether its INVALID measurement would have been made again, had it been shorter."""
    blamed = blame(cell.validity)
    ours = blamed is not None and blamed[0] in ("client", "machine")
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
    hint = max(reasons, key=lambda reason: known(reason.requests_needed) or 0).hint
    # A run that was interrupted has cells that were cut short: these need `bench resume`, and no more time.
    by_url = summary.scenario == BY_URL and code in _TOO_SMALL and summary.state != "interrupted"
    return f"{hint}{_BY_URL}" if by_url else hint


@dataclass(frozen=True, slots=True)
class Undecided:
    """Pairs that more repeats might decide: those of the primary metric if there are any, else all."""

    primary: bool
    names: list[str]  # of their metrics
    pairs: int
    total: int  # pairs of these metrics
    needed: list[int]  # repeats of each pair that repeats can decide
    out_of_reach: bool  # very many repeats would be needed for each pair

    @property
    def repeats(self) -> int | None:
        """How many would decide at least half of those that can be decided; None if none can."""
        return median_high(self.needed) if self.needed else None


def undecided(summary: Summary) -> Undecided | None:
    """None if every pair has a verdict, or can have none."""
    found = [entry for entry in summary.comparison if entry.verdict == "not enough runs"]
    primary = [entry for entry in found if entry.primary]
    wanted = primary or found
    if not wanted:
        return None
    metrics = dict.fromkeys(entry.metric for entry in wanted)
    return Undecided(
        bool(primary),
        [measure(metric).name for metric in metrics],
        len(wanted),
        sum(entry.metric in metrics for entry in summary.comparison),
        list(_needed(wanted, summary.verdict_rules.blocks)),
        all(entry.ratio is not None and entry.runs_needed is None for entry in wanted),
    )


def _needed(pairs: Sequence[PairVerdict], blocks: int) -> Iterator[int]:
    """More than the verdict says if some of the measured repeats were left out. `blocks`: of a start."""
    for entry in pairs:
        if entry.runs_needed and min(entry.runs):
            yield math.ceil(entry.runs_needed * max(entry.measured) / blocks / min(entry.runs))


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
        change = Change(auto=True, numbers=_budget(summary, 0))
        yield _again(summary, why, change, "three files of each or more")
    elif waiting is None:
        return
    elif not waiting.primary:
        # The other metrics do not stop a run: with --repeats auto it would end where this one did.
        if waiting.repeats:
            why = plain(f"{listing(waiting.names)}: {_undecided_words(waiting)}")
            change = Change(numbers={again.REPEATS: waiting.repeats})
            yield _again(summary, why, change, f"{waiting.repeats} files of each")
    elif waiting.out_of_reach:
        why = f"{_undecided_words(waiting)}, and more repeats would hardly help, but longer ones"
        yield _again(summary, why, _longer(summary, manifest), "longer runs of each")
    elif budget := _budget(summary, waiting.repeats or 0):
        change = Change(auto=True, numbers=budget)
        yield _again(summary, _undecided_words(waiting), change, "more files of each")
    elif stopping is None or stopping.reason != "no-figure":
        more = max(again.MOST_REPEATS, 2 * most // summary.verdict_rules.blocks)
        change = Change(auto=True, numbers={again.MOST: more})
        if is_noise:  # --aa takes a number of repeats alone
            change = Change(numbers={again.REPEATS: 2 * most // summary.verdict_rules.blocks})
        yield _again(summary, _undecided_words(waiting), change, "more files of each")


def _budget(summary: Summary, needed: int) -> dict[str, float]:
    """What --budget has to be for these repeats, and for a first verdict, where it ended the run."""
    stopping, most = summary.stopping, max(repeats(summary), 1)
    if stopping is None or stopping.reason != "budget" or not stopping.budget_s:
        return {}
    needed = max(needed * summary.verdict_rules.blocks, stopping.looks[0])
    return {again.BUDGET: math.ceil(max(2 * stopping.budget_s, _ROOM * needed * stopping.spent_s / most))}


def _undecided_words(waiting: Undecided) -> str:
    return f"{waiting.pairs} of {counted(waiting.total, 'pair')} {are(waiting.pairs)} undecided"


def _longer(summary: Summary, manifest: Manifest | None) -> Change:
    """More requests, or a longer duration where that ended the load."""
    before_s = again.ends_s(manifest)
    if before_s and any(cell.requests.unsent for cell in summary.cells):
        return Change(numbers={again.DURATION: LONGER * before_s})
    return Change(numbers={again.REQUESTS: LONGER * max(cell.requests.planned for cell in summary.cells)})


def _again(summary: Summary, why: str, change: Change, files: str) -> _Open:
    """A new run. No command measures an imported run again: `files` says what else to import."""
    imported = any(cell.imported for cell in summary.cells)
    return _Open(why, f"import {files}") if imported else _Open(why, change=change)


def _of_speeds(summary: Summary) -> Iterator[_Open]:
    """One repeat has no verdict at any speed."""
    auto = len(labels(summary)) > 1 and repeats(summary) == 1 and not summary.noise
    for lacking in missing_loads(summary):
        loads = ", ".join(map(as_given, lacking.loads))
        change = Change(lacking.kind, lacking.loads, _budget(summary, 0), auto)
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
        yield _again(summary, "the limit was not reached", Change("concurrency", loads), files)


def _of_capacity(summary: Summary) -> Iterator[_Open]:
    """A search that met an end of its loads: from what is known to be carried up, or from the lowest down."""
    found = [each for each in summary.capacity or () if each.tested and each.highest]
    higher = [each for each in found if each.interval[1] is not None and each.interval[2] is None]
    lower = [each for each in found if _misses_all(each)]
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
    yield _Open(plain("; ".join(why)), change=Change(found[0].kind, (low, high)))


def _lowest(found: Capacity) -> float:
    """The load from which a new search has to begin: the one that is surely carried, else the lowest."""
    return found.interval[0] or found.tested[0].value


def _misses_all(found: Capacity) -> bool:
    """Whether the server itself missed the limits at the lowest load, which can be lower."""
    lowest = found.tested[0]
    return found.interval[1] is None and not lowest.spoiled and not lowest.kept and lowest.value > 1
