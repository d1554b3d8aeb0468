"""`bench nightly`: what is asked of the night, where its page goes, and which pins are looked up."""

import errno
import io
import json
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from harness import nightly
from harness.cli.display.streams import UnreadError
from harness.cli.main import main
from harness.engines.check import outdated
from harness.engines.check.outdated import Pin, Read
from harness.errors import ExitCode
from harness.nightly import Night, Step, load_suite
from harness.spec.files import names
from harness.spec.strict import nearest
from harness.store.confined import Confined

SUITE = """
[suite]
name = "mine"
purpose = "To be tested."
budget_minutes = 10

[[run]]
scenario = "shared-prefix"
backends = ["vllm", "llamacpp", "openai=http://127.0.0.1:1", "sglang==0.5.9"]

[[run]]
scenario = "chat"
backends = ["transformers"]
launch = "simulate"

[[run]]
scenario = "fixed-length"
backends = ["vlm"]
"""
# Of two of its runs, before the first begins.
WRONG = f"""error: mine.toml:run[1].scenario: unknown scenario 'chat'
hint: {nearest("chat", names("workloads"))}
error: mine.toml:run[2].backends: unknown backend 'vlm'
hint: {nearest("vlm", names("backends"))}
"""
FILES = '\n[[run]]\nbackends = ["vllm"]\nfiles = ["results-*.json"]\n'


@pytest.fixture
def night(tmp_path, monkeypatch):
    """A night in which every run was left out; `night.asked` is what was asked of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SUITE)
    found = SimpleNamespace(asked=None, wrong={}, pins=[], tools=[], behind=[])

    def spent(suite, out, note, extra, allow_missing, wrong):
        found.asked = (suite.suite.budget_minutes, str(out), extra, allow_missing)
        found.wrong = {number: str(error) for number, error in wrong.items()}
        note("1 of 3")
        steps = tuple(Step(entry, "left out", "0 s left", 0, 0.0) for entry in suite.run)
        return Night(suite, steps, (), 4, interrupted=False)

    def packages(definitions, _say):
        found.pins += definitions
        yield from found.behind

    def tools(read_in, _say):
        found.tools += read_in
        yield "guidellm", Read("guidellm", "0.5", "0.6")

    monkeypatch.setattr(nightly, "spend", spent)
    monkeypatch.setattr(nightly, "drawn", lambda made: f"<p>{made.suite.suite.name}")
    monkeypatch.setattr(outdated, "packages", packages)
    monkeypatch.setattr(outdated, "tools", tools)
    return found


def test_the_page_is_printed_stored_and_appended(night, tmp_path, capsys):
    job = tmp_path / "job.md"
    job.write_text("before\n")
    code = main(["nightly", "mine.toml", "--out", "kept", "--page", str(job)])
    assert code == ExitCode.LIMIT_FAILED  # nothing was measured
    said = capsys.readouterr()
    assert said.out.startswith("# Nightly: mine\n\nTo be tested.\n")
    assert said.out.endswith("| fixed-length: vlm | 0.0 | left out: 0 s left |\n")
    assert job.read_text() == f"before\n{said.out}"
    html, markdown = sorted((tmp_path / "kept" / "nightly").iterdir())
    assert (markdown.read_text(), html.read_text()) == (said.out, "<p>mine")
    assert said.err == f"{WRONG}1 of 3\npage with charts: kept/nightly/{html.name}\n"
    assert html.name == markdown.name.replace(".md", ".html")
    assert markdown.name.endswith("Z-mine.md")
    main(["nightly", "mine.toml", "--out", "kept"])  # in the same second
    assert len(list((tmp_path / "kept" / "nightly").iterdir())) == 4


def test_the_document_has_what_became_of_every_run(night, capsys):
    assert main(["nightly", "mine.toml", "--json"]) == ExitCode.LIMIT_FAILED
    document = json.loads(capsys.readouterr().out)
    assert [run.pop("title") for run in document["runs"]] == [
        step.title for step in load_suite("mine.toml").run
    ]
    left_out = {"state": "left out", "why": "0 s left", "exit_code": 0, "wall_s": 0.0, "folder": None}
    assert document.pop("runs") == [left_out] * 3
    nothing = {"drifts": [], "missing": [], "behind": []}
    assert document == {"suite": "mine", **nothing, "exit_code": ExitCode.LIMIT_FAILED}
    assert main(["nightly", "mine.toml", "--dry-run", "--json"]) == ExitCode.USAGE
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["state"] for run in runs] == ["planned", "wrong", "wrong"]
    assert "unknown backend 'vlm'" in runs[2]["error"]


def test_a_page_that_nobody_reads_is_stored(night, tmp_path, monkeypatch):
    closed = io.StringIO()
    monkeypatch.setattr(closed, "flush", Mock(side_effect=UnreadError))
    monkeypatch.setattr(sys, "stdout", closed)
    assert main(["nightly", "mine.toml", "--out", "kept"]) == ExitCode.UNREAD
    assert len(list((tmp_path / "kept" / "nightly").iterdir())) == 2


def test_the_page_of_the_job_is_written_though_the_disk_of_the_results_is_full(
    night, tmp_path, monkeypatch, capsys
):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Confined, "write", full)
    job = tmp_path / "job.md"
    assert main(["nightly", "mine.toml", "--page", str(job)]) == ExitCode.SETUP
    assert job.read_text().startswith("# Nightly: mine\n")
    assert capsys.readouterr().out == job.read_text()
    assert main(["nightly", "mine.toml", "--json"]) == ExitCode.SETUP
    assert json.loads(capsys.readouterr().out)["exit_code"] == ExitCode.SETUP, "the error alone"


def test_flags_change_every_run(night):
    assert main(["nightly", "mine.toml"]) == ExitCode.LIMIT_FAILED
    assert night.asked == (10.0, "results", [], ())
    words = ["--engine-set", "dtype=float32", "--engine-set", "threads=2", "--allow-missing", "vllm/c8"]
    main(["nightly", "mine.toml", "--budget", "2.5", "--out", "kept", *words])
    extra = ["--engine-set", "dtype=float32", "--engine-set", "threads=2"]
    assert night.asked == (2.5, "kept", extra, ("vllm/c8",))


@pytest.mark.parametrize("minutes", ["0", "-3", "nan", "inf"])
def test_a_budget_of_no_time_is_refused(night, capsys, minutes):
    assert main(["nightly", "mine.toml", f"--budget={minutes}"]) == ExitCode.USAGE
    assert f"error: --budget: must be minutes above 0, not {minutes}" in capsys.readouterr().err
    assert night.asked is None


def test_a_folder_that_cannot_be_is_known_before_the_night(night, capsys):
    assert main(["nightly", "mine.toml", "--out", "/etc/passwd"]) == ExitCode.SETUP
    assert "error: --out /etc/passwd: /etc/passwd is a file, not a folder" in capsys.readouterr().err
    assert night.asked is None


def test_a_page_that_cannot_be_written_is_known_before_the_night(night, tmp_path, capsys):
    assert main(["nightly", "mine.toml", "--page", str(tmp_path / "no" / "job.md")]) == ExitCode.SETUP
    assert "no/job.md: cannot be written: " in capsys.readouterr().err
    assert night.asked is None


def test_a_page_is_appended_to_no_file_of_a_run(night, tmp_path, capsys):
    for name in ("manifest.json", "checksums.json"):
        (tmp_path / name).write_text("{}")
    assert main(["nightly", "mine.toml", "--page", str(tmp_path / "table.md")]) == ExitCode.USAGE
    assert "table.md: would be a file of the run" in capsys.readouterr().err
    assert night.asked is None


def test_pins_of_what_bench_installs_are_compared_with_what_is_out(night, tmp_path, capsys):
    """A version that the suite names, a server that runs, and a simulated engine have no pin."""
    night.behind = [("vllm", Pin("vllm", "0.32.0", "0.33.0")), ("llamacpp", Pin("llamacpp", "1", "1"))]
    main(["nightly", "mine.toml"])
    assert sorted(night.pins) == ["llamacpp", "vllm"]
    assert night.tools == []
    page = capsys.readouterr().out
    assert "- vllm: 0.32.0 is pinned; try vllm==0.33.0\n" in page
    assert "- llamacpp" not in page
    (tmp_path / "mine.toml").write_text(SUITE + FILES)
    main(["nightly", "mine.toml"])
    assert "guidellm" in night.tools
    assert "- guidellm: 0.6 is out; its definitions and files were read in 0.5\n" in capsys.readouterr().out


def test_what_is_wrong_with_a_run_is_known_before_the_first_begins(night, tmp_path, capsys):
    """Each would have failed when its turn came, hours later; the others are measured."""
    runs = {
        "probe_seconds": "probe_seconds = 20",
        "rate": "concurrency = [2]\nrate = [4]",
        "set": 'set = ["slo.ttft_ms.p9x=5"]',
        "launch": 'launch = "sideways"',
        "repeats": "repeats = 0",
        "engine_set": 'concurrency = [8]\nengine_set = ["ttft=5"]',
        "": "concurrency = [2]",
    }
    head = SUITE.partition("[[run]]")[0]
    tables = (f'[[run]]\nscenario = "fixed-length"\nbackends = ["truth"]\n{keys}\n' for keys in runs.values())
    (tmp_path / "mine.toml").write_text(head + "".join(tables))
    main(["nightly", "mine.toml"])
    places = [text.partition(": ")[0] for text in night.wrong.values()]
    assert places == [f"mine.toml:run[{number}].{key}" for number, key in enumerate(runs) if key]
    assert capsys.readouterr().err.startswith(f"error: {night.wrong[0]}\nerror: {night.wrong[1]}\n")


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ('set = ["request.fields.temperature=1"]', "set"),
        ('set = ["request.fields={temperature = 1}"]', "set"),
        ('set = ["prompts.file=none.jsonl"]', "set"),
        ('variant = ["big=max_sequence=4"]', "variant"),
        ('variant = ["big"]', "variant"),
    ],
)
def test_what_a_setting_is_wrong_about_is_found_at_its_key(night, tmp_path, keys, key):
    run = f'[[run]]\nscenario = "{"prompt-file" if "prompts" in keys else "fixed-length"}"\n{keys}\n'
    backends = f'backends = ["vllm{"@big" if key == "variant" else ""}"]\n'
    (tmp_path / "mine.toml").write_text(SUITE.partition("[[run]]")[0] + run + backends)
    main(["nightly", "mine.toml"])
    assert night.wrong[0].startswith(f"mine.toml:run[0].{key}: ")


def test_the_value_that_is_wrong_is_named_next_to_its_key(night, tmp_path):
    run = '[[run]]\nscenario = "fixed-length"\nbackends = ["vllm"]\n'
    run += 'engine_set = ["threads=2", "max_sequences=0"]\n'
    (tmp_path / "mine.toml").write_text(SUITE.partition("[[run]]")[0] + run)
    main(["nightly", "mine.toml"])
    assert night.wrong[0] == "mine.toml:run[0].engine_set: max_sequences=0: must be at least 1, not 0"


def test_a_pin_is_looked_up_where_a_variant_of_the_suite_is_measured(night, tmp_path):
    about = SUITE.partition("[[run]]")[0]
    run = '[[run]]\nscenario = "fixed-length"\nbackends = ["{0}@mine"]\nvariant = ["mine={1}"]\n'
    (tmp_path / "mine.toml").write_text(about + run.format("vllm", "--enforce-eager"))
    main(["nightly", "mine.toml"])
    assert night.pins == ["vllm"]
    (tmp_path / "mine.toml").write_text(about + run.format("vllm", "/mine/vllm serve"))
    main(["nightly", "mine.toml"])
    assert night.pins == ["vllm"]  # a program of one's own has none


def test_a_dry_run_checks_the_whole_suite_and_starts_nothing(night, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # a line each, also where the tests run in several processes
    assert main(["nightly", "mine.toml", "--dry-run"]) == ExitCode.USAGE
    said = capsys.readouterr()
    assert said.err == WRONG
    assert said.out.splitlines()[1:] == [
        "  warning: openai: http://127.0.0.1:1: no answer to GET /v1/models: Connection refused",
        "2 of 3: chat: transformers: wrong",
        "3 of 3: fixed-length: vlm: wrong",
        "the budget is 10 min",
    ]
    assert main(["nightly", "truth", "--dry-run"]) == ExitCode.OK
    assert (night.asked, list(tmp_path.iterdir())) == (None, [tmp_path / "mine.toml"])


def test_a_dry_run_keeps_to_the_width_of_the_terminal(night, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    assert main(["nightly", "mine.toml", "--dry-run"]) == ExitCode.USAGE
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("1 of 3: shared-prefix: vllm, llamacpp, ")
    assert len(first) <= 70
    assert second.endswith("how long it takes is not known")
