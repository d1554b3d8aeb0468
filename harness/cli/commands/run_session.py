"""A run from its first engine to the table a person reads, and the exit code a script reads."""

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path

from harness import report
from harness.cli.display.live import wrapped
from harness.cli.display.metrics_port import serving
from harness.cli.display.output import page_width, print_error, progress_display
from harness.cli.display.progress import Display
from harness.cli.display.results import as_document, show
from harness.errors import ExitCode, SetupError, StorageError
from harness.report.text.screen import Sketch
from harness.run.execute import Run
from harness.run.setup.options import Ui
from harness.run.setup.prepare import Prepared
from harness.run.setup.provision import check_machine
from harness.store import RunFolder
from harness.verdicts.capacity import exit_code


@contextmanager
def started(prepared: Prepared, ui: Ui, *, anyway: bool = False) -> Iterator[Run]:
    _check(prepared, ui, anyway=anyway)
    run = Run.start(prepared, ui)
    with run.folder.held():
        yield run


@contextmanager
def resumed(prepared: Prepared, folder: RunFolder, ui: Ui) -> Iterator[Run]:
    """Holds the folder before it moves cells that were cut short: another process may measure them.

    What only lacks its conclusion needs no engine.
    """
    with folder.held():
        run = Run.resume(prepared, folder, ui)
        if run.left():
            _check(prepared, ui, resumed=True)
        yield run


def _check(prepared: Prepared, ui: Ui, *, anyway: bool = False, resumed: bool = False) -> None:
    ui.stage("checking what the backends need")
    check_machine(prepared, ui.stage, anyway=anyway, resumed=resumed)


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
        for why in dict.fromkeys(backend.launch.why for backend in prepared.backends):
            ui.note(why)
        with begin(ui) as run:
            ui.follow(run)
            run.execute()
            ui.close()  # the answer stands where it was
            cut_short = _show(run, arguments, sketch, ui)
    if run.interrupted:
        kept = "interrupted: what was measured is kept" if run.cells else "interrupted, not measured"
        _print_next(kept, "measure the rest", "resume", run.folder.path)
    elif cut_short:
        _print_next("interrupted: what was measured is kept", "make the report", "report", run.folder.path)
        return ExitCode.INTERRUPTED
    return _exit_code(run)


def _show(run: Run, arguments: argparse.Namespace, sketch: Sketch | None, ui: Display) -> bool:
    """Whether that was interrupted. A run without cells has a document, and nothing for a person."""
    draws = run.cells and not arguments.no_report
    try:
        if arguments.json or run.cells:
            show(run.folder, arguments, sketch, partial(_drawn, ui=ui) if draws else lambda _folder: ())
    except KeyboardInterrupt:
        if arguments.json:
            print(as_document(run.folder))
        return True
    return False


def _drawn(folder: RunFolder, ui: Display) -> list[Path]:
    ui.stage("drawing the report")
    try:
        return report.build(folder)
    except StorageError as error:
        again = f"bench report {shlex.quote(str(folder.path))}"
        hint = f"what was measured is kept: `{again}` makes the report once this is mended"
        raise StorageError(error.what, where=error.where, hint=hint) from error
    finally:
        ui.close()


def _print_next(kept: str, purpose: str, command: str, run: Path) -> None:
    """The command has a line to itself, so that it can be copied."""
    print(wrapped(f"{kept}; to {purpose}:", page_width()), file=sys.stderr)
    print(f"  bench {command} {shlex.quote(str(run))}", file=sys.stderr)


def _exit_code(run: Run) -> ExitCode:
    if run.interrupted:
        return ExitCode.INTERRUPTED
    if run.failures and not run.cells:
        backends = ", ".join(dict.fromkeys(failure.backend for failure in run.failures))
        print_error(SetupError("no backend could be measured", where=backends))
    return exit_code(run.summary, failures=bool(run.failures))
