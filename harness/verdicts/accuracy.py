"""Compares answers of two backends, of one run or two, to the same questions: the gate `accuracy.drop`."""

from collections.abc import Iterator, Sequence

from harness.model import (
    Agreement,
    BackendAgreement,
    ComparedAccuracy,
    ComparedLabel,
    GateRow,
)
from harness.model.agreement import MARGIN
from harness.stats.paired import LEVEL, change
from harness.verdicts.gate import Place

METRIC = "accuracy.drop"
NEW, BASELINE = "the new one", "the baseline"  # where both have one label

Asked = tuple[Agreement | None, str]  # of a run, and the label of one of its backends


def compared(
    new: ComparedLabel, old: ComparedLabel, now: Asked, before: Asked, pairs: int
) -> Iterator[ComparedAccuracy]:
    """Yields the comparison in each condition, at 5% over all `pairs`; none if neither was asked."""
    mine, base = _backend(*now), _backend(*before)
    names = (NEW, BASELINE) if new.label == old.label else (new.label, old.label)
    for under_load in (False, True):
        found, why = None, ""
        if base is None and mine is None:
            continue
        if base is None or mine is None:
            why = f"no questions were asked of {names[mine is not None]}"
        elif _questions(now) != _questions(before):
            why = "other questions were asked"
        elif under_load and mine.saturated.load != base.saturated.load:
            why = "asked under other loads"
        else:
            first, second = (
                (answers.saturated if under_load else answers.unloaded).marks for answers in (base, mine)
            )
            found = change(first, second, LEVEL / max(pairs, 1))
            why = "no question was answered by both" if "1" in first + second else "no answer is right"
        if found is None:
            yield ComparedAccuracy(a=new, b=old, change=None, under_load=under_load, why=why)
            continue
        between = found.between(old.label, new.label, under_load=under_load)
        yield ComparedAccuracy(a=new, b=old, change=between, under_load=under_load, why=between.words)


def drops(rows: Sequence[ComparedAccuracy]) -> Iterator[GateRow]:
    """Yields what `--fail-on accuracy.drop` fails on: a loss, and whatever may hide one beyond the margin."""
    for row in rows:
        subject = Place(row.a.run, row.a.label)
        why = f"{'under load' if row.under_load else 'one at a time'}: {row.why}"
        if row.change is None:
            yield subject.row("not compared", why, metric=METRIC)
        elif row.change.verdict == "loses":
            yield subject.row("accuracy", why, metric=METRIC)
        elif row.change.change.low < -MARGIN:
            yield subject.row("undecided", why, metric=METRIC)


def _backend(agreement: Agreement | None, label: str) -> BackendAgreement | None:
    return agreement.backends.get(label) if agreement else None


def _questions(asked: Asked) -> str:
    return asked[0].sha256 if asked[0] else ""
