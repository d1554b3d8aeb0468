"""`bench compare`: runs of any machine against a baseline; the exit code is a gate."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.commands import gates, runs_page
from harness.cli.display.result import Result, Screen
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import ExitCode, SpecError
from harness.model import GateKind, GateRow, RunComparison, as_json

if TYPE_CHECKING:
    from harness.verdicts.baseline import Run

ACCURACY_DROP = "accuracy.drop"
EPILOG = """Each backend is compared with the same backend of the baseline run (the first RUN, or --baseline),
the backends of a single run with each other. Runs whose conditions differ in what matters (such as requests,
weights, model, number type, threads, cache state or hardware) are refused unless --force. Whatever the
baseline measured and a run lacks, or has more often as INVALID, null or 0, or in fewer runs, is listed as
missing.

All figures are computed again from the records of each run. A run whose files or summary do not verify
(`bench verify`) is refused unless --unverified.

--fail-on slower is a gate. It looks at the metrics of the scenario, at the highest percentile of E2E that
the requests suffice for (p99 from 299 on), at failed requests and at pauses of the engine. It fails on what
is worse, and on what it cannot decide: a primary metric without a verdict, or a new failure in too few
requests. --undecided pass accepts the latter; --undecided skip ends with 125 where nothing is worse but
something is not decided, missing or not compared: `git bisect run` then tries another commit. --fail-on
accuracy.drop does the same for the answers to the questions of --accuracy: it fails on a loss, and where
a loss of 5 points is not excluded.

Exit codes: 0 success; 1 something missing, a load point that cannot be compared, or with --fail-on a
gate that did not pass; 2 not a run folder, or one that does not verify; 125 with --undecided skip."""
_WORSE = ("slower", "failures", "accuracy", "stalls")  # rows of a gate; the others say that nothing is known


@dataclass(frozen=True)
class Options(Flags):
    runs: tuple[str, ...]
    baseline: str | None
    fail_on: tuple[str, ...]
    undecided: str
    force: bool
    allow_missing: tuple[str, ...]
    unverified: bool
    floor: float | None
    out: Path
    html: Path | None
    junit: Path | None
    markdown: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_runs(parser, files=True)
    parser.add_argument(
        "--baseline", metavar="NAME", help="run or backend to compare with (default: the first)"
    )
    options.add_fail_on(
        parser,
        "something is slower, fails more often or lost accuracy, or that is not decided; accuracy.drop: if "
        "accuracy was lost, or a loss of 5 points is not excluded (repeatable)",
        ACCURACY_DROP,
    )
    parser.add_argument(
        "--undecided",
        choices=("fail", "pass", "skip"),
        default="fail",
        help="how --fail-on treats a primary metric without a verdict; skip: exit with 125, for git bisect "
        "(default: fail)",
    )
    parser.add_argument("--force", action="store_true", help="compare even if conditions differ")
    options.add_allow_missing(parser)
    parser.add_argument(
        "--unverified",
        action="store_true",
        help="compare what summary.json says even if the records do not confirm it; each doubt is printed",
    )
    options.add_floor(
        parser,
        "smallest difference that counts; what lies within is the same (default: 2 within a run, 5 between "
        "runs)",
    )
    options.add_runs_folder(parser)
    runs_page.add_html(parser)
    gates.add_junit(parser)
    form = parser.add_mutually_exclusive_group()
    options.add_json(form)
    options.add_markdown(form, "a pull request")


def main(given: Options) -> Result:
    from msgspec.structs import replace

    from harness.report.blocks.comparison import compared, gate
    from harness.report.findings.against import concluded
    from harness.report.text.markdown_text import markdown
    from harness.report.text.terminal_text import terminal
    from harness.verdicts.baseline import compare_runs
    from harness.verdicts.gate import not_allowed, refused

    if given.undecided != "fail" and not given.fail_on:
        raise SpecError("only applies to --fail-on", where="--undecided", hint="--fail-on slower is the gate")
    gates.check_junit(given.junit, given.fail_on)
    if given.html:
        runs_page.check_several(given.runs)
    runs = runs_page.opened(given.runs, given.out, unverified=given.unverified)
    floor = None if given.floor is None else given.floor / 100
    document = compare_runs(
        runs,
        _baseline(given, runs),
        force=given.force,
        floor=floor,
        allow_missing=given.allow_missing,
    )
    failed = refused(document) or bool(not_allowed(document))
    if given.fail_on:
        document = replace(document, gate=_judged(document, given.fail_on))
        accepted: tuple[GateKind, ...] = ("undecided",) if given.undecided == "pass" else ()
        if given.junit:
            from harness.report.text.junit import compared_cases

            cases = compared_cases(document, speed="slower" in given.fail_on)
            gates.write_junit(given.junit, "bench compare", cases, accepted)
        failed = failed or any(row.kind not in accepted for row in document.gate)
    skipped = given.undecided == "skip" and not any(row.kind in _WORSE for row in document.gate)
    judged = [gate(document.gate, failed=failed, worse=not skipped)] if given.fail_on else []
    if given.html:
        runs_page.write(given.html, runs, document, judged)
    code = ExitCode.OK if not failed else ExitCode.SKIPPED if skipped else ExitCode.LIMIT_FAILED

    def text(screen: Screen) -> str:
        found = [*compared(document), *judged]
        return markdown(found) if given.markdown else terminal(found, screen.width, screen.color)

    return Result(
        text,
        lambda: {**as_json(document), "conclusion": as_json(concluded(document))},
        code,
    )


def _judged(document: RunComparison, fail_on: Sequence[str]) -> tuple[GateRow, ...]:
    """The rows of these gates; what is missing or not compared is in each. Raises SpecError."""
    from harness.verdicts.accuracy import drops

    rows = document.gate
    if "slower" not in fail_on:
        rows = tuple(row for row in rows if row.kind in ("missing", "not compared"))
    if ACCURACY_DROP in fail_on:
        if not document.accuracy:
            raise SpecError("no questions were asked in these runs", where=f"--fail-on {ACCURACY_DROP}",
                            hint="measure them with --accuracy")  # fmt: skip
        rows = (*(row for row in rows if row.metric != ACCURACY_DROP), *drops(document.accuracy))
    return rows


def _baseline(given: Options, runs: "Sequence[Run]") -> str | None:
    """One of the runs, as it was given, stands for its name, which may be unlike that of its folder."""
    name = given.baseline
    return runs[given.runs.index(name)].name if name in given.runs else name
