"""What a run leaves open, and what to run to close it."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median_high

from harness.model import NextStep, PairVerdict, Reason, Summary, UnderLoad
from harness.report.measures import measure
from harness.report.text import counted, listing, plain
from harness.report.view import labels, repeats

AGAIN = "the same command"
MORE_REPEATS = 10  # the default limit of --repeats auto
# As `why` of a verdict says it: harness/compare/verdict.py.
NEEDED = re.compile(r"about (\d+) runs would decide|runs, (\d+) are needed")
MORE_USERS = (2, 4)  # times the most that were measured


def next_steps(summary: Summary, courses: Sequence[UnderLoad]) -> Iterator[NextStep]:
    """Most important first; of a finished run at least one."""
    if summary.state == "interrupted":
        yield NextStep(why="the run was interrupted", do=f"bench resume {plain(summary.run)}")
    yield from _of_verdict(summary, "INVALID")
    doubtful, repeated = list(_of_verdict(summary, "SUSPECT")), list(_of_repeats(summary))
    # More repeats of what is in doubt for one reason in most cells would be in doubt as well.
    yield from [*doubtful, *repeated] if _most_in_doubt(summary) else [*repeated, *doubtful]
    yield from _of_limit(courses)
    yield NextStep(why="to see a later change", do=f"bench compare {plain(summary.run)} LATER-RUN")


def _of_verdict(summary: Summary, verdict: str) -> Iterator[NextStep]:
    """What the most frequent rule advises."""
    cells = [cell for cell in summary.cells if cell.validity.verdict == verdict]
    reasons = [reason for cell in cells for reason in cell.validity.reasons if reason.verdict == verdict]
    if not reasons:
        return
    code, _count = Counter(reason.code for reason in reasons).most_common(1)[0]
    hint = advice(summary, code, [reason for reason in reasons if reason.code == code])
    if hint:
        be = "is" if len(cells) == 1 else "are"
        why = f"{len(cells)} of {counted(len(summary.cells), 'cell')} {be} {verdict}, {code}"
        yield NextStep(why=plain(why), do=plain(hint))


def _most_in_doubt(summary: Summary) -> bool:
    """Whether one rule alone makes more than half of the cells SUSPECT."""
    codes = Counter(code for cell in summary.cells for code in {one.code for one in cell.validity.reasons})
    return 2 * max(codes.values(), default=0) > len(summary.cells)


def advice(summary: Summary, code: str, reasons: Sequence[Reason]) -> str:
    """One hint for all: that of the run, else the one that asks for the most."""
    for warning in summary.warnings:
        if warning.code == code and warning.hint:
            return warning.hint
    return max((reason.hint for reason in reasons), key=_most, default="")


def _most(hint: str) -> int:
    numbers = "".join(letter if letter.isdecimal() else " " for letter in hint[:1000]).split()
    return max((int(number[:9]) for number in numbers), default=0)


def _of_repeats(summary: Summary) -> Iterator[NextStep]:
    first = summary.verdict_rules.primary
    pairs = [entry for entry in summary.comparison if entry.metric == first]
    open_pairs = [entry for entry in summary.comparison if entry.verdict == "not enough runs"]
    waiting = sum(entry.metric == first for entry in open_pairs)
    several, most = len(labels(summary)) > 1, repeats(summary)
    stopping = summary.stopping
    if several and most == 1 and not any(entry.tested for entry in pairs):
        why = "one repeat cannot tell a difference from noise"
        yield NextStep(why=why, do=f"{AGAIN} with --repeats auto")
    elif waiting and stopping is not None and stopping.reason == "budget":
        yield NextStep(why=_open(waiting, len(pairs)), do=f"{AGAIN} with a larger --budget")
    elif waiting and (stopping is None or stopping.reason != "no-figure"):
        more = max(MORE_REPEATS, 2 * most)
        yield NextStep(why=_open(waiting, len(pairs)), do=f"{AGAIN} with --repeats auto --max-repeats {more}")
    elif not waiting and (needed := repeats_needed(open_pairs)):
        # The other metrics do not stop a run: with --repeats auto it would end where this one did.
        names = listing(list(dict.fromkeys(measure(entry.metric).name for entry in open_pairs)))
        metrics = {entry.metric for entry in open_pairs}
        total = sum(entry.metric in metrics for entry in summary.comparison)
        why = f"{names}: {_open(len(open_pairs), total)}"
        yield NextStep(why=plain(why), do=f"{AGAIN} with --repeats {median_high(needed)}")


def repeats_needed(pairs: Sequence[PairVerdict]) -> list[int]:
    """Repeats for each pair that repeats can decide; more where some of those measured were left out."""
    found = ((entry, NEEDED.search(entry.why)) for entry in pairs)
    return [
        math.ceil(int(match[1] or match[2]) * max(entry.measured) / min(entry.runs))
        for entry, match in found
        if match and min(entry.runs)
    ]


def _open(waiting: int, pairs: int) -> str:
    be = "is" if waiting == 1 else "are"
    return f"{waiting} of {counted(pairs, 'pair')} {be} undecided"


def _of_limit(courses: Sequence[UnderLoad]) -> Iterator[NextStep]:
    """Nothing where any backend reached its limit, or too few loads say."""
    if courses and all(course.limit_reached is False for course in courses):
        users = max(max(course.users) for course in courses)
        loads = ",".join(f"{times * users:g}" for times in MORE_USERS)
        yield NextStep(why="the limit was not reached", do=f"{AGAIN} with --concurrency {loads}")
