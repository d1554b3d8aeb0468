"""Gates of commands: --fail-on limits of `bench run`, and --junit there and of `bench compare`."""

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.result import Result, Screen
from harness.cli.flags import options
from harness.errors import ExitCode, SpecError, StorageError, writing
from harness.model import GateKind, LoadPoint, Summary

if TYPE_CHECKING:
    from harness.report.text.junit import Case

LIMITS = "limits"


def add_junit(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--junit",
        type=Path,
        metavar="FILE",
        help="write what --fail-on found as JUnit XML, which CI servers show as tests",
    )


def check_junit(path: Path | None, fail_on: Sequence[str]) -> None:
    """Raises SpecError without a gate or for a file of a run, and StorageError for a file that cannot be
    written: before anything is measured.
    """
    from harness.store import refuse_file_of_run

    if path is None:
        return
    where = f"--junit {path}"
    if not fail_on:
        raise SpecError("only applies to --fail-on", where="--junit", hint="--fail-on is the gate")
    options.check_folder(path.parent, where)
    if path.is_dir():
        raise StorageError("is a folder, not a file", where=where, hint="name a file in it")
    if path.exists() and not os.access(path, os.W_OK):
        raise StorageError("cannot be written", where=where, hint="choose another file")
    refuse_file_of_run(path, where)


def remove_junit(path: Path) -> None:
    """Removes the file of an earlier gate: a run that ends before its own would be taken for that one."""
    with writing(str(path)):
        path.unlink(missing_ok=True)


def write_junit(path: Path, suite: str, cases: "Iterable[Case]", accepted: Iterable[GateKind] = ()) -> None:
    from harness.report.text.junit import junit

    text = junit(suite, cases, accepted)
    with writing(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def judged_limits(
    summary: Summary,
    code: ExitCode,
    slo: Mapping[str, Mapping[str, float]],
    planned: Iterable[tuple[str, LoadPoint]],
    path: Path | None,
) -> Result:
    """The gate's section and exit code. `code`: that of the run, which says more than the gate does where
    something was not measured; a limit that was missed counts whatever else went wrong.
    """
    from harness.report.blocks.block import Line
    from harness.report.blocks.comparison import gate
    from harness.report.text.junit import Case
    from harness.report.text.terminal_text import terminal
    from harness.verdicts.limits import limit_checks

    checks = [*limit_checks(summary, slo, planned)]
    rows = [check.row for check in checks if check.row]
    if path:
        cases = (
            Case(f"{check.label} {check.load.label} {check.words}", *((row.kind, row.why) if row else ()))
            for check in checks
            for row in (check.row,)
        )
        write_junit(path, summary.scenario, cases)
    worse = any(row.kind == "limit" for row in rows)
    if worse or (rows and not code):
        code = ExitCode.LIMIT_FAILED
    section = gate(rows, failed=bool(code), worse=worse)
    if code and not rows:
        kept = f"what was measured keeps every limit, and the run ended with exit code {int(code)}"
        section = replace(section, blocks=[Line(kept)])

    def text(screen: Screen) -> str:
        return terminal([section], screen.width, screen.color)

    return Result(text, code=code)
