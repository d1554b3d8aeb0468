"""A run from its first engine to the table a person reads, and the exit code a script reads."""

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from harness import report
from harness.cli.display.live import wrapped
from harness.cli.display.metrics_port import serving
from harness.cli.display.output import page_width, print_error, progress_display
from harness.cli.display.progress import Display
from harness.cli.display.results import show
from harness.errors import ExitCode, SetupError
from harness.report.text.screen import Sketch
from harness.run.execute import Run
from harness.run.setup.options import Ui
from harness.run.setup.prepare import Prepared
from harness.run.setup.provision import check_machine
from harness.store import RunFolder
from harness.verdicts.capacity import invalid_cells


@contextmanager
def started(prepared: Prepared, ui: Ui) -> Iterator[Run]:
    run = Run.start(prepared, ui)
    with run.folder.held():
        yield run


@contextmanager
def resumed(prepared: Prepared, folder: RunFolder, ui: Ui) -> Iterator[Run]:
    """Holds the folder before it moves cells that were cut short: another process may measure them."""
    with folder.held():
        yield Run.resume(prepared, folder, ui)


def run_and_show(
    prepared: Prepared,
    begin: Callable[[Ui], AbstractContextManager[Run]],
    arguments: argparse.Namespace,
    sketch: Sketch | None = None,
) -> int:
    with (
        closing(progress_display(verbose=arguments.verbose)) as ui,
        serving(arguments.metrics_port, ui.state),
    ):
        run, cut_short = _run(prepared, begin, ui, draw=not arguments.no_report)
    if cut_short and not run.interrupted:
        _print_next("interrupted: what was measured is kept", "make the report", "report", run.folder.path)
        return ExitCode.INTERRUPTED
    _show(run, arguments, sketch)
    return _exit_code(run)


def _run(
    prepared: Prepared, begin: Callable[[Ui], AbstractContextManager[Run]], ui: Display, *, draw: bool
) -> tuple[Run, bool]:
    """The run, and whether its report was interrupted."""
    for why in dict.fromkeys(backend.launch.why for backend in prepared.backends):
        ui.note(why)
    ui.stage("checking what the backends need")
    check_machine(prepared, ui.stage)
    with begin(ui) as run:
        ui.follow(run)
        run.execute()
        if run.cells and draw:
            ui.stage("report")
            try:
                report.build(run.folder)
            except KeyboardInterrupt:
                return run, True
    return run, False


def _show(run: Run, arguments: argparse.Namespace, sketch: Sketch | None) -> None:
    path = run.folder.path
    if arguments.json or run.cells:
        show(run.folder, arguments, sketch)
    if run.interrupted:
        kept = "interrupted: what was measured is kept" if run.cells else "interrupted, not measured"
        _print_next(kept, "measure the rest", "resume", path)


def _print_next(kept: str, purpose: str, command: str, run: Path) -> None:
    """The command has a line to itself, so that it can be copied."""
    print(wrapped(f"{kept}; to {purpose}:", page_width()), file=sys.stderr)
    print(f"  bench {command} {shlex.quote(str(run))}", file=sys.stderr)


def _exit_code(run: Run) -> ExitCode:
    if run.interrupted:
        return ExitCode.INTERRUPTED
    if run.failures and not run.cells:
        print_error(SetupError("no backend could be measured", where=run.failures[0].backend))
    if run.failures:
        return ExitCode.SETUP
    wrong = run.summary.state == "invalid" and invalid_cells(run.summary.cells, run.summary.capacity)
    return ExitCode.INVALID if wrong else ExitCode.OK
