"""Run folders named on a command line, as what is compared."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from harness.compare.baseline import Run
from harness.errors import DamagedError, SpecError
from harness.run.verified import Verified, verify
from harness.store import RunFolder, open_run
from harness.summary import folder_samples
from harness.untrusted import inert


def opened(names: Sequence[str], results: Path, *, unverified: bool = False) -> list[Run]:
    """With the figures that this version computes from the records.

    `unverified`: as summary.json says them, whatever is wrong, with a warning on stderr. Raises SpecError for
    a folder that is no run, of another schema, or without a measured cell; DamagedError for one that does
    not verify.
    """
    seen: Counter[str] = Counter()
    runs = []
    for given in names:
        folder = open_run(given, results)
        name = folder.path.resolve().name
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        checked = verify(folder)
        run = _as_stored(unique, folder, checked) if unverified else _as_computed(unique, folder, checked)
        if not run.cells:
            raise SpecError("no cell of this run was measured", where=str(folder.path))
        runs.append(run)
    return runs


def _as_computed(name: str, folder: RunFolder, checked: Verified) -> Run:
    if doubts := checked.doubts:
        more = f", and {len(doubts) - 1} more" if len(doubts) > 1 else ""
        raise DamagedError(
            f"does not verify: {doubts[0]}{more}",
            where=str(folder.path),
            hint="`bench verify` lists all of it; --unverified compares what summary.json says all the same",
        )
    assert checked.manifest is not None
    assert checked.summary is not None
    if checked.differences:
        text = f"{folder.path}: {len(checked.differences)} values differ from its summary.json"
        why = f"it was measured by {checked.made_by}; those of this version are compared"
        print(inert(f"note: {text}: {why}"), file=sys.stderr)
    return Run(name, checked.manifest, checked.summary.cells, folder_samples(folder), checked.summary)


def _as_stored(name: str, folder: RunFolder, checked: Verified) -> Run:
    for doubt in [*checked.doubts, *(one.text for one in checked.differences if checked.other_version)]:
        print(inert(f"warning: NOT VERIFIED: {folder.path}: {doubt}"), file=sys.stderr)
    try:
        samples = folder_samples(folder)
    except SpecError:
        samples = {}
    summary = folder.read_summary()
    return Run(name, folder.read_manifest(), summary.cells, samples, summary)
