"""`bench verify`: whether the files of runs are as they were written."""

import argparse
import json

from harness.cli import options
from harness.errors import ExitCode, SpecError

EPILOG = """Every file that figures are made of has its sha256 in checksums.json of its run: documents,
records, events, telemetry and workloads. Logs, and what `bench report` makes anew, have none.

Exit codes: 0 all as they were written; 1 a file is damaged, missing or new; 2 not a run with checksums."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_runs(parser)
    options.add_runs_folder(parser)
    options.add_json(parser)


def main(arguments: argparse.Namespace) -> int:
    from harness.store import open_run, seal
    from harness.untrusted import inert

    damage = {}
    for given in arguments.runs:
        folder = open_run(given, arguments.out)
        checked = seal.faults(folder.files)
        if checked is None:
            raise SpecError(
                f"has no {seal.FILE}",
                where=str(folder.path),
                hint="runs of before version 0.2 have no checksums",
            )
        damage[str(folder.path)] = checked
    if arguments.json:
        runs = {
            name: {"files": count, "faults": {fault.path: fault.what for fault in faults}}
            for name, (count, faults) in damage.items()
        }
        print(json.dumps(runs, indent=1))
    else:
        for name, (count, faults) in damage.items():
            for fault in faults:
                print(inert(f"{name}/{fault.path} {fault.what}"))
            if not faults:
                print(f"{inert(name)}: {count} files are as they were written")
    return ExitCode.LIMIT_FAILED if any(faults for _, faults in damage.values()) else ExitCode.OK
