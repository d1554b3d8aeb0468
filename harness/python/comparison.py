"""Runs of any time and machine against a baseline, as `bench compare` does it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.python.run import Run, load

if TYPE_CHECKING:
    import pandas as pd

    from harness.model import ComparedConclusion, RunComparison


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison:
    """`document` is what `bench compare` found, typed: pairs, differences, missing figures, the gate."""

    document: "RunComparison"

    @property
    def refused(self) -> tuple[str, ...]:
        """The reason of each pair that was not compared in anything. Empty if all were compared."""
        from harness.report.findings.several import why_refused

        return tuple(dict.fromkeys(filter(None, map(why_refused, self.document.pairs))))

    def verdicts(self) -> "pd.DataFrame":
        """One row per pair, load and metric: `a` is the new backend, `b` its baseline, each as RUN/LABEL.

        Columns as those of `Run.verdicts`, and the values of both; times in seconds.
        """
        from harness.python import frames
        from harness.store import tables

        rows = []
        for pair in self.document.pairs:
            found = tables.verdict_rows(pair.a.run, pair.findings)
            rows += [[*row, *finding.values] for row, finding in zip(found, pair.findings, strict=True)]
        return frames.of_verdicts({**tables.VERDICTS, "value_a": "double", "value_b": "double"}, rows)

    def conclusion(self) -> "ComparedConclusion":
        """What became slower, in one sentence, and the speed-up with its interval per pair, load and
        metric.
        """
        from harness.report.findings.against import concluded

        return concluded(self.document)

    def __repr__(self) -> str:
        from harness.model.numbers import counted

        names = ", ".join(run.name for run in self.document.runs)
        return f"<Comparison of {names}: {counted(len(self.document.pairs), 'pair')}>"


def compare(
    baseline: Run | str | os.PathLike[str],
    *others: Run | str | os.PathLike[str],
    force: bool = False,
    floor: float | None = None,
    allow_missing: Sequence[str] = (),
) -> Comparison:
    """Each backend of the other runs against the same backend of `baseline`; paths are loaded first.

    A single run: its backends against the first of them. `force` compares where conditions differ in what
    matters; `floor` is the smallest difference that counts, as a share (0.02 in a run, 0.05 between runs);
    `allow_missing` names backends, load points (`c8`), both (`vllm/c8`) or metrics that may be missing.
    Raises BenchError as `load` does, for a run that is there twice, and for a single run of one backend.
    """
    from harness.errors import SpecError
    from harness.run.keep.loaded import comparable
    from harness.verdicts.baseline import compare_runs

    if floor is not None and not 0 <= floor < float("inf"):
        raise SpecError(f"must be a share from 0 on, such as 0.02, not {floor}", where="floor")
    given = [
        run_or_name if isinstance(run_or_name, Run) else load(run_or_name)
        for run_or_name in (baseline, *others)
    ]
    runs = comparable([run.loaded for run in given])
    return Comparison(compare_runs(runs, force=force, floor=floor, allow_missing=allow_missing))
