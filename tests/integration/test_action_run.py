"""The action's measuring step with a fake event, on checkouts whose servers differ by what a commit says."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import foreign

MEASURE = Path(__file__).resolve().parents[2] / "action" / "measure.py"
START = f'exec {sys.executable} -m harness truth --port $PORT --gap-ms 20 --ttft-ms "$(cat made)"'
PREPARE = "cp ttft made"
QUICK = "--concurrency 2 --requests 6 --output-tokens 4 --set load.min_answers=4 --set load.min_seconds=0 "
QUICK += "--no-probe --no-report --max-repeats 3 --set verdict.cool_down_s=0"
TOKENS = ("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_RUNTIME_URL", "GITHUB_ENV", "GITHUB_PATH")
TOKEN = "ghs_of-this-job"


def step_in(folder, patch):
    """`step(ttft_ms of base, of head)`: its exit code, its outputs and the job's summary."""
    repository = folder / "repository"
    repository.mkdir()
    patch.chdir(repository)

    def git(*words):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        done = subprocess.run(["git", *identity, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def run(base, head, **inputs):
        git("init", "--quiet")
        commits = []
        for ttft_ms in (base, head):
            Path("ttft").write_text(str(ttft_ms), encoding="utf-8")
            git("add", ".")
            git("commit", "--quiet", "--allow-empty", "--message", "a change")
            commits.append(git("rev-parse", "HEAD"))
        files = {name: folder / name for name in ("event", "summary", "output")}
        files["event"].write_text(json.dumps({"before": commits[0]}), encoding="utf-8")
        (folder / "temp").mkdir()
        environment = {
            "RUNNER_TEMP": folder / "temp",
            "GITHUB_EVENT_PATH": files["event"],
            "GITHUB_STEP_SUMMARY": files["summary"],
            "GITHUB_OUTPUT": files["output"],
            "BENCH_ENGINE": "openai",
            "BENCH_START": START,
            "BENCH_PREPARE": PREPARE,
            "BENCH_OPTIONS": QUICK,
            **{f"BENCH_{name.upper()}": value for name, value in inputs.items()},
        }
        for name, value in environment.items():
            patch.setenv(name, str(value))
        done = subprocess.run([sys.executable, str(MEASURE)], capture_output=True, text=True, timeout=120)
        outputs = dict(line.split("=", 1) for line in files["output"].read_text().splitlines())
        assert outputs["exit-code"] == str(done.returncode)
        assert "Traceback" not in done.stderr, done.stderr
        run.printed = done.stdout
        return done.returncode, outputs, files["summary"].read_text(encoding="utf-8")

    return run


@pytest.fixture
def step(tmp_path, monkeypatch):
    return step_in(tmp_path, monkeypatch)


@pytest.mark.long
def test_a_slower_head_fails_the_job_and_the_page_says_by_how_much(step):
    code, outputs, summary = step(100, 200)
    assert code == 1
    assert "**head is slower than base: first token by " in summary
    assert "SIMULATED" in summary
    assert Path(outputs["comment"]).read_text(encoding="utf-8") == summary
    folder = Path(outputs["folder"])
    assert {path.name for path in folder.iterdir()} >= {"results", "backends", "comment.md"}
    assert not (folder / "base").exists()


@pytest.mark.long
def test_base_and_head_that_are_up_together_get_the_same_verdict(step):
    code, outputs, summary = step(100, 200, options=f"{QUICK} --pairing blocks --blocks 2")
    assert code == 1
    assert "**head is slower than base: first token by " in summary
    assert "over 3 starts with 6 pairs of blocks" in summary
    (run,) = (Path(outputs["folder"]) / "results").iterdir()
    assert json.loads((run / "manifest.json").read_text(encoding="utf-8"))["pairing"] == "blocks"


def test_a_build_that_fails_is_told_on_the_page(step):
    code, outputs, summary = step(20, 20, prepare="false")
    assert code == 2
    assert "**Not measured.**" in summary
    assert not (Path(outputs["folder"]) / "results").exists()


def test_code_of_the_pull_request_gets_no_token_and_gives_github_no_command(step, tmp_path, monkeypatch):
    """A token of the whole job is in no environment where its code runs, nor in what is uploaded.

    The code prints commands, and keeps what it sees.
    """
    for name in TOKENS:
        monkeypatch.setenv(name, TOKEN)
    kept = tmp_path / "seen"
    prepare, start = f"env >>{kept}; echo '::error::forged'; {PREPARE}", f"env >>{kept}; {START}"
    # The budget has no room for more than one repeat, which is enough here.
    _code, outputs, summary = step(100, 100, prepare=prepare, start=start, budget="3s")
    assert "SIMULATED" in summary
    seen = kept.read_text()
    assert seen.count("PWD=") >= 4  # base and head, prepared and started
    assert TOKEN not in seen
    assert "GITHUB_OUTPUT" not in seen
    assert "GITHUB_STEP_SUMMARY" not in seen
    uploaded = [path for path in Path(outputs["folder"]).rglob("*") if path.is_file()]
    assert len(uploaded) > 10
    assert not [path for path in uploaded if TOKEN.encode() in path.read_bytes()]
    stopped = ""
    for line in step.printed.splitlines():
        if line.startswith("::stop-commands::"):
            stopped = line.removeprefix("::stop-commands::")
        elif stopped and line == f"::{stopped}::":
            stopped = ""
        elif line == "::error::forged":
            assert stopped, "GitHub would obey it"
    assert step.printed.count("::error::forged") == 2


def test_a_scenario_of_the_head_puts_no_markdown_into_the_page(step):
    code, _outputs, summary = step(20, 20, scenario="no.toml", engine="[x](javascript:alert(1))<img src=x>")
    assert code == 2
    assert "**Not measured.**" in summary
    assert "[x](" not in summary.replace("\\[", "")
    assert "<img" not in summary


SIDES = (("base_", "base"), ("", "head"))
CAPTURES = Path(__file__).resolve().parents[1] / "captures" / "imports"


@pytest.mark.long
def test_files_of_both_sides_are_gated_and_nothing_is_started(step):
    """Eight files of aiperf for each side; the head's server was 5% slower."""
    pair = CAPTURES / "pair"
    inputs = {"start": "exit 1", "files": f"{pair}/slower/*.json", "base_files": f"{pair}/base/*.json"}
    code, outputs, summary = step(20, 20, undecided="fail", **inputs)
    assert code == 1
    assert "imported from aiperf 0.13.0" in summary
    assert Path(outputs["comment"]).read_text(encoding="utf-8") == summary


def test_the_same_files_on_both_sides_are_refused(step):
    files = f"{CAPTURES / 'pair' / 'base'}/*.json"
    code, _, summary = step(20, 20, files=files, base_files=files)
    assert code == 2
    assert "**Not compared.**" in summary
    assert "is the same file as one of" in summary


@pytest.mark.long
def test_files_whose_backend_has_a_longer_name_are_compared(step, tmp_path):
    """A cap on the requests in flight becomes a part of the name."""
    for side, slower in (("base", 1.0), ("head", 1.3)):
        for repeat in range(3):
            document = foreign.vllm(repeat + 10 * (side == "head"), slower=slower)
            document |= {"request_rate": 5.0, "max_concurrency": 4}
            foreign.write(tmp_path / "files" / f"{side}-{repeat}.json", document)
    given = {f"{name}files": f"{tmp_path}/files/{side}-*.json" for name, side in SIDES}
    code, outputs, summary = step(20, 20, **given)
    assert code == 1
    assert "server-max4" in summary
    assert "head against base" in summary
    assert "is slower than in the run of" in summary
    results = Path(outputs["folder"]) / "results"
    assert {path.name for path in results.iterdir()} == {"base", "head"}


def test_a_comparison_that_fails_ends_the_job_even_if_nothing_is_to_fail(step, tmp_path):
    foreign.write(tmp_path / "one.json", foreign.vllm(0))
    files = str(tmp_path / "one.json")
    code, _, summary = step(20, 20, files=files, base_files=files, fail_on="nothing")
    assert code == 2
    assert "**Not compared.** error: " in summary


def test_files_that_match_nothing_are_one_error(step):
    code, _, summary = step(20, 20, files="none/*.json", base_files="none/*.json")
    assert code == 2
    assert "No file matches the input" in summary
