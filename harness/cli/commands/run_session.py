"""A run from its first engine to the table a person reads, and the exit code a script reads."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness import report
from harness.cli.display.metrics_port import serving
from harness.cli.display.output import progress_display
from harness.cli.display.progress import Display
from harness.cli.display.result import Result, put
from harness.cli.display.results import as_document, show
from harness.cli.typed import RunOutput
from harness.errors import BenchError, ExitCode, SetupError, StorageError
from harness.model import Summary
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
    form: RunOutput,
    sketch: Sketch | None = None,
    judge: Callable[[Summary, ExitCode], Result] = lambda _summary, code: Result(code=code),
) -> Result:
    """Prints while the run's folder is held; the result that is left is its exit code and what to do next.
    `judge`: the gate on a run that came to its end, whose code it gets.
    """
    with closing(progress_display(verbose=form.verbose)) as ui, serving(form.metrics_port, ui.state):
        launches = (backend.launch for backend in prepared.backends)
        # That a given URL is used needs no reason, and its address is named when it answers.
        for why in dict.fromkeys(launch.why for launch in launches if launch.mode != "attach"):
            ui.note(why)
        with begin(ui) as run:
            ui.follow(run)
            run.execute()
            ui.close()  # the answer stands where it was
            cut_short = _show(run, form, sketch, ui)
    path = shlex.quote(str(run.folder.path))
    if run.interrupted:
        kept = "interrupted: what was measured is kept" if run.cells else "interrupted, not measured"
        seen = run.cells and not form.json and sys.stdout.isatty()  # below the table
        notes = [kept] if seen else _next(f"{kept}; to measure the rest:", f"resume {path}")
        return Result(code=ExitCode.INTERRUPTED, notes=notes)
    if cut_short:
        kept = "interrupted: what was measured is kept; to make the report:"
        return Result(code=ExitCode.INTERRUPTED, notes=_next(kept, f"report {path}"))
    code = exit_code(run.summary, failures=bool(run.failures))
    return replace(judge(run.summary, code), notes=_failed(run))


def _next(kept: str, command: str) -> list[str]:
    """The command has a line to itself, so that it can be copied."""
    return [kept, f"  bench {command}"]


def _failed(run: Run) -> list[BenchError]:
    if run.cells or not run.failures:
        return []
    backends = ", ".join(dict.fromkeys(failure.backend for failure in run.failures))
    return [SetupError("no backend could be measured", where=backends)]


def _show(run: Run, form: RunOutput, sketch: Sketch | None, ui: Display) -> bool:
    """Whether that was interrupted. A run without cells has a document, and nothing for a person."""
    draws = run.cells and not form.no_report
    try:
        if form.json or run.cells:
            show(run.folder, form, sketch, partial(_drawn, ui=ui) if draws else lambda _folder: ())
    except KeyboardInterrupt:
        put(Result(document=lambda: as_document(run.folder)), as_json=form.json)
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
