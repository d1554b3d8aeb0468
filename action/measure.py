"""The action's step that measures base and head alternately, or reads files of both; it writes the verdict.

Reads the inputs of action.yml as BENCH_…, and what GitHub tells every step; ends with the code of the gate.
It runs code of the pull request. No token is in its environment, and what it leaves is trusted no more than
that code: `action/comment` makes the comment, in another job.
"""

import json
import os
import re
import secrets
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import ExitCode, SpecError
from harness.host import paths
from harness.host.helper_process import without_credentials
from harness.report.wording import markdown_escaped, plain
from harness.spec.backend_refs import load_backend
from harness.spec.files import locate
from harness.store import RunFolder

SIDES = ("base", "head")
KEPT = ("dialect", "prefix_cache", "metrics")  # of an engine's definition: how to speak to it
# Files by which a step changes those after it, and what speaks to GitHub's own services.
WITHHELD = re.compile(r"GITHUB_(ENV|PATH|OUTPUT|STATE|STEP_SUMMARY)|ACTIONS_\w+")
NO_ARTEFACT = re.compile(r'["<>|*?:\\/\r\n]')  # GitHub refuses such a name, after all was measured
# Both sides are measured alternately on one runner: the floor is that inside one run.
WITHIN_A_SESSION = ("--floor", "2")
BENCH = (sys.executable, "-m", "harness")


class InputError(Exception):
    """What the workflow or the event lacks."""


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="llm-servebench-", dir=os.environ["RUNNER_TEMP"])).resolve()
    try:
        _check_choices()
        if _input("files"):
            return _finish(folder, *_of_files(folder))
        if not _input("start"):
            raise InputError("Give `start`, a command that starts the server, or `files`, results to judge.")
        commits = {"base": base_commit(), "head": _git("rev-parse", "HEAD")}
        for side, commit in commits.items():
            _check_out(folder / side, commit)
            _define(folder, side, commit)
        text, code = _measured(folder)
    except (InputError, SpecError, subprocess.CalledProcessError) as error:
        said = plain(error)
        print(f"::error::{said.replace('%', '%25')}")  # GitHub reads %0A as a line break
        return _finish(folder, f"**Not measured.** {markdown_escaped(said)}\n", 2)
    about = ", ".join(f"{side} {commit[:12]}" for side, commit in commits.items())
    return _finish(folder, f"{text}\n{about}\n", code)


def _check_choices() -> None:
    """Raises InputError for a word that means nothing: one that is no `slower` must not open the gate."""
    for name, choices in {"fail-on": ("slower", "nothing"), "undecided": ("fail", "pass")}.items():
        given = _input(name.replace("-", "_"), choices[0])
        if given not in choices:
            raise InputError(f"The input `{name}` is {' or '.join(choices)}, not '{given}'.")
    if wrong := NO_ARTEFACT.search(_input("name")):
        raise InputError(f"The input `name` is that of artefacts, which cannot have a '{wrong[0]}'.")


def base_commit() -> str:
    """Of the input, else of the event: what a pull request was merged onto, or was before a push."""
    if given := _input("base_ref"):
        return _fetched(given)
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if "pull_request" in event and (merged_onto := _merged_onto(event["pull_request"])):
        return _fetched(merged_onto)
    base = (event.get("pull_request") or {}).get("base") or {}
    merge = event.get("merge_group") or {}
    found = str(base.get("sha") or merge.get("base_sha") or event.get("before") or "")
    if not found.strip("0"):
        raise InputError("The event names no commit to compare with: give the input `base-ref`.")
    return _fetched(found)


def _merged_onto(pull_request: dict[str, Any]) -> str | None:
    """GitHub checks a pull request out merged into its base; the event's base may be older than that one.

    None if the head itself is checked out, which may be a merge too.
    """
    lines = _git("cat-file", "-p", "HEAD").partition("\n\n")[0].splitlines()
    parents = [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]
    return parents[0] if len(parents) == 2 and parents[1] == pull_request["head"]["sha"] else None


def _fetched(ref: str) -> str:
    """Its commit. A checkout by actions/checkout holds one commit and no other branch.

    With `fetch-depth: 0` each branch is there as `origin/…`, and no token for another fetch has to be.
    """
    if found := _commit(ref):
        return found
    fetch = ["git", "fetch", "--quiet", "--depth=1", "origin", ref]
    if subprocess.run(fetch, check=False).returncode == 0:  # newer than an `origin/…` of an earlier job
        return _git("rev-parse", "FETCH_HEAD")
    if found := _commit(f"origin/{ref}"):
        return found
    raise InputError(f"The base {ref} is not in this checkout and cannot be fetched.")


def _commit(name: str) -> str:
    """The commit of a name; "" if there is none."""
    wanted = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    return subprocess.run(wanted, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def _check_out(place: Path, commit: str) -> None:
    _git("worktree", "add", "--quiet", "--detach", str(place), commit)
    if prepare := _input("prepare"):
        print(f"::group::prepare {place.name}", flush=True)
        with _printing_no_commands():
            command = ["bash", "-euo", "pipefail", "-c", prepare]
            code = subprocess.run(command, cwd=place, env=environment(), check=False).returncode
        print("::endgroup::", flush=True)
        if code:
            raise InputError(
                f"`prepare` failed in the {place.name} with {code}; the log of the job says why."
            )


def environment() -> dict[str, str]:
    """For code of the pull request: without credentials, and without what changes later steps."""
    kept = without_credentials(os.environ)
    return {name: value for name, value in kept.items() if not WITHHELD.fullmatch(name)}


@contextmanager
def _printing_no_commands() -> Iterator[None]:
    """GitHub obeys lines such as `::error::` of any program in a step, unless a line of the step stops it."""
    unknown = secrets.token_hex(16)
    print(f"::stop-commands::{unknown}", flush=True)
    try:
        yield
    finally:
        print(f"::{unknown}::", flush=True)


def _define(folder: Path, side: str, commit: str) -> None:
    """A backend that is started by the command of the input and spoken to as the engine is."""
    start = folder / f"{side}.sh"
    start.write_text(f"cd {shlex.quote(str(folder / side))}\n{_input('start')}\n", encoding="utf-8")
    engine = _input("engine", "openai")
    load_backend(engine)
    declared = tomllib.loads(locate("backends", engine).read_text(encoding="utf-8"))
    header = {"name": side, "title": f"{side} {commit[:12]}", "licence": "unknown", "homepage": ""}
    simulated = declared["backend"].get("simulated", False)
    own = ("prepare", "effective")  # of an engine that bench starts with settings of its own
    server = {key: value for key, value in declared["server"].items() if key not in own}
    kept = {key: declared[key] for key in KEPT if key in declared}
    cache = kept.get("prefix_cache", {})
    if "{slot}" in cache.get("reset", {}).get("path", ""):
        del cache["reset"]  # how many slots this server has is not known; a restart empties them all
    definition = {
        "backend": {**header, "weights": "none", "simulated": simulated},
        "server": {**server, "served_name": "{listed}"},
        "process": {"program": ["bash", str(start)], "env": {"PORT": "{port}"}},
        **kept,
    }
    text = "".join(f"{key} = {as_toml(value)}\n" for key, value in definition.items())
    backends = folder / "backends"
    backends.mkdir(exist_ok=True)
    (backends / f"{side}.toml").write_text(text, encoding="utf-8")


def as_toml(value: Any) -> str:
    """JSON's texts and numbers are TOML's; its objects are inline tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {as_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value)


def _measured(folder: Path) -> tuple[str, int]:
    scenario = _input("scenario", "first-look")
    if scenario.endswith(".toml"):
        scenario = str(folder / "head" / scenario)
    flags = ["--backends", ",".join(SIDES), "--scenario", scenario, "--launch", "process", "--no-agreement"]
    options = _options()
    # A capacity search ends by itself, and `bench run` refuses a budget for it.
    search = "--find-capacity" in options
    budget = [] if search else ["--repeats", "auto", "--budget", _input("budget", "30m")]
    with _printing_no_commands():
        printed, code = _bench(folder, "run", *flags, *budget, *options)
        print(printed, flush=True)
    summary = next((folder / "results").glob("*/summary.json"), None)
    if summary is None:
        return f"**Not measured.** `bench run` ended with {code}; the log of the job says why.\n", code
    text, verdict = _compared(folder, summary.parent)
    return text, code or verdict


def _options() -> list[str]:
    try:
        return shlex.split(_input("options"))
    except ValueError as error:
        raise InputError(f"The input `options` cannot be split into words: {error}.") from None


def _of_files(folder: Path) -> tuple[str, int]:
    """Of results that the team's own client wrote for both sides; nothing is started.

    Each side is a run of its own, so that a backend has the same name in both, whatever its files add to it.
    """
    given = {"base": _input("base_files"), "head": _input("files")}
    found = {side: _matching(side, patterns) for side, patterns in given.items()}
    runs = []
    for side, places in found.items():
        runs.append(folder / "results" / side)
        runs[0].parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as out:
            done = _heard(folder, "import", *map(str, places), "--out", out)
            if done.returncode:
                return f"**Not read.** {_error_of(done)}\n", 2
            next(Path(out).iterdir()).rename(runs[-1])
    return _compared(folder, *runs, floor=WITHIN_A_SESSION)


def _matching(side: str, patterns: str) -> list[Path]:
    found = paths.matching(patterns.split())
    if not found:
        name = "base-files" if side == "base" else "files"
        raise InputError(f"No file matches the input `{name}`: '{patterns}'.")
    return found


def _heard(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What it printed, on both streams; the log has it too."""
    with _printing_no_commands():
        done = subprocess.run(
            [*BENCH, *words], cwd=folder, env=environment(), capture_output=True, text=True, check=False
        )
        print(done.stdout, done.stderr, flush=True)
    return done


def _error_of(done: "subprocess.CompletedProcess[str]") -> str:
    return markdown_escaped(plain(done.stderr[max(done.stderr.find("error: "), 0) :]))


def _compared(folder: Path, *runs: Path, floor: tuple[str, ...] = ()) -> tuple[str, int]:
    """The page's text, and the gate's code. `fail-on: nothing` accepts what is worse, but no comparison that
    failed. The first run has the baseline.
    """
    asked = ["--fail-on", "slower", "--undecided", _input("undecided", "fail")]
    gate = asked if _input("fail_on", "slower") == "slower" else []
    baseline = ["--baseline", "base"] if len(runs) == 1 else []
    done = _heard(folder, "compare", *map(str, runs), *baseline, *floor, "--markdown", *gate)
    if done.returncode not in (ExitCode.OK, ExitCode.LIMIT_FAILED) or not done.stdout:
        return f"**Not compared.** {_not_started(runs[0]) or _error_of(done)}\n", done.returncode
    sides = len(runs) > 1  # each a run of its own, in which a backend has one name
    details = "".join(_details(run / "table.md", f" of {run.name}" if sides else "") for run in runs)
    return done.stdout + details, done.returncode if gate else 0


def _not_started(run: Path) -> str:
    """The first error of each side that could not be started; "" if both were, or nothing is known."""
    if not (run / "manifest.json").is_file():
        return ""
    found: dict[str, str] = {}
    for failure in RunFolder(run).read_manifest().failures:
        found.setdefault(failure.backend, failure.error.partition("\n")[0])
    return markdown_escaped(plain("; ".join(found.values())))


def _bench(folder: Path, *words: str) -> tuple[str, int]:
    command = [*BENCH, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True, check=False
    )
    return done.stdout, done.returncode


def _details(table: Path, whose: str) -> str:
    if not table.is_file():
        return ""
    return f"\n<details><summary>Table{whose}</summary>\n\n{table.read_text(encoding='utf-8')}\n</details>\n"


def _finish(folder: Path, text: str, code: int) -> int:
    """The page goes into the job's summary and into an artefact, of which another job makes a comment."""
    page = f"### {markdown_escaped(_input('name', 'llm-servebench'))}: head against base\n\n{text}"
    comment = folder / "comment.md"
    comment.write_text(page, encoding="utf-8")
    _append("GITHUB_STEP_SUMMARY", page)
    _append("GITHUB_OUTPUT", f"folder={folder}\ncomment={comment}\nexit-code={code}\n")
    for side in SIDES:  # sources are no results; those that cannot be removed change no verdict
        if (folder / side).is_dir():
            subprocess.run(["git", "worktree", "remove", "--force", str(folder / side)], check=False)
    return code


def _append(variable: str, text: str) -> None:
    with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
        file.write(text)


def _input(name: str, otherwise: str = "") -> str:
    return os.environ.get(f"BENCH_{name.upper()}") or otherwise


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
