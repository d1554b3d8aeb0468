"""Gates of commands: --fail-on limits of `bench run`, and --junit of every gate."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.result import Result, Screen
from harness.cli.flags import options
from harness.errors import ExitCode, SpecError, writing
from harness.model import GateKind, Summary

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
    """Raises SpecError without a gate, and StorageError for a file that cannot be written."""
    if path is None:
        return
    if not fail_on:
        raise SpecError("only applies to --fail-on", where="--junit", hint="--fail-on is the gate")
    options.check_folder(path.parent, f"--junit {path}")


def write_junit(path: Path, suite: str, cases: "Iterable[Case]", accepted: Iterable[GateKind] = ()) -> None:
    from harness.report.text.junit import junit
    from harness.store import refuse_file_of_run

    refuse_file_of_run(path, f"--junit {path}")
    text = junit(suite, cases, accepted)
    with writing(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def judged_limits(summary: Summary, slo: Mapping[str, Mapping[str, float]], path: Path | None) -> Result:
    """The gate's section and exit code, of a run with limits."""
    from harness.report.blocks.comparison import gate
    from harness.report.text.junit import Case
    from harness.report.text.terminal_text import terminal
    from harness.verdicts.limits import limit_checks

    checks = [*limit_checks(summary, slo)]
    rows = [check.row for check in checks if check.row]
    if path:
        cases = (
            Case(f"{check.label} {check.load.label} {check.words}", *((row.kind, row.why) if row else ()))
            for check in checks
            for row in (check.row,)
        )
        write_junit(path, summary.scenario, cases)
    worse = any(row.kind == "limit" for row in rows)
    section = gate(rows, failed=bool(rows) or not checks, worse=worse)

    def text(screen: Screen) -> str:
        return terminal([section], screen.width, screen.color)

    return Result(text, code=ExitCode.LIMIT_FAILED if rows or not checks else ExitCode.OK)
