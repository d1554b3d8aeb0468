"""`bench resume`: what is missing of a run or was cut short, cells and answers, and nothing else."""

import argparse
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.output import agreed, can_ask, print_note
from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import RunOutput
from harness.errors import SpecError
from harness.host import nvml
from harness.model import UNSET, Manifest
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.store import RunFolder

EPILOG = """A run folder says which servers get requests, with which key, and which programs start them. These
are compared with a record that this machine keeps of each run it began. Where they differ, or the run was
begun elsewhere, they are shown, and you decide."""


@dataclass(frozen=True)
class Options(RunOutput):
    run: str
    trust_folder: bool
    out: Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=options.RUN_HELP)
    parser.add_argument(
        "--trust-folder",
        action="store_true",
        help="take servers, keys and programs from the folder, whoever wrote it",
    )
    options.add_runs_folder(parser)
    options.add_run_output(parser)


@nvml.kept_open()
def main(given: Options) -> Result:
    from harness.cli.commands.run_session import resumed, run_and_show
    from harness.run.keep import origin
    from harness.run.keep.manifest import require_unchanged
    from harness.run.setup.options import stored_options
    from harness.run.setup.prepare import prepare
    from harness.store import open_run

    folder = open_run(given.run, given.out)
    stored = folder.read_manifest()
    if folder.is_held:
        raise SpecError("is still running", where=str(folder.path), hint="wait until it ends, or stop it")
    if stored.state == "complete" and not _missing(folder, stored):
        hint = f"`bench report {shlex.quote(str(folder.path))}` makes its table and report again"
        cells = folder.read_summary().cells if folder.has("summary.json") else ()
        if invalid := sum(cell.invalid for cell in cells):
            hint = f"only a new run measures {counted(invalid, 'INVALID cell')} again; {hint}"
        raise SpecError("nothing is missing: every cell was measured", where=str(folder.path), hint=hint)
    begun_with = stored_options(stored, str(folder.path / "manifest.json"))
    if (doubts := origin.differences(folder.run_id, begun_with)) and not given.trust_folder:
        _require_trust(folder, doubts)
    prepared = prepare(begun_with)
    require_unchanged(folder, prepared)
    return run_and_show(prepared, partial(resumed, prepared, folder), given)


def _require_trust(folder: "RunFolder", doubts: Sequence[str]) -> None:
    """Raises SpecError unless the user, at a terminal, accepts these options from the folder."""
    error = SpecError(
        "was not begun with these options on this machine",
        where=str(folder.path),
        hint="--trust-folder resumes it with them",
        below="\n".join(doubts),
    )
    if not can_ask():
        raise error
    print_note(str(error))
    if not agreed("resume with them?"):
        raise SpecError("not resumed", where=str(folder.path))


def _missing(folder: "RunFolder", stored: Manifest) -> bool:
    """Whether an engine did not start or answered no question, or cells are missing or damaged."""
    from harness.store import seal
    from harness.validity import notices

    code = notices.AGREEMENT_MISSING.code
    unasked = any(warning.code == code and warning.backend is not UNSET for warning in stored.warnings)
    if unasked or stored.failures or not set(_needed(folder, stored)) <= set(folder.cells()):
        return True
    _, damaged = seal.faults(folder.files) or (0, [])
    return any(fault.path.startswith(("cells/", "workloads/")) for fault in damaged)


def _needed(folder: "RunFolder", stored: Manifest) -> Iterable[str]:
    """The cells of a run. Of --repeats auto those up to its first look, since later ones leave some out, and
    those that were measured.
    """
    from harness.run.keep.stored import summarised

    looks = stored.stopping
    if looks is None:
        return stored.order
    first = 0 if looks.blocks else min(looks.repeats, looks.looks[0])
    return {name for name in stored.order if int(name.rpartition("-r")[2]) < first} | summarised(folder)
