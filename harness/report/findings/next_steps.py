"""Open questions of a run, and commands that would close them."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median_high

from harness.model import (
    CellResult,
    IssueCode,
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
from harness.report.findings.missing_loads import missing_loads
from harness.report.view import labels, repeats
from harness.report.wording import are, listing, plain, were
from harness.validity import LONGEST_AGAIN_S, blame
from harness.verdicts.capacity import invalid_cells
from harness.verdicts.per_user import asked_speeds

BY_URL = "first-look"  # the scenario of `bench URL`, which lacks most flags and prints the run that has them
AGAIN, AGAIN_BY_URL = "the same command", "the same bench run"
MORE_REPEATS = 10  # the default limit of --repeats auto
MORE_USERS = (2, 4)  # times the most that were measured
LONGER = 4  # times as many requests halve the noise that a cell has by chance
# Rules that advise to measure longer: `bench URL` has a flag of its own for that.
_TOO_SMALL = (IssueCode.TOO_FEW_SAMPLES, IssueCode.TOO_SHORT, IssueCode.FEW_WAVES)


def next_steps(summary: Summary, courses: Sequence[UnderLoad]) -> Iterator[NextStep]:
    """Most important first; at least one for a finished run."""
    unfinished = {"interrupted": "the run was interrupted", "running": "the run is unfinished"}
    if summary.state in unfinished:
        yield NextStep(why=unfinished[summary.state], do=f"bench resume {shlex.quote(plain(summary.run))}")
    else:
        yield from _of_missing(summary)
    yield from _of_verdict(summary, "INVALID")
    speeds = list(_of_speeds(summary))
    if asked_speeds(summary.cells):
        yield from speeds
    doubtful, repeated = list(_of_verdict(summary, "SUSPECT")), list(_of_repeats(summary))
    # More repeats of what is in doubt for one reason in most cells would be in doubt as well.
    yield from [*doubtful, *repeated] if _most_in_doubt(summary) else [*repeated, *doubtful]
    yield from _of_limit(summary, courses)
    if not asked_speeds(summary.cells):
        yield from speeds
    do = f"bench compare {shlex.quote(plain(summary.run))} LATER-RUN"
    yield NextStep(why="to see a later change", do=do)


def _of_missing(summary: Summary) -> Iterator[NextStep]:
    """Advises a new run for backends without a cell: in a resumed one the runs of the others came before."""
    names = dict.fromkeys(
        warning.backend for warning in summary.warnings if warning.code == IssueCode.NOT_MEASURED
    )
    missing = [plain(name) for name in names if name and name not in labels(summary)]
    if missing:
        do = f"mend the cause, then run {AGAIN}: `bench resume` gives figures without a verdict"
        yield NextStep(why=f"{listing(missing)} {were(len(missing))} not measured", do=do)


def _of_verdict(summary: Summary, verdict: str) -> Iterator[NextStep]:
    """The advice of the rule that speaks of most cells."""
    judged = invalid_cells(summary.cells, summary.capacity) if verdict == "INVALID" else summary.cells
    cells = [cell.validity for cell in judged if cell.validity.verdict == verdict]
    codes = Counter(code for cell in cells for code in _causes(cell))
    if not codes:
        return
    code, count = codes.most_common(1)[0]
    # Of all cells, as the warnings have it: what would do for some of them is not enough for the others.
    reasons = [reason for cell in summary.cells for reason in cell.validity.reasons]
    alike = [reason for reason in reasons if (reason.verdict, reason.code) == (verdict, code)]
    hint = advice(summary, code, alike)
    if hint and verdict == "INVALID" and any(_took_too_long(cell) for cell in judged):
        hint += f"; only a new run measures a cell of over {duration(LONGEST_AGAIN_S)} again"
    if hint:
        why = f"{count} of {counted(len(summary.cells), 'cell')} {are(count)} {verdict}, {code}"
        yield NextStep(why=plain(why), do=plain(hint))


def _took_too_long(cell: CellResult) -> bool:
    """Whether its INVALID measurement would have been made again, had it been shorter."""
    blamed = blame(cell.validity)
    ours = blamed is not None and blamed[0] in ("client", "machine")
    return ours and cell.sample is not None and cell.sample.seconds > LONGEST_AGAIN_S


def _causes(cell: Validity) -> Iterable[str]:
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
    return f"{hint} (of `bench URL`: --minutes)" if by_url else hint


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


def _again(summary: Summary, flags: str, files: str) -> str:
    """The command to repeat. No command measures an imported run again: `files` says what else to import."""
    imported = any(cell.imported for cell in summary.cells)
    again = AGAIN_BY_URL if summary.scenario == BY_URL else AGAIN
    return f"import {files}" if imported else f"{again} with {flags}"


def _of_repeats(summary: Summary) -> Iterator[NextStep]:
    """Nothing of a capacity search: its pairs met at loads by chance, and it refuses --repeats auto."""
    if summary.capacity:
        return
    waiting = undecided(summary)
    several, most = len(labels(summary)) > 1, repeats(summary)
    stopping = summary.stopping
    if several and most == 1 and not any(entry.tested for entry in summary.comparison if entry.primary):
        why = "one repeat cannot tell a difference from noise"
        yield NextStep(why=why, do=_again(summary, "--repeats auto", "three files of each or more"))
    elif waiting is None:
        return
    elif not waiting.primary:
        # The other metrics do not stop a run: with --repeats auto it would end where this one did.
        if waiting.repeats:
            why = f"{listing(waiting.names)}: {_open(waiting)}"
            do = _again(summary, f"--repeats {waiting.repeats}", f"{waiting.repeats} files of each")
            yield NextStep(why=plain(why), do=do)
    elif waiting.out_of_reach:
        requests = LONGER * max(cell.requests.planned for cell in summary.cells)
        do = _again(summary, f"--requests {requests}, or on a quieter machine", "longer runs of each")
        yield NextStep(why=f"{_open(waiting)}, and more repeats would hardly help", do=do)
    elif stopping is not None and stopping.reason == "budget":
        do = _again(summary, "a larger --budget", "more files of each")
        yield NextStep(why=_open(waiting), do=do)
    elif stopping is None or stopping.reason != "no-figure":
        more = max(MORE_REPEATS, 2 * most // summary.verdict_rules.blocks)
        do = _again(summary, f"--repeats auto --max-repeats {more}", "more files of each")
        yield NextStep(why=_open(waiting), do=do)


def _open(waiting: Undecided) -> str:
    return f"{waiting.pairs} of {counted(waiting.total, 'pair')} {are(waiting.pairs)} undecided"


def _of_speeds(summary: Summary) -> Iterator[NextStep]:
    for lacking in missing_loads(summary):
        loads = ",".join(map(as_given, lacking.loads))
        do = _again(summary, f"--{lacking.kind} {loads}", f"files of these loads: {loads.replace(',', ', ')}")
        yield NextStep(why=plain(lacking.why), do=do)


def _of_limit(summary: Summary, courses: Sequence[UnderLoad]) -> Iterator[NextStep]:
    """Nothing if any backend reached its limit, if too few loads tell, or of a capacity search."""
    if courses and not summary.capacity and all(course.limit_reached is False for course in courses):
        users = max(max(course.users) for course in courses)
        loads = ",".join(as_given(times * users) for times in MORE_USERS)
        do = _again(summary, f"--concurrency {loads}", f"files of {loads.replace(',', ' and ')} users")
        yield NextStep(why="the limit was not reached", do=do)
