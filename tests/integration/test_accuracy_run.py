"""Accuracy in a run against servers of known truth: who answers wrongly, and only with many in flight."""

import json
from functools import cache

import pytest

from harness.agreement import made_questions, messages_of
from tests.factories.runs import Shape, make_run
from tests.integration.scripted import MEASURED, bench, bench_here, define, run_folder, summary

QUESTIONS = 300
FEW = 60  # where a server loses so much that a third of them decides
SHORT = ("--set", "verdict.cool_down_s=0", "--output-tokens", "8", "--no-probe", "--no-report")
RUN = (
    *("run", "--scenario", "fixed-length", "--concurrency", "1,8", "--requests", "16", "--repeats", "1"),
    *SHORT,
    *("--accuracy", str(QUESTIONS)),
)


@cache
def answers():
    """The text of the file that makes a server know all answers."""
    known = {messages_of(one)[-1][1]: one.answer or one.accept[0] for one in made_questions(QUESTIONS)}
    return json.dumps(known)


@pytest.fixture
def servers(here):
    """An empty directory with a server that knows all answers, and two that do not always give them."""
    file = here / "answers.json"
    file.write_text(answers())
    quick = {"ttft_ms": 5, "gap_ms": 1}
    define("sound", "--answers", str(file), **quick)
    define("breaks", "--answers", str(file), "--wrong", "0.12:above=4", **quick)
    define("damaged", "--answers", str(file), "--wrong", "0.5", **quick)
    return here


def verdicts(found):
    return {(one["a"], one["b"], one["under_load"]): one["verdict"] for one in found["accuracy"]}


@pytest.mark.long
def test_answers_that_break_only_under_load_are_found(servers):
    done = bench(*RUN, "--backends", "sound,breaks", code=MEASURED)
    found = summary()["agreement"]
    assert found["questions"] == QUESTIONS + 58
    sound, breaks = found["backends"].values()
    assert sound["unloaded"]["right"] == sound["saturated"]["right"] == QUESTIONS
    assert breaks["saturated"]["load"] == {"kind": "concurrency", "value": 8}
    assert breaks["saturated"]["concurrency"] == 8
    assert verdicts(found) == {
        ("sound", "breaks", False): "same",
        ("sound", "breaks", True): "loses",
        ("sound", "sound", True): "same",
        ("breaks", "breaks", True): "loses",
    }
    assert "between requests of c8: breaks against sound: loses" in " ".join(done.stdout.split())
    # An engine is asked no more than its verdict takes.
    assert breaks["unloaded"]["asked"] < sound["unloaded"]["asked"] == QUESTIONS + 58
    assert sound["unloaded"]["marks"].count("-") == 0
    # No question is in a measured cell.
    assert all(cell["requests"]["planned"] == 16 for cell in summary()["cells"])

    first = found
    (run_folder() / "summary.json").unlink()
    bench("report", str(run_folder()))
    assert summary()["agreement"] == first


def test_the_gate_fails_on_lost_accuracy_and_on_what_it_cannot_exclude(servers):
    size = ("--concurrency", "4", "--requests", "8", "--repeats", "1", "--accuracy", str(FEW))
    asked = ("run", "--scenario", "fixed-length", *size, *SHORT, "--set", "load.warmup_requests=0")
    bench(*asked, "--backends", "sound,damaged", code=MEASURED)
    gate = ("compare", str(run_folder()), "--force", "--undecided", "pass")
    lost = bench_here(*gate, "--fail-on", "accuracy.drop", code=1).stdout
    assert "gate: failed" in lost
    assert "accuracy: damaged accuracy.drop: one at a time: loses" in " ".join(lost.split())
    both = json.loads(bench_here(*gate, "--fail-on", "slower", "--json", code=(0, 1)).stdout)
    assert [row["metric"] for row in both["gate"] if row["kind"] == "accuracy"] == ["accuracy.drop"] * 2
    assert [row["change"]["verdict"] for row in both["accuracy"]] == ["loses", "loses"]


def test_a_gate_on_runs_without_questions_is_one_error(tmp_path):
    made = make_run(tmp_path, Shape(concurrency=(2,), requests=6))
    done = bench_here("compare", str(made.path), "--fail-on", "accuracy.drop", code=2)
    assert "no questions were asked in these runs" in done.stderr
    assert "--accuracy" in done.stderr


@pytest.mark.parametrize("given", ["5", "-1", "many", "1000000"])
def test_a_bad_number_of_questions_is_one_error(here, given):
    define("sound")
    done = bench_here(*RUN[:-1], given, "--backends", "sound", code=2)
    assert "is not a number of questions from 60 to 10000" in done.stderr


@pytest.mark.parametrize("other", ["--find-capacity", "--no-agreement"])
def test_flags_that_contradict_are_one_error(here, other):
    define("sound")
    done = bench_here(*RUN, "--backends", "sound", other, code=2)
    assert f"--accuracy: does not go with {other}" in done.stderr


@pytest.mark.long
def test_an_open_loop_is_between_the_questions_too(servers):
    rate = [word for word in RUN if word not in ("--concurrency", "1,8")]
    rate[-1] = "60"
    bench(*rate, "--rate", "100", "--backends", "sound", code=MEASURED)
    found = summary()["agreement"]["backends"]["sound"]["saturated"]
    assert found["load"] == {"kind": "rate", "value": 100.0}
    assert found["asked"] == 118


@pytest.mark.long
def test_content_is_a_condition_of_a_comparison(servers):
    for content in ("code", "json"):
        plain = ("--scenario", "fixed-length", "--requests", "4", "--concurrency", "1", "--repeats", "1")
        quick = ("--no-probe", "--no-report", "--set", "load.warmup_requests=0")
        words = ("--backends", "sound", "--content", content, "--out", content)
        bench("run", *plain, *quick, *words, code=MEASURED)
    (one,), (other,) = ([*(servers / content).glob("2*")] for content in ("code", "json"))
    done = bench("compare", str(one), str(other), code=1)
    assert "other requests: text.content code (baseline), json (new)" in " ".join(done.stdout.split())
    card = json.loads((one / "workload.json").read_text())["cards"]["c1"]
    assert card["content"] == "code"
