"""A run from its first engine to the table a person reads, and the exit code a script reads."""

import argparse
import json
import sys
from collections.abc import Callable

from harness import report
from harness.cli.metrics_port import serving
from harness.cli.output import page_width, print_error, progress_display, wants_color
from harness.cli.progress import Display
from harness.engines.machine import Machine
from harness.engines.preflight import require
from harness.errors import ExitCode, SetupError
from harness.model import Summary
from harness.report.table import terminal
from harness.run.execute import Run
from harness.run.options import Ui
from harness.run.prepare import Prepared

More = Callable[[Summary, int], str]  # of a width


def conduct(
    prepared: Prepared, begin: Callable[[Ui], Run], arguments: argparse.Namespace, more: More | None = None
) -> int:
    ui = progress_display()
    try:
        with serving(arguments.metrics_port, ui.state):
            run = _run(prepared, begin, ui, draw=not arguments.no_report)
    finally:
        ui.close()
    _show(run, arguments, more)
    return _exit_code(run)


def _run(prepared: Prepared, begin: Callable[[Ui], Run], ui: Display, *, draw: bool) -> Run:
    for launch in prepared.launches:
        ui.note(launch.why)
    ui.stage("checking what the backends need")
    options = prepared.options
    require(
        prepared.engines,
        Machine(
            ui.stage,
            gpu_wait_s=options.gpu_wait_s,
            gpus=options.gpus,
            api_key_env=options.api_key_env,
        ),
    )
    run = begin(ui)
    ui.follow(run)
    with run.folder.held():
        run.execute()
        if run.cells and draw:
            ui.stage("report")
            report.build(run.folder)
    return run


def _show(run: Run, arguments: argparse.Namespace, more: More | None) -> None:
    path = run.folder.path
    if arguments.json:
        print(json.dumps(run.folder.read_json("summary.json"), indent=1))
    elif run.cells:
        width, summary = page_width(), run.folder.read_summary()
        print(terminal(summary, width=width, color=wants_color(sys.stdout)))
        if more:
            print(more(summary, width))
        print(f"\nrun folder: {path}")
        if not arguments.no_report:
            print(f"report:     {path / 'report.html'}")
    if run.interrupted:
        print(
            f"interrupted: what was measured is kept; `bench resume {path}` measures the rest",
            file=sys.stderr,
        )


def _exit_code(run: Run) -> ExitCode:
    if run.interrupted:
        return ExitCode.INTERRUPTED
    if run.failures and not run.cells:
        print_error(SetupError("no backend could be measured", where=run.failures[0].backend))
    if run.failures:
        return ExitCode.SETUP
    return ExitCode.INVALID if run.summary.state == "invalid" else ExitCode.OK
