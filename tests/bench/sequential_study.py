"""How often words are wrong, and what they cost, where a run stops once all pairs are decided.

As `bench run --repeats auto` does it: after each look only the engines and load points of undecided pairs go
on. `repeats` is the mean number of cells per engine and load point, `starts` that of starts per engine;
`fixed: as many` is the fixed number of repeats that decides as large a share of the pairs.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from unittest import mock

import numpy as np

from harness.model import CellResult, PairVerdict
from harness.verdicts import Rules
from harness.verdicts.pairs import find
from harness.verdicts.run_values import loads, series
from harness.verdicts.sequential import DECIDED, Rows, find_by_looks, looks_between, take_look
from tests.bench.verdict_study import DECLARED, FALSE_LIMIT, RULES, VARIATIONS, Row, experiment, is_false

LOOKS = looks_between(DECLARED.min_repeats, DECLARED.max_repeats)
FIXED = 5
MOST_FIXED = 30  # repeats tried when a fixed number that decides as many is looked for
FIXED_TIMES = 40  # experiments that it is found with

FIVE, TWO = (1.0,) * 5, (1.0,) * 2
ROWS = (
    Row("5 × 3 equal", FIVE),
    Row("5 × 3 equal, pairs hang together", FIVE, shared=0.9),
    Row("5 × 3 equal, slow runs of one fail", FIVE, failing=0.4),
    Row("5 × 3, all 2% apart: the floor", (1.0, 1.02, 1.0, 1.02, 1.0)),
    Row("5 × 3, one 5% slower", (1.0, 1.0, 1.0, 1.0, 1.05)),
    Row("5 × 3, each 10% slower than the last", tuple(1.1**place for place in range(5))),
    Row("5 × 3, each 30% slower than the last", tuple(1.3**place for place in range(5))),
    Row("2 × 2 equal", TWO, points=2),
    Row("2 × 2, 2% apart: the floor", (1.02, 1.0), points=2),
    Row("2 × 2, 5% apart", (1.05, 1.0), points=2),
    Row("2 × 2, 10% apart", (1.1, 1.0), points=2),
    Row("2 × 2, 30% apart", (1.3, 1.0), points=2),
    Row("5 × 3, 2% apart, slow runs of one not steady", (1.0, 1.02, 1.0, 1.02, 1.0), unsteady=0.3),
    Row("2 × 2, 2% apart, slow runs of the faster not steady", (1.0, 1.02), points=2, unsteady=0.3),
    Row("2 × 2, 2% apart, odd runs of one not steady", (1.0, 1.02), points=2, unsteady=0.3, by="odd"),
    Row("2 × 2, 2% apart, not steady by chance, 10% off", (1.0, 1.02), 2, unsteady=0.3, by="any", off=0.9),
    Row("2 × 2, 5% apart, slow runs of the slower not steady", (1.05, 1.0), points=2, unsteady=0.3),
    Row("2 × 2, 30% apart, not steady by chance", (1.3, 1.0), points=2, unsteady=0.2, by="any"),
)


@dataclass
class Tally:
    false_primary: int = 0
    false_others: int = 0
    cells: int = 0
    starts: int = 0
    words: Counter[str] = field(default_factory=Counter)  # of primary pairs
    stops: Counter[int] = field(default_factory=Counter)  # repeats at the last look


def rows_of(cells: Sequence[CellResult]) -> Rows:
    return {load: series(cells, load, {}) for load in loads(cells)}


def _measured(planned: Sequence[CellResult]) -> tuple[list[CellResult], int]:
    """What a run that stops by the rule would have measured of these, and after how many repeats it stops."""
    cells: list[CellResult] = []
    begin, needed = 0, None
    for look in LOOKS:
        cells += [
            cell
            for cell in planned
            if begin <= cell.repeat < look and (needed is None or (cell.label, cell.point) in needed)
        ]
        begin = look
        needed = take_look(rows_of(cells), replace(RULES, looks=LOOKS, last_look=look)).needed
        if not needed:
            break
    return cells, begin


def _once() -> Callable[[Rows, Rules, float], list[PairVerdict]]:
    """`find`, asked once for each look of an experiment: what was measured before it stays as it was."""
    known: dict[tuple[int, tuple[str, ...]], list[PairVerdict]] = {}

    def asked(rows: Rows, rules: Rules, alpha: float) -> list[PairVerdict]:
        key = sum(row.measured for here in rows.values() for row in here), rules.metrics
        if key not in known:
            known[key] = find(rows, rules, alpha)
        return known[key]

    return asked


def study(row: Row, variation: float, times: int) -> Tally:
    random = np.random.default_rng([ROWS.index(row), int(1e4 * variation), 13])
    tally = Tally()
    for _ in range(times):
        with mock.patch("harness.verdicts.sequential.find", _once()):
            cells, repeats = _measured(experiment(random, row, variation, LOOKS[-1]))
            found = find_by_looks(rows_of(cells), replace(RULES, looks=LOOKS, last_look=repeats))
        wrong = {True: False, False: False}
        for one in found:
            wrong[one.primary] |= is_false(row, one)
            if one.primary:
                tally.words[one.verdict] += 1
        tally.false_primary += wrong[True]
        tally.false_others += wrong[False]
        tally.cells += len(cells)
        tally.starts += len({(cell.label, cell.repeat) for cell in cells})
        tally.stops[repeats] += 1
    return tally


def decided_by(row: Row, variation: float, repeats: int, times: int) -> float:
    """Share of the primary pairs that a fixed number of repeats decides."""
    random = np.random.default_rng([ROWS.index(row), int(1e4 * variation), 13])
    rules = replace(RULES, metrics=(RULES.primary,))
    words = Counter(
        one.verdict
        for _ in range(times)
        for one in find(rows_of(experiment(random, row, variation, repeats)), rules)
    )
    return sum(words[word] for word in DECIDED) / words.total()


def as_many(row: Row, variation: float, share: float) -> str:
    """Halves what lies between: a share that is reached stays reached, but for the luck of the draw."""
    low, high = RULES.min_runs - 1, MOST_FIXED + 1
    while high - low > 1:
        middle = (low + high) // 2
        reached = decided_by(row, variation, middle, FIXED_TIMES) >= share
        low, high = (low, middle) if reached else (middle, high)
    return str(high) if high <= MOST_FIXED else f"> {MOST_FIXED}"


def report(times: int, rows: Sequence[Row]) -> list[str]:
    """Prints the table; the rows with too many false words."""
    return [bad for row in rows for variation in VARIATIONS for bad in _line(row, variation, times)]


def print_head(times: int) -> None:
    print(f"{times} experiments a row, looks after {', '.join(map(str, LOOKS))} repeats")
    print(
        "| truth | variation | any false: primary | others | decided | repeats | starts "
        "| fixed 5 decides | fixed: as many |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")


def _line(row: Row, variation: float, times: int) -> Iterator[str]:
    tally = study(row, variation, times)
    primary, others = tally.false_primary / times, tally.false_others / times
    share = sum(tally.words[word] for word in DECIDED) / tally.words.total()
    repeats = tally.cells / times / row.points / len(row.speeds)
    starts = tally.starts / times / len(row.speeds)
    fixed, needed = decided_by(row, variation, FIXED, times), as_many(row, variation, share)
    print(
        f"| {row.name} | {variation:.0%} | {primary:.1%} | {others:.1%} | {share:.0%} "
        f"| {repeats:.2f} | {starts:.2f} | {fixed:.0%} | {needed} |",
        flush=True,
    )
    if max(primary, others) > FALSE_LIMIT + 2 * math.sqrt(FALSE_LIMIT * (1 - FALSE_LIMIT) / times):
        yield f"{row.name} at {variation:.0%}: {primary:.1%}, {others:.1%}"
