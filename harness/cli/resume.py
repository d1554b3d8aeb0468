"""`bench resume`: the cells of a run that are missing or were cut short, and nothing else."""

import argparse
from functools import partial
from typing import TYPE_CHECKING

from harness.cli import options
from harness.errors import SpecError

if TYPE_CHECKING:
    from harness.model import Manifest
    from harness.store import RunFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run folder, or name of a run under --out")
    options.add_runs_folder(parser)
    options.add_run_output(parser)


def main(arguments: argparse.Namespace) -> int:
    from harness.cli.run_session import conduct
    from harness.run.execute import Run
    from harness.run.options import stored_options
    from harness.run.prepare import prepare
    from harness.store import open_run

    folder = open_run(arguments.run, arguments.out)
    stored = folder.read_manifest()
    if folder.is_held:
        raise SpecError("is still running", where=str(folder.path), hint="wait until it ends, or stop it")
    if stored.state == "complete" and not _missing(folder, stored):
        raise SpecError("nothing is missing: every cell was measured", where=str(folder.path))
    prepared = prepare(stored_options(stored, str(folder.path / "manifest.json")))
    return conduct(prepared, partial(Run.resume, prepared, folder), arguments)


def _missing(folder: "RunFolder", stored: "Manifest") -> bool:
    """Engines that did not start, cells of one that died or that are damaged.

    --repeats auto leaves out what it does not need.
    """
    from harness.store import seal

    planned = () if stored.stopping else stored.order
    if stored.failures or not set(planned) <= set(folder.cells()):
        return True
    _, damaged = seal.faults(folder.path) or (0, [])
    return any(fault.path.startswith(("cells/", "workloads/")) for fault in damaged)
