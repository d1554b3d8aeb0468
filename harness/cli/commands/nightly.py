"""`bench nightly`: a suite of runs, their history, and a gate on what became slower for good."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.display.live import wrapped
from harness.cli.display.output import print_error, print_note
from harness.cli.display.result import Result, Screen, put
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import BenchError, ExitCode, SpecError, writing
from harness.model import as_json
from harness.model.numbers import duration

if TYPE_CHECKING:
    from harness.nightly import Night, Suite
    from harness.nightly.suite import Entry
    from harness.run.setup.prepare import Prepared
    from harness.spec.backend import Backend

EPILOG = """Each night's runs are added to the history of the results folder. The gate fails if a metric of
the scenario, or the p99 of E2E where the requests suffice for it, has been at a worse level than its best
for three nights or more: one bad night fails nothing. It also fails if a backend, load point, metric or
repeat that it expects is missing or INVALID tonight, if more requests failed than in earlier nights, or if
no run fitted the budget. Two levels need six nights: before these none can be worse.

Every run is checked before the first one starts. One that is wrong is named and fails; the others are
measured. --dry-run only checks.

Exit codes: 0 success; 1 the gate failed; 2 bad suite; 3 a run could not be set up; 4 INVALID measurement."""


@dataclass(frozen=True)
class Options(Flags):
    suite: str
    budget: float | None
    dry_run: bool
    engine_values: Mapping[str, str]
    allow_missing: tuple[str, ...]
    out: Path
    page: Path | None
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("suite", metavar="SUITE", help="name from `bench list suites`, or a file")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="MINUTES",
        help="skip runs that do not fit (default: the suite's budget)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="check every run of the suite, print how long it takes, and exit",
    )
    options.add_engine_set(parser, "engine value of every run")
    options.add_allow_missing(parser)
    options.add_runs_folder(parser, holds="runs and history")
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="file to append a Markdown summary to, such as $GITHUB_STEP_SUMMARY",
    )
    options.add_json(parser)


def main(given: Options) -> Result:
    from dataclasses import replace
    from datetime import UTC, datetime

    from harness.cli.commands.suite_check import check_entries
    from harness.nightly import drawn, load_suite, page, spend
    from harness.spec.files import locate

    suite = load_suite(given.suite)
    if given.budget is not None:
        if not 0 < given.budget < float("inf"):
            raise SpecError(f"must be minutes above 0, not {given.budget:g}", where="--budget")
        suite = replace(suite, suite=replace(suite.suite, budget_minutes=given.budget))
    options.check_folder(given.out, f"--out {given.out}")
    extra = [
        word for key, value in given.engine_values.items() for word in ("--engine-set", f"{key}={value}")
    ]
    path = str(locate("workloads/suites", given.suite))
    found = list(check_entries(suite, path, [*extra, "--out", str(given.out)]))
    wrong = {number: error for number, error in enumerate(found) if isinstance(error, BenchError)}
    for error in wrong.values():
        print_error(error)
    if given.dry_run:
        code = max((error.exit_code for error in wrong.values()), default=ExitCode.OK)
        runs = [_planned(entry, run) for entry, run in zip(suite.run, found, strict=True)]
        return Result(lambda screen: _plan(suite, runs, screen), lambda: {"runs": runs}, code)
    _append(given.page, "")  # a page that cannot be written is better known before the night
    began = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")  # several may begin in a second
    night = spend(suite, given.out, print_note, extra, given.allow_missing, wrong)
    night = replace(night, behind=tuple(_behind(suite)))
    text = page(night)
    charts = f"{began}-{suite.suite.name}.html"
    try:
        _append(given.page, text)  # first: it may lie on another disk than the results
        _store(text, given.out, f"{began}-{suite.suite.name}.md")
        _store(drawn(night), given.out, charts)
    finally:  # also where nothing can be stored; where nobody reads it, it is stored
        put(Result(text), as_json=given.json)  # as JSON that error is the one document
    notes = [f"page with charts: {given.out / 'nightly' / charts}"]
    return Result(document=lambda: _document(night), code=night.exit_code, notes=notes)


def _document(night: "Night") -> dict[str, object]:
    return {
        "suite": night.suite.suite.name,
        "runs": [
            {
                "title": step.entry.title,
                "state": step.state,
                "why": step.why,
                "exit_code": step.exit_code,
                "wall_s": step.wall_s,
                "folder": None if step.folder is None else str(step.folder.path),
            }
            for step in night.steps
        ],
        "drifts": [drift.as_json() for drift in night.drifts],
        "missing": [{"scenario": scenario, **as_json(missing)} for scenario, missing in night.missing],
        "behind": list(night.behind),
        "exit_code": night.exit_code,
    }


def _planned(entry: "Entry", run: "Prepared | BenchError | None") -> dict[str, Any]:
    """A run that is not started: `expected_s` is null where no earlier night measured it."""
    from harness.cli.display.dry_run import describe

    known: dict[str, Any] = {"title": entry.title, "state": "planned", "error": None}
    known |= {"expected_s": None, "missing": []}
    if run is None:
        return known | {"state": "files"}
    if isinstance(run, BenchError):
        return known | {"state": "wrong", "error": str(run)}
    plan = describe(run)
    seconds = None if plan.expected_s is None else plan.expected_s + (plan.starts_s or 0.0)
    return known | {"expected_s": seconds, "missing": [str(lack) for lack in plan.missing]}


def _plan(suite: "Suite", runs: Sequence[Mapping[str, Any]], screen: Screen) -> Iterator[str]:
    """A line for each run, with what it lacks here, and whether those of known length fit the budget."""
    for number, run in enumerate(runs, 1):
        takes = "how long it takes is not known" if run["expected_s"] is None else duration(run["expected_s"])
        words = takes if run["state"] == "planned" else run["state"]
        lacks = (f"  warning: {lack}" for lack in run["missing"])
        for line in (f"{number} of {len(runs)}: {run['title']}: {words}", *lacks):
            yield wrapped(line, screen.rows)
    planned = [run["expected_s"] for run in runs if run["state"] == "planned"]
    total_s, unknown = sum(filter(None, planned)), planned.count(None)
    rest = f", and {unknown} of unknown length" if unknown else ""
    known = f"{duration(total_s)} by earlier nights{rest}; " if total_s else ""
    yield f"{known}the budget is {duration(60 * suite.suite.budget_minutes)}"


def _behind(suite: "Suite") -> Iterator[str]:
    """Outdated pins of what bench installs, and of the tools whose files it reads.

    A version that the suite names itself is no pin.
    """
    from harness.engines.check.outdated import behind, packages, tools
    from harness.engines.provide.install import needs_install
    from harness.metrics.peers import READ_IN
    from harness.spec.backend_refs import parse_backend_list

    found: dict[str, Backend] = {}
    for entry in suite.run:
        if entry.files:
            continue
        given = [] if entry.launch == "simulate" else entry.backends
        try:
            refs = [ref for name in given for ref in parse_backend_list(name, own=entry.variants(name))]
        except SpecError:  # its run has failed, and the page says so
            continue
        pins = [ref.definition for ref in refs if not ref.version and not ref.url]
        found |= {definition.name: definition for definition in pins if needs_install(definition)}

    yield from behind(packages(found, print_note))
    if any(entry.files for entry in suite.run):
        yield from behind(tools(READ_IN, print_note))


def _store(text: str, out: Path, name: str) -> None:
    """Stores the page in the folder of the results, next to which a stranger's may lie."""
    from harness.store.confined import Confined, storage_error

    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise storage_error(error, out) from error
    files = Confined(out)
    files.make_folder("nightly")
    files.write(f"nightly/{name}", text.encode())


def _append(page: Path | None, text: str) -> None:
    from harness.store import refuse_file_of_run

    if page is None:
        return
    refuse_file_of_run(page, f"--page {page}")
    with writing(str(page)), page.open("a", encoding="utf-8") as file:
        file.write(text)
