"""The command that a run prints as its next step, run as it was printed: the reason for it is gone."""

import re
import shlex

import pytest

from harness.store import RunFolder
from tests.integration.scripted import MEASURED, bench, define

QUICK = (
    *("run", "--scenario", "fixed-length", "--no-probe", "--no-agreement", "--no-report"),
    *("--output-tokens", "4", "--set", "verdict.cool_down_s=0", "--set", "load.warmup_requests=2"),
)
EIGHT = ("--requests", "8", "--concurrency", "4")


def steps(done):
    """What stands below the names of the files: all reasons, and the first command as a shell reads it."""
    text = done.stdout[done.stdout.index("\nnext: ") :].replace("\\\n", "")
    command, *_ = re.findall(r"^  (bench run .*)$", text, re.M) or [""]
    return " ".join(text.split()), shlex.split(command)


def newest(here):
    return RunFolder(max((here / "results").iterdir(), key=lambda folder: folder.stat().st_ctime_ns))


def pasted(command):
    return bench(*command[1:], code=MEASURED, limit_s=300)


def test_one_repeat_of_two_engines_becomes_a_verdict(here):
    define("calm")
    define("slow", ttft_ms=800)
    done = bench(*QUICK, "--backends", "calm,slow", *EIGHT, "--repeats", "1", code=MEASURED)
    words, command = steps(done)
    assert "one repeat cannot tell a difference from noise" in words
    assert re.search(r"\(takes up to [\d.]+ (s|min)\):", words)
    again = pasted(command)
    assert "one repeat" not in steps(again)[0]
    assert re.search(r"calm \d\.\d+× faster", again.stdout)


def test_a_cell_that_is_too_short_gets_the_requests_that_it_lacks(here):
    define("calm")
    asked = ("--backends", "calm", *EIGHT, "--set", "load.min_answers=24")
    words, command = steps(bench(*QUICK, *asked, code=MEASURED))
    assert "too-short" in words
    assert "too-short" not in steps(pasted(command))[0]
    assert {cell.requests.ok for cell in newest(here).read_summary().cells} >= {24}


def test_an_engine_that_did_not_start_is_measured_once_it_does(here):
    define("calm")
    define("late", "--no-such-flag")
    asked = ("--backends", "calm,late", *EIGHT, "--repeats", "1")
    words, command = steps(bench(*QUICK, *asked, code=3))
    assert "next: late was not measured: mend the cause first" in words
    define("late", ttft_ms=800)
    assert "not measured" not in steps(pasted(command))[0]
    assert {cell.label for cell in newest(here).read_summary().cells} == {"calm", "late"}


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
