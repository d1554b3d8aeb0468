"""`bench publish`: runs to an experiment tracker."""

import argparse

from harness.cli.flags import options
from harness.errors import ExitCode, SpecError, extra_hint

EPILOG = f"""One entry per backend and load point: settings, the estimates over the repeats with the ends
of their 95% intervals, report and summary as files. Needs the tracker's extra:
{extra_hint("mlflow")}.

Exit codes: 0 success; 2 no such run, or no valid cell in it; 3 the tracker refused, or its
package is missing"""

_FILES = ("report.html", "summary.json", "table.md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from harness.report.exchange.trackers import TRACKERS

    options.add_runs(parser)
    options.add_runs_folder(parser)
    parser.add_argument("--to", choices=tuple(TRACKERS), required=True, help="experiment tracker")
    parser.add_argument(
        "--at",
        metavar="PLACE",
        help="MLflow: tracking URI (default: MLFLOW_TRACKING_URI); W&B: folder of its local files",
    )
    parser.add_argument(
        "--project", default="bench", metavar="NAME", help="experiment or project (default: bench)"
    )


def main(arguments: argparse.Namespace) -> int:
    from harness.report.exchange.trackers import TRACKERS, entries
    from harness.store import open_run

    for name in arguments.runs:
        folder = open_run(name, arguments.out)
        logged = list(entries(folder.read_summary()))
        if not logged:
            raise SpecError("no cell is valid, so there is no figure to publish", where=folder.run_id)
        files = [path for file in _FILES if (path := folder.path / file).exists()]
        TRACKERS[arguments.to](logged, files, arguments.at, arguments.project)
        print(f"{folder.run_id}: entries in project {arguments.project} of {arguments.to}: {len(logged)}")
    return ExitCode.OK
