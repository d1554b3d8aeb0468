"""`bench publish`: runs to an experiment tracker."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SpecError, extra_hint

EPILOG = f"""One entry per backend and load point: settings, the estimates over the repeats with the ends
of their 95% intervals, report and summary as files. Needs the tracker's extra:
{extra_hint("mlflow")}.

Exit codes: 0 success; 2 no such run, or no valid cell in it; 3 the tracker refused, or its
package is missing"""

_FILES = ("report.html", "summary.json", "table.md")


@dataclass(frozen=True)
class Options(Flags):
    runs: tuple[str, ...]
    out: Path
    to: str
    at: str | None
    project: str
    json: bool


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
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.report.exchange.trackers import TRACKERS, entries
    from harness.store import open_run

    published = []
    for name in given.runs:
        folder = open_run(name, given.out)
        logged = list(entries(folder.read_summary()))
        if not logged:
            raise SpecError("no cell is valid, so there is no figure to publish", where=folder.run_id)
        files = [path for file in _FILES if (path := folder.path / file).exists()]
        TRACKERS[given.to](logged, files, given.at, given.project)
        text = f"{folder.run_id}: entries in project {given.project} of {given.to}: {len(logged)}"
        put(Result(text), as_json=given.json)
        published.append({"run": folder.run_id, "entries": len(logged)})
    return Result(document=lambda: {"to": given.to, "project": given.project, "runs": published})
