"""The command that a run prints as its next step, run as it was printed: the reason for it is gone."""

import re
import shlex

import pytest

from harness.mockserver import running
from harness.store import RunFolder
from tests.integration.scripted import MEASURED, bench, define

QUICK = (
    *("run", "--scenario", "fixed-length", "--no-probe", "--no-agreement", "--no-report"),
    *("--output-tokens", "4", "--set", "verdict.cool_down_s=0", "--set", "load.warmup_requests=2"),
)
EIGHT = ("--requests", "8", "--concurrency", "4")


def steps(done, flag=""):
    """What stands below the names of the files: all reasons, and the first command with this `flag` as
    a shell reads it.
    """
    text = done.stdout[done.stdout.index("\nnext: ") :].replace("\\\n", "")
    command, *_ = [found for found in re.findall(r"^  (bench run .*)$", text, re.M) if flag in found] or [""]
    return " ".join(text.split()), shlex.split(command)


def newest(here):
    return RunFolder(max((here / "results").iterdir(), key=lambda folder: folder.stat().st_ctime_ns))


def cells(here):
    return newest(here).read_summary().cells


def pasted(command):
    return bench(*command[1:], code=MEASURED, limit_s=300)


def test_one_repeat_of_two_engines_becomes_a_verdict(here):
    define("calm", gap_ms=40)  # with less, a busy machine reads events together: no verdict
    define("slow", ttft_ms=800, gap_ms=40)
    done = bench(*QUICK, "--backends", "calm,slow", *EIGHT, "--repeats", "1", code=MEASURED)
    words, command = steps(done)
    assert "one repeat cannot tell a difference from noise" in words
    assert re.search(r"\(takes [\d.]+ (s|min) to [\d.]+ (s|min)\):", words)
    again = pasted(command)
    assert "one repeat" not in steps(again)[0]
    assert re.search(r"calm \d\.\d+× faster", again.stdout)


def test_a_cell_that_is_too_short_gets_the_requests_that_it_lacks(here):
    define("calm")
    asked = ("--backends", "calm", *EIGHT, "--set", "load.min_answers=24")
    words, command = steps(bench(*QUICK, *asked, code=MEASURED))
    assert "too-short" in words
    assert "too-short" not in steps(pasted(command))[0]
    assert {cell.requests.ok for cell in cells(here)} >= {24}


def test_a_load_that_its_time_ended_gets_the_time_and_the_requests_that_it_lacks(here):
    """The scenario has 32 requests: in a longer time these would end the load."""
    define("calm", ttft_ms=300)
    asked = ("--backends", "calm", "--concurrency", "4", "--duration", "2", "--set", "load.min_answers=40")
    words, command = steps(bench(*QUICK, *asked, "--set", "load.min_seconds=1", code=MEASURED))
    assert "too-short" in words
    assert command[command.index("--requests") + 1] == "40"
    assert int(command[command.index("--duration") + 1]) > 3  # s: ten answers of 0.3 s in each of four slots
    assert "too-short" not in steps(pasted(command))[0]


def test_a_duration_that_the_requests_did_not_reach_is_reached(here):
    define("calm", ttft_ms=100)
    asked = ("--backends", "calm", "--concurrency", "4", "--duration", "4", "--set", "load.min_answers=8")
    words, command = steps(bench(*QUICK, *asked, "--set", "load.min_seconds=0", code=MEASURED))
    assert "all 32 requests were sent before the 4 s of --duration were over" in words
    assert "--duration were over" not in pasted(command).stdout
    (cell,) = cells(here)
    assert cell.requests.unsent


def test_requests_that_are_longer_than_the_context_get_a_longer_one(here):
    """As a run of something else: it may compute otherwise."""
    file = define("calm")
    text = file.read_text().replace("max_sequences = 8", "max_sequences = 8, context_tokens = 64")
    file.write_text(text.replace('"--port", "{port}"', '"--port", "{port}", "--seed", "{context_tokens}"'))
    words, command = steps(bench(*QUICK, "--backends", "calm", *EIGHT, code=MEASURED), "context_tokens")
    assert "than its context of 64 tokens: up to 132; this changes what is measured" in words
    assert command[command.index("--engine-set") + 1] == "context_tokens=196"
    assert "than its context of" not in steps(pasted(command))[0]


def test_a_running_server_that_held_the_prompts_is_sent_others(here):
    """Its reset does nothing, so that the run finds the prompts of the one before."""
    file = define("liar")
    reset = 'reset = { path = "/reset_prefix_cache" }'
    text = file.read_text().replace(reset, 'reset = { path = "/health", method = "GET" }')
    file.write_text(text.partition("[metrics]")[0])
    with running(ttft_ms=300, gap_ms=50) as server:
        asked = ("--backends", f"liar={server.url}", *EIGHT, "--set", "cache.state=cold", "--seed", "7")
        for _ in range(2):
            words, command = steps(bench(*QUICK, *asked, code=MEASURED))
        assert "cache-not-cold" in words
        assert command[command.index("--seed") :] == ["--seed", "8", *command[command.index("--seed") + 2 :]]
        assert "cache-not-cold" not in steps(pasted(command))[0]


@pytest.mark.long
def test_slots_in_step_drift_apart_where_answers_are_spread(here):
    """Other answers are another workload, so that they are no part of the command that asks for the same."""
    define("calm", ttft_ms=60, gap_ms=20)
    load = ("--requests", "40", "--concurrency", "4", "--output-tokens", "48", "--set", "load.min_answers=50")
    begun_together = ("--set", "load.warmup_requests=0", "--set", "load.min_seconds=1")
    run = ("run", "--scenario", "fixed-length", "--backends", "calm", "--no-probe", "--no-report")
    done = bench(*run, *load, *begun_together, code=MEASURED)
    same = steps(done, "--requests 50")[1]
    assert not any("output_spread" in word for word in same)
    words, command = steps(done, "output_spread")
    assert "lockstep; this changes what is measured" in words
    assert {"50", "prompts.output_spread=0.2"} <= set(command)
    done = pasted(command)
    assert "lockstep" not in steps(done)[0]
    (cell,) = cells(here)
    assert not {"lockstep", "too-short"} & {reason.code for reason in cell.validity.reasons}


def test_an_engine_that_did_not_start_is_measured_once_it_does(here):
    define("calm")
    define("late", "--no-such-flag")
    asked = ("--backends", "calm,late", *EIGHT, "--repeats", "1")
    words, command = steps(bench(*QUICK, *asked, code=3))
    assert "next: late was not measured: mend the cause first" in words
    define("late", ttft_ms=800)
    assert "not measured" not in steps(pasted(command))[0]
    assert {cell.label for cell in cells(here)} == {"calm", "late"}


def test_higher_loads_reach_the_limit(here):
    define("calm", "--max-running", "4")
    asked = ("--backends", "calm", "--requests", "16", "--concurrency", "1,2")
    words, command = steps(bench(*QUICK, *asked, code=MEASURED))
    assert "the limit was not reached" in words
    assert "the limit was not reached" not in steps(pasted(command))[0]


@pytest.mark.time
@pytest.mark.long
def test_a_search_that_found_no_end_goes_on_where_it_ended(here):
    """A third request in flight waits for one of the two slots, an answer of 75 ms."""
    define("narrow", "--max-running", "2", ttft_ms=60, gap_ms=5)
    asked = ("--backends", "narrow", "--find-capacity", "--concurrency", "1,2", "--repeats", "1")
    limits = ("--requests", "12", "--set", "slo.ttft_ms.p90=85")
    done = bench(*QUICK, *asked, *limits, code=(*MEASURED, 3), limit_s=300)
    words, command = steps(done)
    assert "narrow kept the limits at the highest load" in words
    again = pasted(command)
    assert "kept the limits at the highest load" not in steps(again)[0]
    (found,) = newest(here).read_summary().capacity
    assert (found.interval[1], found.highest) == (2, 8)
