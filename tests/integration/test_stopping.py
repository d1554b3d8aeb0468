"""`bench run --repeats auto` on scripted servers of known speed: it stops where the answer is known."""

import signal
from pathlib import Path

import pytest

from tests.integration.scripted import begin, bench, bench_here, define, reach, run_folder, summary

SMALL = (
    *("run", "--scenario", "fixed-length", "--concurrency", "2", "--requests", "8", "--output-tokens", "4"),
    *("--no-probe", "--no-agreement", "--no-report", "--set", "verdict.cool_down_s=0"),
    *("--set", "load.min_answers=8", "--set", "load.min_seconds=0.1", "--set", "load.warmup_requests=2"),
)


@pytest.fixture
def engines(here):
    """`calm` and `twin` alike, `slow` twice as slow."""
    define("calm", ttft_ms=200, gap_ms=20)
    define("twin", ttft_ms=200, gap_ms=20)
    define("slow", ttft_ms=400, gap_ms=40)
    return here


def repeats(result, label):
    return sorted(cell["repeat"] for cell in result["cells"] if cell["label"] == label)


def test_far_apart_engines_stop_after_three_and_the_run_says_why(engines):
    planned = bench_here(*SMALL, "--backends", "calm,slow", "--dry-run").stdout
    assert "3 to 10 repeats, until every pair is decided" in planned
    assert "at most 20 cells" in planned
    reported = [word for word in SMALL if word != "--no-report"]
    done = bench(*reported, "--backends", "calm,slow", "-v", limit_s=200)
    result = summary()
    assert repeats(result, "calm") == repeats(result, "slow") == [0, 1, 2]
    assert [one["verdict"] for one in result["comparison"] if one["primary"]] == ["faster"]
    stopping = result["stopping"]
    assert (stopping["repeats"], stopping["reason"]) == (3, "decided")
    assert (stopping["looks"], stopping["alpha_per_look"]) == ([3, 4, 5, 7, 10], 0.01)
    assert "after 3 repeats: decided 1 of 1 pairs" in done.stderr
    assert "stopped after 3 repeats: no pair is left that more repeats could decide" in done.stdout
    assert "99% intervals of the geometric mean over 3 runs" in done.stdout
    assert result["verdict_rules"]["unit"] == "starts"
    bench_here("verify", str(run_folder()))  # its records give the same comparison again
    assert "stopped after 3 repeats" in (run_folder() / "report.html").read_text()
    asked = ("compare", str(run_folder()), "--baseline", "calm", "--fail-on", "slower")
    assert "99% interval" in bench_here(*asked, code=1).stdout


@pytest.mark.long
def test_only_the_undecided_go_on_to_the_last_repeat(engines):
    """Whether four repeats show `calm` and `twin` to be the same, or may, is the machine's to say."""
    most = ("--max-repeats", "4", "--set", 'verdict.metrics=["ttft_ms.p50"]')
    done = bench(*SMALL, *most, "--backends", "calm,twin,slow", "-v", limit_s=300)
    result = summary()
    words = {(one["a"], one["b"]): one["verdict"] for one in result["comparison"]}
    assert words["calm", "slow"] == words["twin", "slow"] == "faster"
    assert repeats(result, "slow") == [0, 1, 2]
    stopping = result["stopping"]
    assert stopping["looks"] == [3, 4]
    assert "after 3 repeats: decided" in done.stderr
    if stopping["reason"] == "unlikely":
        assert words["calm", "twin"] == "not enough runs"
        assert "decided 2 of 3 pairs, 1 given up" in done.stderr
        assert "the repeats allowed would hardly decide them (--max-repeats)" in done.stdout
    elif words["calm", "twin"] == "not enough runs":
        assert (repeats(result, "calm"), repeats(result, "twin")) == ([0, 1, 2, 3], [0, 1, 2, 3])
        assert stopping["reason"] == "max-repeats"
        assert "decided 2 of 3 pairs, about" in done.stderr
        assert "1 of 3 pairs not decided with the most repeats allowed (--max-repeats)" in done.stdout
    else:
        assert words["calm", "twin"] == "same"
        assert stopping["reason"] == "decided"


def test_a_budget_that_has_no_room_for_three_repeats_is_told_after_the_first(engines):
    done = bench(*SMALL, "--budget", "3s", "--backends", "calm,slow", "-v", limit_s=100)
    result = summary()
    assert repeats(result, "calm") == repeats(result, "slow") == [0]
    assert (result["stopping"]["repeats"], result["stopping"]["reason"]) == (0, "budget")
    assert result["stopping"]["spent_s"] > 0
    assert "more repeats would exceed the budget of 3 s; 3 repeats are needed" in " ".join(
        done.stdout.split()
    )


@pytest.mark.long
def test_an_interrupted_run_goes_on_by_the_same_rule(engines):
    process = begin(*SMALL, "--backends", "calm,slow")
    try:
        reach(process, lambda: list(Path("results").glob("*/cells/002-*/cell.json")))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    before = summary()
    assert before["state"] == "interrupted"
    assert (before["stopping"]["repeats"], before["stopping"]["reason"]) == (0, None)
    bench("resume", str(run_folder()), limit_s=200)
    result = summary()
    assert repeats(result, "calm") == repeats(result, "slow") == [0, 1, 2]
    assert result["stopping"]["reason"] == "decided"
    assert result["stopping"]["spent_s"] > before["stopping"]["spent_s"]


def test_repeats_of_one_start_are_called_so(engines):
    kept = ("--repeats", "2", "--between-repeats", "reset")
    done = bench(*SMALL, *kept, "--backends", "calm", "-v", limit_s=100)
    result = summary()
    assert repeats(result, "calm") == [0, 1]
    assert len(list((run_folder() / "logs").glob("calm*"))) == 1
    assert result["verdict_rules"]["unit"] == "runs of one start"
    assert result["stopping"] is None
    assert "only its prefix cache was reset between repeats" in done.stdout
    refused = bench_here(*SMALL, "--between-repeats", "keep", "--backends", "calm,slow", code=2).stderr
    assert "drift would look like a difference" in refused
