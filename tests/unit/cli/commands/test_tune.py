"""`bench tune`: what is asked of the search, and what is said of its result."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import report, tune
from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import LoadPoint
from harness.spec.files import locate
from harness.tune import Result
from harness.tune.trial import Trial

COMMAND = ["tune", "vllm@eager", "--scenario", "shared-prefix", "--budget", "1h30m"]
TRIALS = [Trial({}, 1.0, value, "", "r", 9.0) for value in (21.5, None, 20.0, None, None)]
RUN = SimpleNamespace(path=Path("results/run"))


@pytest.fixture
def search(monkeypatch):
    """`search.result` is what the search ends with, `search.settings` what it was asked for."""
    found = SimpleNamespace(settings=None, reported=[], result=result())

    def searched(settings, _ui):
        found.settings = settings
        return found.result

    monkeypatch.setattr(tune, "tune", searched)
    monkeypatch.setattr(report, "build", found.reported.append)
    return found


def result(**changes):
    point = LoadPoint("concurrency", 8)
    return Result(**{"folder": Path("results/tune-1"), "metric": "ttft_ms.p50", "point": point,
                     "trials": TRIALS, "values": {}, **changes})  # fmt: skip


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "mine"], "error: --to mine: must end in .toml"),
        (["--out", "mine.toml"], "error: --out mine.toml: is the folder of the trials"),
        (
            ["--out", "runs/lr=1"],
            "error: --out runs/lr=1: a list of backends cannot name a file with ',' or '='",
        ),
        (["--to", "a,b.toml"], "error: --to a,b.toml: a list of backends cannot name a file with ',' or '='"),
        (["--budget", "90"], "'90' is not a duration like 2h, 45m, 90s or 1h30m"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_search(search, capsys, words, says):
    assert main([*COMMAND, *words]) == ExitCode.USAGE
    assert says in capsys.readouterr().err
    assert search.settings is None


@pytest.mark.parametrize("words", [("--to", "/etc/passwd/x.toml"), ("--out", "/etc/passwd")])
def test_a_place_that_cannot_be_written_is_refused_before_the_search(search, capsys, words):
    assert main([*COMMAND, *words]) == ExitCode.SETUP
    assert f"error: {' '.join(words)}: /etc/passwd is a file, not a folder" in capsys.readouterr().err
    assert search.settings is None


def test_a_folder_is_no_file_for_the_variant(search, capsys, tmp_path):
    """It is written when the budget is spent: everything would be measured for nothing."""
    (tmp_path / "x.toml").mkdir()
    assert main([*COMMAND, "--to", str(tmp_path / "x.toml")]) == ExitCode.USAGE
    assert "x.toml: is no file that can be replaced" in capsys.readouterr().err
    assert search.settings is None


def test_flags_become_the_settings_of_the_search(search):
    words = ["--load", "4", "--metric", "tpot_ms.p50", "--repeats", "5", "--to", "mine.toml"]
    main([*COMMAND, *words, "--engine-set", "dtype=float32", "--set", "load.requests=8", "--seed", "7"])
    asked = search.settings
    assert (asked.budget_s, asked.load, asked.repeats) == (5400.0, 4.0, 5)
    assert (asked.metric, asked.out) == ("tpot_ms.p50", Path("mine.toml"))
    options = asked.options
    assert (options.backends, options.scenario, options.seed) == ("vllm@eager", "shared-prefix", 7)
    assert (options.engine_values, options.overrides) == ({"dtype": "float32"}, {"load.requests": 8})


def test_what_was_better_is_stored_and_how_to_use_it_is_said(search, capsys):
    stored = Path("/config/variants/vllm.toml")
    values = {"max_sequences": 16, "threads": 2}
    search.result = result(values=values, comparison=RUN, verdict="faster", why="TTFT 1.3×", stored=stored)
    assert main(COMMAND) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "5 trials, 3 failed: TTFT p50 at closed loop, concurrency 8",
        "tuned vllm@eager is faster: max_sequences=16, threads=2",
        "  TTFT 1.3×",
        "stored in /config/variants/vllm.toml; use it as vllm@tuned",
        "trials: results/tune-1",
    ]
    assert search.reported == [RUN]
    main([*COMMAND, "--to", "mine.toml"])
    assert "use it as vllm@/config/variants/vllm.toml" in capsys.readouterr().out


def test_the_answer_is_printed_before_the_report_of_its_comparison_is_made(search, monkeypatch, capsys):
    answered = []
    monkeypatch.setattr(report, "build", lambda _folder: answered.append(capsys.readouterr().out))
    search.result = result(comparison=RUN, verdict="same", values={"threads": 2})
    assert main(COMMAND) == ExitCode.OK
    assert answered[0].splitlines()[-1] == "trials: results/tune-1"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("backend", "words", "use"),
    [
        ("vllm==0.9.1", [], "vllm==0.9.1@tuned"),
        ("vllm@eager", ["--engine-set", "dtype=float32"], "vllm@tuned --engine-set dtype=float32"),
        ("vllm", ["--engine-set", "dtype=a b"], "vllm@tuned --engine-set 'dtype=a b'"),
        ("mine/vllm-of-mine.toml", [], "mine/vllm-of-mine.toml@/config/variants/vllm.toml"),
    ],
)
def test_what_was_stored_is_used_as_it_was_measured(
    search, capsys, tmp_path, monkeypatch, backend, words, use
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "vllm-of-mine.toml").write_text(locate("backends", "vllm").read_text())
    stored = Path("/config/variants/vllm.toml")
    search.result = result(values={"threads": 2}, comparison=RUN, verdict="faster", stored=stored)
    assert main(["tune", backend, *COMMAND[2:], *words]) == ExitCode.OK
    assert f"use it as {use}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"why": "no candidate was better"}, ["the default stands: no candidate was better"]),
        (
            {"values": {"threads": 2}, "comparison": RUN, "verdict": "same", "why": "inside ±5%"},
            ["the default stands: threads=2 is not shown to be faster", "  same: inside ±5%"],
        ),
    ],
)
def test_where_nothing_is_stored_the_default_stands(search, capsys, changes, lines):
    search.result = result(trials=TRIALS[:1], **changes)
    assert main(COMMAND) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "1 trial, 0 failed: TTFT p50 at closed loop, concurrency 8",
        *lines,
        "trials: results/tune-1",
    ]
    assert search.reported == ([RUN] if "comparison" in changes else [])


def test_a_candidate_that_the_budget_left_undecided_is_named_after_the_others(search, capsys):
    left = "threads=4 was better in a trial, and the budget ended before all others had one"
    search.result = result(values={"threads": 2}, comparison=RUN, verdict="same", why="x", unfinished=left)
    assert main(COMMAND) == ExitCode.OK
    assert f"  same: x\nnot decided: {left}\ntrials: " in capsys.readouterr().out


def test_a_share_or_a_price_is_better_and_not_faster(search, capsys):
    made = {"metric": "prefix_cache_hit_rate", "values": {"threads": 2}, "comparison": RUN}
    search.result = result(**made, verdict="faster", stored=Path("/config/variants/vllm.toml"))
    main(COMMAND)
    assert "tuned vllm@eager is better: threads=2\n" in capsys.readouterr().out
    search.result = result(**made, verdict="same")
    main(COMMAND)
    assert "threads=2 is not shown to be better\n" in capsys.readouterr().out


def test_a_search_with_a_scripted_server_says_so_first(search, capsys):
    search.result = result(simulated=True)
    assert main(COMMAND) == ExitCode.OK
    assert capsys.readouterr().out.startswith("SIMULATED: no inference engine was measured")


def test_an_interrupted_search_says_where_its_trials_are(search, capsys):
    search.result = result(interrupted=True)
    assert main(COMMAND) == ExitCode.INTERRUPTED
    said = capsys.readouterr()
    assert said.err.splitlines()[-1] == "interrupted: what was tried is kept in results/tune-1"
    assert "the default stands" not in said.out


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_document_has_the_trials_and_where_the_variant_is(search, capsys, interrupted):
    stored = None if interrupted else Path("/config/variants/vllm.toml")
    found = {"values": {"threads": 2}, "verdict": None if interrupted else "faster", "stored": stored}
    search.result = result(**found, interrupted=interrupted)
    assert main([*COMMAND, "--json"]) == (ExitCode.INTERRUPTED if interrupted else ExitCode.OK)
    document = json.loads(capsys.readouterr().out)
    assert [trial["value"] for trial in document.pop("trials")] == [21.5, None, 20.0, None, None]
    assert document == {
        "metric": "ttft_ms.p50",
        "load": {"kind": "concurrency", "value": 8},
        "values": {"threads": 2},
        "simulated": False,
        "verdict": found["verdict"],
        "why": "",
        "stored": None if interrupted else str(stored),
        "not_decided": None,
        "interrupted": interrupted,
        "folder": "results/tune-1",
    }
