"""Run folders named on a command line, as what is compared."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.compare.baseline import Run
from harness.compare.run_values import Samples
from harness.errors import SpecError
from harness.model import Summary
from harness.model.json_path import number_at
from harness.store import RunFolder, open_run
from harness.summary import folder_samples


def opened(names: Sequence[str], results: Path) -> list[Run]:
    """Raises SpecError for a folder that is no run, of another schema, or without a measured cell."""
    seen: Counter[str] = Counter()
    runs = []
    for given in names:
        folder = open_run(given, results)
        name = folder.path.resolve().name
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        runs.append(_run(unique, folder))
    return runs


def _samples(folder: RunFolder, summary: Summary) -> Mapping[str, Samples]:
    """Read where a declared percentile is null in a cell: only then are requests pooled."""
    declared = summary.verdict_rules.metrics
    if all(number_at(cell, metric) is not None for cell in summary.cells for metric in declared):
        return {}
    return folder_samples(folder)


def _run(name: str, folder: RunFolder) -> Run:
    manifest, summary = folder.read_manifest(), folder.read_summary()
    run = Run(name, manifest, summary.cells, _samples(folder, summary))
    if not run.cells:
        raise SpecError("no cell of this run was measured", where=str(folder.path))
    return run
