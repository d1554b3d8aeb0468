"""`bench report`: everything that can be derived from a run folder, derived again."""

import argparse
import json
import os
import sys
from pathlib import Path

from harness.errors import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, or names of runs under --out")
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the runs (default: ./results)"
    )
    parser.add_argument("--json", action="store_true", help="print summary.json instead of the table")


def main(arguments: argparse.Namespace) -> int:
    from harness import report
    from harness.cli.output import wants_color
    from harness.report.table import terminal
    from harness.store import open_run
    from harness.summary import summarise_folder

    width = os.get_terminal_size().columns if sys.stdout.isatty() else 100
    for name in arguments.runs:
        folder = open_run(name, arguments.out)
        summary = summarise_folder(folder)
        folder.write_json("summary.json", summary)
        written = report.build(folder)
        if arguments.json:
            print(json.dumps(folder.read_json("summary.json"), indent=1))
            continue
        print(terminal(summary, width=width, color=wants_color(sys.stdout)))
        print(f"\n{len(written)} files written to {folder.path}; report: {folder.path / 'report.html'}")
    return ExitCode.OK
