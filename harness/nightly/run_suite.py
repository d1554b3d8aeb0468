"""The runs of a night, one after another, each a `bench run` of its own: a failure costs nothing else."""

import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from harness.errors import BenchError, ExitCode, SpecError, StorageError
from harness.host import paths
from harness.host.helper_process import asked_to_stop, follow
from harness.model import HistoryEntry
from harness.model.imported import RESULT_SUFFIXES
from harness.model.numbers import duration
from harness.nightly.missing import missing
from harness.nightly.suite import Entry, Suite
from harness.report.findings.changed_then import with_changes
from harness.report.wording import plain
from harness.store import RunFolder
from harness.store.history import append_history, history_path, read_history
from harness.verdicts.capacity import exit_code
from harness.verdicts.history import Drift, Series, drifts, from_day, of_entries, same_course, series
from harness.verdicts.history_lines import entries, not_kept
from harness.verdicts.missing import Missing

State = Literal["measured", "failed", "out of time", "left out", "interrupted"]

STOP_S = 120.0  # an interrupted run stops its engine and writes what it has
ESTIMATE_S = 120.0
LONGEST_WAIT_S = 20 * 86_400.0  # the system's waits end at 2**31 ms, and a longer one is an OverflowError


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one entry of the suite."""

    entry: Entry
    state: State
    why: str
    exit_code: int
    wall_s: float
    folder: RunFolder | None = None


@dataclass(frozen=True, slots=True)
class Night:
    suite: Suite
    steps: tuple[Step, ...]
    drifts: tuple[Drift, ...]  # of tonight's series only
    nights: int  # runs in the history, tonight's included
    interrupted: bool
    behind: tuple[str, ...] = ()  # of the versions that were measured, those that are not the newest
    missing: tuple[tuple[str, Missing], ...] = ()  # with its scenario; what was allowed is left out
    courses: tuple[Series, ...] = ()  # over all nights, of each figure that was measured tonight
    new: int = 0  # of the drifts, those that the nights before did not show
    unkept: str = ""  # why nothing of this night came into the history

    @property
    def judged(self) -> list[Series]:
        """The courses without the nights whose levels are accepted."""
        return from_day(self.courses, self.suite.gate.since)

    @property
    def unfinished(self) -> bool:
        """Whether no run was measured to its end."""
        return all(step.state in ("left out", "out of time", "interrupted") for step in self.steps)

    @property
    def exit_code(self) -> int:
        """A level that became worse fails the gate, and so does what earlier nights had and this one lacks.

        A night that measured no run to its end has not passed. Else the worst that happened to a run.
        """
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.drifts or self.missing or self.unfinished:
            return ExitCode.LIMIT_FAILED
        if self.unkept:
            return ExitCode.SETUP
        return max((step.exit_code for step in self.steps), default=ExitCode.OK)


def spend(
    suite: Suite,
    out: Path,
    note: Callable[[str], None],
    extra: Sequence[str] = (),
    allow_missing: Sequence[str] = (),
    wrong: Mapping[int, BenchError] = MappingProxyType({}),
) -> Night:
    """`extra`: flags for every run. Runs that no longer fit the budget are left out and reported.

    `allow_missing`: backends, load points (`c8`), both (`vllm/c8`) or metrics that may be missing. `wrong`:
    what is known to be wrong with runs of the suite, by their place in it; they are not begun.
    """
    # A cancelled job ends as by Ctrl-C. A shell makes what it starts in the background ignore Ctrl-C, which
    # is undone here.
    for stop in asked_to_stop():
        signal.signal(stop, signal.default_int_handler)
    read_history(history_path(out))  # a damaged one is better known before the night
    deadline = time.monotonic() + 60 * suite.suite.budget_minutes
    steps: list[Step] = []
    interrupted = False
    for number, entry in enumerate(suite.run):
        note(f"{number + 1} of {len(suite.run)}: {entry.title}")
        if error := wrong.get(number):
            steps.append(Step(entry, "failed", str(error), error.exit_code, 0.0))
            continue  # it was reported before the first run
        try:
            steps.append(_step(entry, out, deadline, extra, note))
        except KeyboardInterrupt:
            interrupted = True
        interrupted |= bool(steps) and steps[-1].state == "interrupted"
        if interrupted:
            break
        note(f"  {steps[-1].state}{f': {steps[-1].why}' if steps[-1].why else ''}")
    tonight, unkept = set[str](), ""
    try:
        tonight = _add_to_history(steps, out, note)
    except StorageError as error:  # the runs are kept, and the page is worth the more
        unkept = str(error)
        note(f"error: {unkept}")
    history = _history(history_path(out))
    # Where a clock was ahead on an earlier night, that night is the last.
    courses = tuple(course for course in series(history) if course.has_any(tonight))
    floor = suite.gate.floor_percent / 100
    found = tuple(with_changes(drifts(from_day(courses, suite.gate.since), floor), out))
    before = of_entries((drift.series for drift in found), lambda entry: entry.run not in tonight)
    named = [entry.backends[0] for entry in suite.run if entry.files]
    earlier = [entry for entry in history if entry.run not in tonight]
    gone = tuple(
        (step.entry.scenario or step.entry.runs_of, figure)
        for step in steps
        for figure in _missing(step, earlier, named)
        if figure.names.isdisjoint(allow_missing)
    )
    nights = len({entry.run for entry in history})
    return Night(
        suite,
        tuple(steps),
        found,
        nights,
        interrupted,
        missing=gone,
        courses=courses,
        unkept=unkept,
        new=len(found) - len(drifts(before, floor)),
    )


def _step(
    entry: Entry, out: Path, deadline: float, extra: Sequence[str], note: Callable[[str], None]
) -> Step:
    if entry.files:
        try:
            return _files(entry, out, note)
        except (OSError, SpecError) as error:
            return Step(entry, "failed", f"cannot be read: {error}", ExitCode.SETUP, 0.0)
    # A pair that gets no verdict must not keep the night from measuring the others.
    flags = [*entry.flags(), *extra, "--anyway"]
    command = [*_bench(), "run", *flags, "--out", str(out)]
    needs_s = _expected_s(command)
    left_s = deadline - time.monotonic()
    if left_s <= 0 or (needs_s is not None and needs_s > left_s):
        needed = "" if needs_s is None else f", {duration(needs_s)} needed"
        return Step(entry, "left out", f"{duration(max(left_s, 0))} left{needed}", 0, 0.0)
    began = time.monotonic()
    # In a session of its own: Ctrl-C reaches it once, from here, and not a second time from the terminal.
    process = subprocess.Popen(
        [*command, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=follow(signal.SIGINT),
    )
    late = interrupted = False
    try:
        printed, _ = process.communicate(timeout=min(left_s, LONGEST_WAIT_S))
    except subprocess.TimeoutExpired:
        late = True
        printed = _stop(process)
    except KeyboardInterrupt:
        interrupted = True
        printed = _stop(process)  # its engine must be gone before we are
    wall_s = time.monotonic() - began
    document = _document(printed)
    folder = _folder(document, out)
    if interrupted:
        return Step(entry, "interrupted", _kept(folder), ExitCode.INTERRUPTED, wall_s, folder)
    if late and not _whole(folder):
        return Step(entry, "out of time", "the budget of the night is spent", 0, wall_s, folder)
    code = _code_of(folder) if late and folder is not None else process.returncode
    if folder is None or code not in (ExitCode.OK, ExitCode.INVALID):
        why = _why_failed(document, folder) or f"bench run ended with {code}"
        return Step(entry, "failed", why, _failure(code), wall_s, folder)
    why = "INVALID cells" if code == ExitCode.INVALID else ""
    if late:
        undrawn = f"the budget ended before its report: `bench report {folder.path}` makes it"
        why = "; ".join(filter(None, (why, undrawn)))
    return Step(entry, "measured", why, code, wall_s, folder)


def _whole(folder: RunFolder | None) -> bool:
    """Whether the summary has every cell, though the run was stopped: while its report was drawn."""
    if folder is None or not folder.has("summary.json"):
        return False
    return folder.read_summary().state in ("complete", "invalid")


def _code_of(folder: RunFolder) -> int:
    """The exit code of a run that was stopped after its last cell."""
    return exit_code(folder.read_summary(), failures=bool(folder.read_manifest().failures))


def _kept(folder: RunFolder | None) -> str:
    if folder is None:
        return "nothing was measured"
    if _whole(folder):
        return f"every cell was measured; `bench report {folder.path}` makes the report"
    return f"`bench resume {folder.path}` measures the rest"


def _files(entry: Entry, out: Path, note: Callable[[str], None]) -> Step:
    """The files that the team's own client left tonight. A file of an earlier night is no new measurement."""
    began, found = time.monotonic(), paths.matching(entry.files)
    if not found:
        return Step(entry, "failed", f"no file matches {', '.join(entry.files)}", ExitCode.SETUP, 0.0)
    if old := _seen_before(found, out, note):
        why = f"{old[0]} was read in an earlier night: nothing new was measured"
        return Step(entry, "failed", why, ExitCode.SETUP, 0.0)
    words = [f"{entry.backends[0]}={path}" for path in found]
    command = [*_bench(), "import", *words, "--out", str(out), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    document = _document(done.stdout)
    folder, wall_s = _folder(document, out), time.monotonic() - began
    if folder is None or done.returncode:
        why = str(document.get("error", "")) or f"bench import ended with {done.returncode}"
        return Step(entry, "failed", why, _failure(done.returncode), wall_s, folder)
    return Step(entry, "measured", "", ExitCode.OK, wall_s, folder)


def _failure(code: int) -> int:
    """The exit code of a run that failed; that of a killed one is negative."""
    return code if code > 0 else ExitCode.SETUP


def _seen_before(found: Sequence[Path], out: Path, note: Callable[[str], None]) -> list[Path]:
    """Files, also of folders, that were seen before, by their content. In a folder only results are read.

    A damaged run is left out: what became of an old night must not end this one.
    """
    seen = set()
    for summary in sorted(out.glob("*/summary.json")):
        try:
            cells = RunFolder(summary.parent).read_summary().cells
        except (OSError, SpecError) as error:
            note(f"  run left out: {error}")
            continue
        seen |= {cell.imported.sha256 for cell in cells if cell.imported}
    files = (file for path in found for file in ([path] if path.is_file() else _results_below(path)))
    return [file for file in files if _sha256(file) in seen]


def _results_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in RESULT_SUFFIXES and path.is_file())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bench() -> list[str]:
    """Imports nothing from the working directory, unless it is a checkout, which may not be installed."""
    return [sys.executable, *(() if paths.CHECKOUT.samefile(".") else ("-P",)), "-m", "harness"]


def _expected_s(command: Sequence[str]) -> float | None:
    """The time that earlier nights took, engine starts included; None if nothing is known of the load."""
    try:
        done = subprocess.run(
            [*command, "--dry-run", "--json"], capture_output=True, text=True, timeout=ESTIMATE_S, check=False
        )
        plan = json.loads(done.stdout)
        load_s, starts_s = plan["expected_s"], plan["expected_starts_s"]
    except (subprocess.TimeoutExpired, ValueError, LookupError, TypeError):
        return None
    return None if load_s is None else float(load_s) + float(starts_s or 0)


def _stop(process: "subprocess.Popen[str]") -> str:
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=STOP_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def _document(printed: str) -> dict[str, object]:
    """The document that the run printed; empty if it was stopped before."""
    try:
        document = json.loads(printed)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _folder(document: Mapping[str, object], out: Path) -> RunFolder | None:
    """None where nothing was begun."""
    path = out / str(document.get("run", ""))
    return RunFolder(path) if "run" in document and path.is_dir() else None


def _why_failed(document: Mapping[str, object], folder: RunFolder | None) -> str:
    if folder is None:
        return str(document.get("error", ""))
    failures = folder.read_manifest().failures
    return "; ".join(dict.fromkeys(f"{failure.backend}: {failure.error}" for failure in failures))


def _add_to_history(steps: Sequence[Step], out: Path, note: Callable[[str], None]) -> set[str]:
    """Adds what was measured, and returns the names of its runs.

    A run in which a backend failed has the figures of the others. A level is counted in nights: of two runs
    with the same backend, requests and load the first counts.
    """
    tonight: set[str] = set()
    counted: list[HistoryEntry] = []
    for step in steps:
        folder = step.folder
        counts = step.state in ("measured", "failed") or (step.state == "interrupted" and _whole(folder))
        if folder is not None and counts and folder.has("summary.json"):
            summary = folder.read_summary()
            for entry in entries(folder.read_manifest(), summary):
                if any(same_course(entry, other) for other in counted):
                    name = plain(f"{entry.where} of {entry.run}")
                    note(f"  {name} is not in the history: an earlier run of this night is")
                else:
                    counted.append(entry)
            append_history(history_path(out), [entry for entry in counted if entry.run == summary.run])
            for why in not_kept(summary):
                note(f"  {why}")
            tonight.add(folder.run_id)
    return tonight


def _missing(step: Step, earlier: Sequence[HistoryEntry], named: Sequence[str]) -> list[Missing]:
    """Compares with all runs of other nights: what is broken for long does not become the usual."""
    folder, why = step.folder, f"{step.state}: {step.why}" if step.why else step.state
    if folder is None or not folder.has("summary.json"):
        return list(missing(step.entry, why, earlier, None, None, named))
    return list(missing(step.entry, why, earlier, folder.read_manifest(), folder.read_summary(), named))


def _history(path: Path) -> list[HistoryEntry]:
    try:
        return read_history(path)
    except SpecError as error:
        raise SpecError(error.what, where=error.where, hint="the runs themselves are kept") from None
