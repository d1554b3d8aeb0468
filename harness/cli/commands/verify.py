"""`bench verify`: whether runs say what their records say."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import ExitCode, SpecError
from harness.model.numbers import counted
from harness.untrusted import inert

if TYPE_CHECKING:
    from harness.run.keep.differences import Difference
    from harness.run.keep.verified import Verified

EPILOG = """Three checks. Files: each document, record and workload has its sha256 in checksums.json; logs and
what `bench report` makes again have none. Plan: every cell of plan.json is there, unless the manifest says
why not. Figures: every figure, verdict, rank line and exclusion of summary.json is computed again from the
records by this version. It is identical, it differs (where, by how much), or it cannot be computed again.
Identical is to nine digits: processors and versions of numpy differ in the digits after them. A sentence in
a summary of another version may have other words: it is listed, and is no difference where it names the same
figures, units, backends and codes in the same order.

On the machine that measured, the files are also compared with a record outside of the folder. Elsewhere
nobody can know whether records, checksums and summary were changed together. Each run has a seal, one
sha256 of all that was measured: keep it elsewhere, and give it with --seal.

Exit codes: 0 identical; 1 a file is damaged, missing or new, a planned cell is missing, a figure differs or
cannot be computed again, or the seal is another one; 2 not a run with checksums."""

_MOST = 20  # differences that are printed for a run


@dataclass(frozen=True)
class Options(Flags):
    runs: tuple[str, ...]
    seal: str | None
    out: Path
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_runs(parser)
    parser.add_argument("--seal", metavar="SHA256", help="seal that the run had when it was measured")
    options.add_runs_folder(parser)
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.run.keep.verified import verify
    from harness.store import open_run, seal

    if given.seal and len(given.runs) > 1:
        raise SpecError("is the seal of one run", where="--seal", hint="verify the runs one by one")
    checked: dict[str, Verified] = {}
    for name in given.runs:
        folder = open_run(name, given.out)
        if not folder.has(seal.FILE):
            raise SpecError(
                f"has no {seal.FILE}",
                where=str(folder.path),
                hint="runs of before version 0.2 have no checksums",
            )
        checked[str(folder.path)] = verify(folder)
    unsealed = [
        inert(f"{name}: is not what was sealed: its seal is {run.seal}")
        for name, run in checked.items()
        if given.seal not in (None, run.seal)
    ]
    whole = all(run.whole for run in checked.values())
    return Result(
        [*(inert(f"{name}{line}") for name, run in checked.items() for line in _lines(run)), *unsealed],
        lambda: {name: _as_json(run) for name, run in checked.items()},
        ExitCode.OK if whole and not unsealed else ExitCode.LIMIT_FAILED,
        unsealed if given.json else (),
    )


def _lines(run: "Verified") -> Iterator[str]:
    for fault in run.faults:
        yield f"/{fault.path} {fault.what}"
    for why in run.missing:
        yield f": {why}"
    for difference in run.differences[:_MOST]:
        yield f": {difference.text}"
    if (more := len(run.differences) - _MOST) > 0:
        yield f": and {counted(more, 'more value')}"
    if run.differences and run.other_version:
        yield f": was measured by {run.made_by}, whose rules may differ: `bench report` computes it again"
    for text in run.reworded[:_MOST]:
        yield f": text of another version: {text.text}"
    if (more := len(run.reworded) - _MOST) > 0:
        yield f": and {counted(more, 'more text')} of another version"
    if run.whole:
        where = ", and as this machine recorded them" if run.recorded else ""
        added = f"; values that are new in this version: {run.added}" if run.added else ""
        yield f": {run.files} files are as they were written{where}; every figure is identical{added}"
        if run.priced:
            yield ": its costs are at a price that it got after the run; no record can show it"
        yield f": seal {run.seal}"


def _as_json(run: "Verified") -> dict[str, object]:
    whole = "reworded" if run.reworded else "identical"
    state = "differs" if run.faults or run.differences else "cannot be computed again"
    return {
        "state": whole if run.whole else state,
        "files": run.files,
        "faults": {fault.path: fault.what for fault in run.faults},
        "missing": list(run.missing),
        "differences": _paths(run.differences),
        "added": run.added,
        "reworded": _paths(run.reworded),
        "recorded": run.recorded,
        "made_by": run.made_by,
        "seal": run.seal,
    }


def _paths(found: "Sequence[Difference]") -> list[dict[str, object]]:
    return [{"path": each.path, "stored": each.stored, "computed": each.computed} for each in found]
