"""`bench verify`: whether runs say what their records say."""

import argparse
import json
from typing import TYPE_CHECKING

from harness.cli.flags import options
from harness.errors import ExitCode, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.run.keep.verified import Verified

EPILOG = """Three checks. Files: each document, record and workload has its sha256 in checksums.json; logs and
what `bench report` makes again have none. Plan: every cell of plan.json is there, unless the manifest says
why not. Figures: every figure, verdict, rank line and exclusion of summary.json is computed again from the
records by this version. It is identical, it differs (where, by how much), or it cannot be computed again.

On the machine that measured, the files are also compared with a record outside of the folder. Elsewhere
nobody can know whether records, checksums and summary were changed together. Each run has a seal, one
sha256 of all that was measured: keep it elsewhere, and give it with --seal.

Exit codes: 0 identical; 1 a file is damaged, missing or new, a planned cell is missing, a figure differs or
cannot be computed again, or the seal is another one; 2 not a run with checksums."""

_MOST = 20  # differences that are printed for a run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_runs(parser)
    parser.add_argument("--seal", metavar="SHA256", help="seal that the run had when it was measured")
    options.add_runs_folder(parser)
    options.add_json(parser)


def main(arguments: argparse.Namespace) -> int:
    from harness.run.keep.verified import verify
    from harness.store import open_run, seal
    from harness.untrusted import inert

    if arguments.seal and len(arguments.runs) > 1:
        raise SpecError("is the seal of one run", where="--seal", hint="verify the runs one by one")
    checked: dict[str, Verified] = {}
    for given in arguments.runs:
        folder = open_run(given, arguments.out)
        if not folder.has(seal.FILE):
            raise SpecError(
                f"has no {seal.FILE}",
                where=str(folder.path),
                hint="runs of before version 0.2 have no checksums",
            )
        checked[str(folder.path)] = verify(folder)
    sealed = all(arguments.seal in (None, one.seal) for one in checked.values())
    if arguments.json:
        print(json.dumps({name: _as_json(one) for name, one in checked.items()}, indent=1))
    else:
        for name, one in checked.items():
            for line in _lines(one):
                print(inert(f"{name}{line}"))
            if not sealed:
                print(inert(f"{name}: is not what was sealed: its seal is {one.seal}"))
    whole = all(one.whole for one in checked.values())
    return ExitCode.OK if whole and sealed else ExitCode.LIMIT_FAILED


def _lines(one: "Verified") -> "Iterator[str]":
    for fault in one.faults:
        yield f"/{fault.path} {fault.what}"
    for why in one.missing:
        yield f": {why}"
    for difference in one.differences[:_MOST]:
        yield f": {difference.text}"
    if (more := len(one.differences) - _MOST) > 0:
        yield f": and {more} more values"
    if one.differences and one.other_version:
        yield f": was measured by {one.made_by}, whose rules may differ: `bench report` computes it again"
    if one.whole:
        where = ", and as this machine recorded them" if one.recorded else ""
        added = f"; {one.added} values are new in this version" if one.added else ""
        yield f": {one.files} files are as they were written{where}; every figure is identical{added}"
        if one.priced:
            yield ": its costs are at a price that it got after the run; no record can show it"
        yield f": seal {one.seal}"


def _as_json(one: "Verified") -> dict[str, object]:
    state = "differs" if one.faults or one.differences else "cannot be computed again"
    return {
        "state": "identical" if one.whole else state,
        "files": one.files,
        "faults": {fault.path: fault.what for fault in one.faults},
        "missing": list(one.missing),
        "differences": [
            {"path": each.path, "stored": each.stored, "computed": each.computed} for each in one.differences
        ],
        "added": one.added,
        "recorded": one.recorded,
        "made_by": one.made_by,
        "seal": one.seal,
    }
