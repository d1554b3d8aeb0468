"""Finds what a baseline has and a later run lacks, which a gate that looks only at figures would miss."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.errors import SpecError
from harness.model import CellResult, LoadPoint, Manifest, MissingFigure, better_of
from harness.model.json_path import number_at
from harness.model.numbers import counted
from harness.spec.strict import nearest
from harness.verdicts.run_values import Series, loads, series


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a run lacks. Without `load` it is every load point, without `metric` every metric."""

    label: str
    load: LoadPoint | None
    metric: str | None
    why: str

    @property
    def names(self) -> set[str]:
        """Names of which any allows it in --allow-missing."""
        point = self.load.label if self.load else None
        both = f"{self.label}/{point}" if point else None
        return {name for name in (self.label, point, both, self.metric) if name}

    def of(self, run: str, allowed: Iterable[str]) -> MissingFigure:
        """The entry for the document. `run` is the one that lacks it."""
        return MissingFigure(
            run=run,
            label=self.label,
            load=self.load,
            metric=self.metric,
            why=self.why,
            allowed=not self.names.isdisjoint(allowed),
        )


def missing(
    old: Sequence[CellResult], new: Sequence[CellResult], metrics: Sequence[str], decided_by: int | None
) -> Iterator[Missing]:
    """Yields what the new run lacks of one backend that both measured. What both lack is not missing, nor are
    the loads that a capacity search chose to try.

    `decided_by` is the number of runs at which --repeats auto ended the new run: it needs no more than that,
    even if the baseline has more. None: its number was fixed.
    """
    label, tried = old[0].label, {cell.point for cell in old if cell.probe}
    for load in loads(old):
        if load in tried:
            continue
        before, after = (series(cells, load, {})[0] for cells in (old, new))
        if not before.cells:
            continue
        if not after.measured:
            yield Missing(label, load, None, "not measured")
            continue
        if after.measured < (least := min(before.measured, decided_by or before.measured)):
            yield Missing(label, load, None, f"{counted(after.measured, 'run')}, the baseline has {least}")
        if len(after.invalid) / after.measured > len(before.invalid) / before.measured:
            yield Missing(label, load, None, invalid_words(after))
        if after.cells:
            yield from _nulls(label, load, before, after, metrics)


def invalid_words(series: Series) -> str:
    """`INVALID failed-requests 3 of 5`."""
    words = ("INVALID", series.invalid_codes, f"{len(series.invalid)} of {series.measured}")
    return " ".join(filter(None, words))


def _nulls(
    label: str, load: LoadPoint, before: Series, after: Series, metrics: Sequence[str]
) -> Iterator[Missing]:
    for metric in metrics:
        lacked = sum(is_nothing(metric, number_at(cell, metric)) for cell in before.cells)
        values = [(cell, number_at(cell, metric)) for cell in after.cells]
        without = [(cell, value) for cell, value in values if is_nothing(metric, value)]
        if len(without) * len(before.cells) > lacked * len(after.cells):
            words = " or ".join(dict.fromkeys("null" if value is None else "0" for _, value in without))
            reasons = (cell.null_reasons.get(metric) for cell, _ in without)
            reason = next((f": {why}" for why in reasons if why), "")
            yield Missing(
                label, load, metric, f"{words} in {len(without)} of {len(after.cells)} runs{reason}"
            )


def is_nothing(metric: str, value: float | None) -> bool:
    """Whether nothing is left to be compared: null, or 0 where more is better, which has no ratio."""
    return value is None or (value == 0 and better_of(metric) == "higher")


def failed_to_start(manifest: Manifest, label: str) -> Missing | None:
    failures = [failure for failure in manifest.failures if failure.backend == label]
    if not failures:
        return None
    runs = counted(len(failures), "run")
    return Missing(label, None, None, f"did not start in {runs}: {failures[0].error}")


def check_allowed(allowed: Iterable[str], cells: Sequence[CellResult], metrics: Iterable[str]) -> None:
    """Raises SpecError for a name that allows nothing: a typo must not look like an exception."""
    places = {(cell.label, cell.point.label) for cell in cells}
    known = {
        *(label for label, _ in places),
        *(load for _, load in places),
        *(f"{label}/{load}" for label, load in places),
        *metrics,
    }
    for name in allowed:
        if name not in known:
            raise SpecError(
                f"no backend, load point or metric '{name}' in these runs",
                where="--allow-missing",
                hint=nearest(name, sorted(known)),
            )
