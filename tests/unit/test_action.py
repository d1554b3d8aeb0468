"""The action's steps as scripts: which commit is the base, how a side is started, who gets the token."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.host import paths
from harness.model import Manifest
from harness.model.manifest import Failure
from harness.spec.backend_refs import load_backend
from harness.store import RunFolder
from tests.factories.documents import made

ROOT = Path(__file__).resolve().parents[2]


def script(name):
    """A file below action/ as a module."""
    path = ROOT / "action" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"action_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measure = script("measure")


def git(*words):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *identity, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(message):
    git("commit", "--quiet", "--allow-empty", "--message", message)
    return git("rev-parse", "HEAD")


@pytest.fixture
def event(tmp_path, monkeypatch):
    """Writes what happened; in an empty repository."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "--quiet", "--initial-branch", "main")

    def write(**content):
        path = tmp_path / "event.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))

    return write


def test_the_base_of_a_merged_pull_request_is_what_it_was_merged_onto(event):
    old = commit("first")
    git("checkout", "--quiet", "-b", "change")
    commit("change")
    git("checkout", "--quiet", "main")
    newest = commit("second")
    git("merge", "--quiet", "--no-ff", "--message", "merged", "change")
    head = {"sha": git("rev-parse", "change")}
    event(pull_request={"number": 1, "base": {"sha": old}, "head": head})
    assert measure.base_commit() == newest


def test_the_base_of_a_head_that_is_itself_a_merge_is_that_of_the_event(event):
    """A workflow that checks out the head of a pull request whose branch was updated from its base."""
    commit("first")
    git("checkout", "--quiet", "-b", "change")
    commit("change")
    git("checkout", "--quiet", "main")
    newest = commit("second")
    git("checkout", "--quiet", "change")
    git("merge", "--quiet", "--no-ff", "--message", "updated", "main")
    head = {"sha": git("rev-parse", "HEAD")}
    event(pull_request={"number": 1, "base": {"sha": newest}, "head": head})
    assert measure.base_commit() == newest


def test_the_base_is_what_the_event_names(event):
    first, _ = commit("first"), commit("second")
    for content in (
        {"pull_request": {"number": 1, "base": {"sha": first}}},
        {"merge_group": {"base_sha": first}},
        {"before": first},
    ):
        event(**content)
        assert measure.base_commit() == first


def test_the_input_wins_over_the_event(event, monkeypatch):
    first, second = commit("first"), commit("second")
    git("tag", "v1", first)
    event(before=second)
    monkeypatch.setenv("BENCH_BASE_REF", "v1")
    assert measure.base_commit() == first


def test_a_branch_of_a_whole_checkout_is_found_where_a_fetch_is_refused(event, tmp_path, monkeypatch):
    """As in a checkout of a private repository with `fetch-depth: 0` and without the token."""
    main = commit("first")
    git("checkout", "--quiet", "-b", "change")
    commit("change")
    git("clone", "--quiet", str(Path.cwd()), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    git("remote", "set-url", "origin", str(tmp_path / "gone"))
    monkeypatch.setenv("BENCH_BASE_REF", "main")
    assert measure.base_commit() == main
    monkeypatch.setenv("BENCH_BASE_REF", "gone")
    with pytest.raises(measure.InputError, match="gone is not in this checkout"):
        measure.base_commit()


def test_a_branch_that_an_earlier_job_left_is_fetched_again(event, tmp_path, monkeypatch):
    commit("first")
    git("checkout", "--quiet", "-b", "change")
    git("clone", "--quiet", str(Path.cwd()), str(tmp_path / "clone"))
    git("checkout", "--quiet", "main")
    newest = commit("second")
    monkeypatch.chdir(tmp_path / "clone")
    monkeypatch.setenv("BENCH_BASE_REF", "main")
    assert measure.base_commit() == newest


@pytest.mark.parametrize("content", [{}, {"before": "0" * 40}])
def test_an_event_without_a_base_asks_for_one(event, content):
    commit("first")
    event(**content)
    with pytest.raises(measure.InputError, match="base-ref"):
        measure.base_commit()


def test_a_shallow_checkout_fetches_the_base(event, tmp_path, monkeypatch):
    first, _ = commit("first"), commit("second")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    event(before=first)
    git("clone", "--quiet", "--depth=1", Path.cwd().as_uri(), str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert measure.base_commit() == first


@pytest.mark.parametrize("engine", sorted(set(paths.definitions("backends")) - {"models"}))
def test_a_side_is_spoken_to_as_its_engine_and_started_by_the_command(tmp_path, monkeypatch, engine):
    monkeypatch.setenv("BENCH_ENGINE", engine)
    monkeypatch.setenv("BENCH_START", "serve --port $PORT")
    measure._define(tmp_path, "head", "0" * 40)
    shipped = load_backend(engine)
    monkeypatch.chdir(tmp_path)
    made = load_backend("head")
    assert (made.dialect, made.metrics) == (shipped.dialect, shipped.metrics)
    assert made.prefix_cache.enabled == shipped.prefix_cache.enabled
    reset = shipped.prefix_cache.reset
    assert made.prefix_cache.reset == (None if reset and "{slot}" in reset.path else reset)
    assert made.backend.simulated == shipped.backend.simulated
    assert made.process.program == ("bash", str(tmp_path / "head.sh"))
    assert (tmp_path / "head.sh").read_text() == f"cd {tmp_path}/head\nserve --port $PORT\n"


def test_an_unknown_engine_is_a_wrong_input(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_ENGINE", "vlm")
    with pytest.raises(SpecError, match="vlm"):
        measure._define(tmp_path, "head", "0" * 40)


def test_an_engine_may_be_a_file(tmp_path, monkeypatch):
    own = tmp_path / "own.toml"
    own.write_bytes(paths.definitions("backends")["vllm"].read_bytes())
    monkeypatch.setenv("BENCH_ENGINE", str(own))
    measure._define(tmp_path, "head", "0" * 40)
    monkeypatch.chdir(tmp_path)
    assert load_backend("head").metrics == load_backend("vllm").metrics


def test_options_with_an_open_quote_are_a_wrong_input(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_OPTIONS", '--set "prompts.groups=8')
    with pytest.raises(measure.InputError, match="`options` cannot be split into words: No closing"):
        measure._measured(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [("fail-on", "Slower", "slower or nothing"), ("undecided", "5%0A", "fail or pass")],
)
def test_a_word_that_is_no_choice_opens_no_gate(tmp_path, monkeypatch, capsys, name, value, choices):
    """Nothing is measured first: the page of a budget of half an hour would not say it."""
    for variable in ("RUNNER_TEMP", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.setenv(variable, str(tmp_path / ("" if variable == "RUNNER_TEMP" else variable)))
    monkeypatch.setenv("BENCH_START", "exit 1")
    monkeypatch.setenv(f"BENCH_{name.upper().replace('-', '_')}", value)
    assert measure.main() == 2
    said = f"The input `{name}` is {choices}, not '{value.replace('%', '%25')}'."
    assert capsys.readouterr().out == f"::error::{said}\n"
    assert "exit-code=2" in (tmp_path / "GITHUB_OUTPUT").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["gpu/small", "vllm: c8", "a\nb"])
def test_a_name_that_no_artefact_can_have_is_refused_before_the_measurement(monkeypatch, name):
    monkeypatch.setenv("BENCH_NAME", "vllm@a (8 GB)")
    measure._check_choices()
    monkeypatch.setenv("BENCH_NAME", name)
    with pytest.raises(measure.InputError, match="`name` is that of artefacts"):
        measure._check_choices()


def test_the_side_whose_preparation_failed_is_named(event, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BENCH_PREPARE", "exit 3")
    with pytest.raises(measure.InputError, match=r"`prepare` failed in the head with 3; the log of the job"):
        measure._check_out(tmp_path / "head", commit("first"))
    assert capsys.readouterr().out.endswith("::endgroup::\n")


def test_sources_that_cannot_be_removed_change_no_result(event, tmp_path, monkeypatch):
    """Git removes no folder that is none of its worktrees."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary")
    monkeypatch.setenv("GITHUB_OUTPUT", "output")
    (tmp_path / "head").mkdir()
    assert measure._finish(tmp_path, "not slower", 0) == 0
    assert Path("summary").read_text(encoding="utf-8").endswith("not slower")
    assert Path("output").read_text(encoding="utf-8").endswith("exit-code=0\n")


@pytest.mark.parametrize(
    ("fail_on", "ran", "compared", "code"),
    [("", 0, 1, 1), ("slower", 0, 0, 0), ("nothing", 0, 1, 0), ("", 4, 1, 4), ("nothing", 4, 0, 4)],
)
def test_the_code_is_the_runs_else_the_gates(tmp_path, monkeypatch, fail_on, ran, compared, code):
    monkeypatch.setenv("BENCH_FAIL_ON", fail_on)
    called = []

    def bench(folder, command, *words):
        called.append((command, "--fail-on" in words))
        if command == "run":
            (folder / "results" / "one").mkdir(parents=True)
            (folder / "results" / "one" / "summary.json").touch()
        return f"{command}\n", {"run": ran, "compare": compared}[command]

    def heard(*words):
        printed, returned = bench(*words)
        return subprocess.CompletedProcess(words, returned, printed, "")

    monkeypatch.setattr(measure, "_bench", bench)
    monkeypatch.setattr(measure, "_heard", heard)
    assert measure._measured(tmp_path) == ("compare\n", code)
    assert called == [("run", False), ("compare", fail_on != "nothing")]


@pytest.mark.parametrize("code", [2, 3])
def test_a_comparison_that_failed_is_no_verdict_whatever_is_to_fail(tmp_path, monkeypatch, code):
    monkeypatch.setenv("BENCH_FAIL_ON", "nothing")
    failed = subprocess.CompletedProcess((), code, "", "a note\nerror: no such run\n")
    monkeypatch.setattr(measure, "_heard", lambda *_: failed)
    text = "**Not compared.** error: no such run\n"
    assert measure._compared(tmp_path, tmp_path / "one") == (text, code)


def test_a_side_that_did_not_start_is_named_with_its_error(tmp_path, monkeypatch):
    """The comparison itself says that there is one backend, and asks for a second run."""
    failed = subprocess.CompletedProcess((), 2, "", "error: only one backend: nothing to compare\n")
    monkeypatch.setattr(measure, "_heard", lambda *_: failed)
    run = RunFolder.create(tmp_path, "first-look")
    errors = ("head: ended while loading: exit code 1\n  | a log", "head: not started again")
    failures = tuple(Failure(backend="head", repeat=at, error=error) for at, error in enumerate(errors))
    run.write_manifest(made(Manifest, {"failures": failures}))
    text = "**Not compared.** head: ended while loading: exit code 1\n"
    assert measure._compared(tmp_path, run.path) == (text, 2)


def test_the_tables_of_two_runs_name_their_sides(tmp_path, monkeypatch):
    """In both the backend has one name."""
    monkeypatch.setattr(measure, "_heard", lambda *_: subprocess.CompletedProcess((), 0, "same\n", ""))
    runs = [tmp_path / side for side in measure.SIDES]
    for run in runs:
        run.mkdir()
        (run / "table.md").write_text(f"of {run.name}")
    text, _ = measure._compared(tmp_path, *runs)
    assert [line for line in text.splitlines() if "summary" in line] == [
        f"<details><summary>Table of {side}</summary>" for side in ("base", "head")
    ]
    assert "<summary>Table</summary>" in measure._compared(tmp_path, runs[0])[0]


def test_a_run_that_did_not_begin_has_no_verdict(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "_bench", lambda *_: ("", 3))
    text, code = measure._measured(tmp_path)
    assert (text[:18], code) == ("**Not measured.** ", 3)


def test_toml_is_read_back_as_it_was():
    table = {"a.b": {"c": [1, 2.5, True, 'quo"te', "line\nbreak"], "d": {"e": [{"f": "é"}]}}}
    assert tomllib.loads("".join(f"x = {measure.as_toml(table)}")) == {"x": table}


def test_every_input_reaches_the_step_that_reads_it():
    action = (ROOT / "action.yml").read_text(encoding="utf-8")
    source = (ROOT / "action" / "measure.py").read_text(encoding="utf-8")
    passed = set(re.findall(r"BENCH_(\w+): \$\{\{ inputs\.", action))
    assert {name.lower() for name in passed} == set(re.findall(r"_input\([\"\'](\w+)", source))
    declared = re.findall(r"^  ([a-z-]+):$", action.partition("inputs:")[2].partition("outputs:")[0], re.M)
    assert set(declared) == set(re.findall(r"inputs\.([a-z-]+)", action))
    for path in re.findall(r"\$GITHUB_ACTION_PATH/([\w./]+)", action):
        assert (ROOT / path).is_file()


def test_a_job_that_is_run_again_replaces_what_it_left():
    """A name is there once in a run of the workflow, whose later attempts fail to take it."""
    uploads = ACTION.split("uses: actions/upload-artifact")[1:]
    assert len(uploads) == 2
    assert all("        overwrite: true\n" in step for step in uploads)


# -- where the token is ------------------------------------------------------------------------------

ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
COMMENT_ACTION = (ROOT / "action" / "comment" / "action.yml").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "github-action.md").read_text(encoding="utf-8")
TOKEN = re.compile(r"token|secrets\.", re.IGNORECASE)
JOBS = re.compile(r"^  (\w+):\n((?:    .*\n|\n)+)", re.MULTILINE)


def test_the_measuring_action_takes_and_has_no_token():
    assert not TOKEN.search(ACTION)
    assert not re.search(r"environ.*TOKEN|api\.github", (ROOT / "action" / "measure.py").read_text("utf-8"))


def test_the_commenting_action_runs_one_script_of_its_own_and_nothing_else():
    assert re.findall(r"run: (.*)", COMMENT_ACTION) == ['python3 -I "$GITHUB_ACTION_PATH/comment.py"']
    assert "uses:" not in COMMENT_ACTION
    source = (ROOT / "action" / "comment" / "comment.py").read_text(encoding="utf-8")
    imported = set(re.findall(r"^(?:from|import) ([\w.]+)", source, re.MULTILINE))
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    for runs in ("subprocess", "os.system", "exec(", "eval(", "extract", "pip"):
        assert runs not in source


def test_no_job_of_the_page_has_both_the_token_and_code_of_the_pull_request():
    workflows = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "jobs:" in text]
    assert len(workflows) >= 2
    jobs = [job for text in workflows for job in JOBS.findall(text.partition("jobs:\n")[2])]
    measuring = [text for _name, text in jobs if "llm-servebench/llm-servebench@" in text]
    commenting = [text for _name, text in jobs if "llm-servebench/llm-servebench/action/comment@" in text]
    assert len(measuring) + len(commenting) == len(jobs)
    assert measuring
    assert len(commenting) >= 2
    for text in measuring:
        assert "write" not in text
        assert "persist-credentials: false" in text
    for text in commenting:
        assert "pull-requests: write" in text
        assert "checkout" not in text
    for text in workflows:
        assert re.search(r"^permissions: \{\}$", text, re.MULTILINE), "each job names its own"
        assert "pull_request_target" not in text


def test_code_of_the_pull_request_gets_no_credential_and_no_file_of_the_runner(monkeypatch):
    refused = {"GITHUB_TOKEN", "MY_SECRET", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_CACHE_URL"}
    refused |= {f"GITHUB_{name}" for name in ("ENV", "PATH", "OUTPUT", "STATE", "STEP_SUMMARY")}
    for name in (*refused, "GITHUB_SHA", "CI"):
        monkeypatch.setenv(name, "x")
    kept = measure.environment()
    assert kept["CI"] == kept["GITHUB_SHA"] == "x"
    assert not refused & kept.keys()


@pytest.mark.parametrize(
    ("options", "ends_by_itself"), [("--find-capacity --rate 1,64", True), ("--requests 100", False)]
)
def test_a_capacity_search_has_no_budget(options, ends_by_itself, tmp_path, monkeypatch):
    """`bench run` refuses --budget and --repeats auto for it."""
    asked = []
    monkeypatch.setenv("BENCH_OPTIONS", options)
    monkeypatch.setattr(measure, "_bench", lambda _folder, *words: (asked.append(words), ("", 2))[1])
    text, code = measure._measured(tmp_path)
    assert (text.startswith("**Not measured.**"), code) == (True, 2)
    assert ("--budget" not in asked[0], "auto" not in asked[0]) == (ends_by_itself, ends_by_itself)
