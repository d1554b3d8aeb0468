"""Recorded sessions of agents on a scripted server of known speeds, from the file to what is printed."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from harness.records.layout import Outcome
from harness.store import RunFolder
from tests.factories.agents import Shape, write_weka
from tests.integration.scripted import bench, bench_here, define, only_cell, run_folder, summary

TTFT_MS, GAP_MS = 300, 20
SHAPE = Shape(sessions=8, calls=4, tool_s=0.3, think_s=0.3, gap_s=0.5)
FEW = Shape(sessions=3, calls=4, tool_s=0.3, think_s=0.3, gap_s=0.5)
CALLS = FEW.sessions * (FEW.calls + 2 * FEW.agents)
CALL_MS = TTFT_MS + GAP_MS * (SHAPE.output - 1)


@pytest.fixture
def here(here):
    define("calm", "--max-running", "64", "--cache-tokens", "1000000", ttft_ms=TTFT_MS, gap_ms=GAP_MS)
    write_weka(Path("trace.jsonl"), SHAPE, 3)
    return here


@pytest.fixture
def few(here):
    """The file of a short trace."""
    return str(write_weka(here / "few.jsonl", FEW, 3))


def expected(path):
    """Of each session, worked out from the file alone: ms from its start to its end, in the model, in tools.

    A main call waits for the one before it, and the fourth for two agents too, of two calls each.
    """
    for line in Path(path).read_text().splitlines():
        requests = json.loads(line)["requests"]
        main = [one for one in requests if one["type"] != "subagent"]
        agents = [one for one in requests if one["type"] == "subagent"]
        recorded = [1000 * (b["t"] - a["t"] - 0.5) for a, b in pairwise(main)]
        # After the second call both agents begin 0.1 s later and last two calls, with 0.3 s between them;
        # what followed the last of them in the file follows it here.
        after_agents = 1000 * (main[2]["t"] - agents[0]["t"] - 1.3)
        by_tool = [one["input_types"] == ["tool_result"] for one in main[1:]]
        waits = [recorded[0], 100 + 300 + after_agents, recorded[2]]
        tools = sum(wait for wait, tool in zip(waits, by_tool, strict=True) if tool)
        model = CALL_MS * (len(main) + 2)
        yield model + sum(waits), model, tools


def run(*arguments, trace="trace.jsonl", **more):
    return bench("run", "--trace", trace, "--backends", "calm", "--no-probe", *arguments, **more)


@pytest.mark.time
def test_time_to_the_last_call_and_what_it_went_to_are_those_of_the_server(here):
    done = run("--concurrency", "4", "--no-report")
    (cell,) = summary()["cells"]
    whole, model, tools = (np.array(column) for column in zip(*expected("trace.jsonl"), strict=True))
    assert summary()["scenario"] == "agent-sessions"
    counts = {"planned": 8, "ended": 8, "failed": 0, "cut": 0, "not_begun": 0}
    assert cell["sessions"] == counts | {"calls_mean": SHAPE.calls + 2 * SHAPE.agents}
    assert cell["session_ms"]["mean"] == pytest.approx(whole.mean(), rel=0.03)
    assert cell["session_ms"]["p50"] == pytest.approx(np.median(whole), rel=0.03)
    assert cell["model_time_share"] == pytest.approx(model.sum() / whole.sum(), abs=0.02)
    assert cell["tool_time_share"] == pytest.approx(tools.sum() / whole.sum(), abs=0.02)
    assert "sessions of all repeats" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_prompts_on_the_wire_are_as_long_as_recorded_and_hit_as_far_as_they_were_kept(few):
    run("--replay-speed", "20", "--no-report", "--set", "prompts.max_wait_s=0.05", trace=few)
    (cell,) = summary()["cells"]
    folder = RunFolder(run_folder())
    records, facts = folder.read_cell(cell["cell"])
    asked = folder.read_requested(facts)
    rows = records.requests
    assert (rows["outcome"] == Outcome.OK).all()
    assert len(rows) == len(asked) == CALLS
    template = rows["prompt_tokens"] - (asked.numbers["kept"] + asked.numbers["content_tokens"])
    assert np.ptp(template) <= 2  # this tokenizer rounds up to whole tokens of four letters
    # Blocks of 16 behind the template; agents at work next to each other may miss what is being computed.
    kept, cached = asked.numbers["kept"], rows["cached_tokens"]
    assert (cached[kept > 0] >= kept[kept > 0] // 16 * 16 - 16).all()
    assert (cached[kept == 0] <= template.max()).all()
    first, *_, last = (one["cached_share"] for one in cell["by_depth"].values())
    assert first < last
    for number, waits in enumerate(asked.after):
        if asked.numbers["turn"][number]:
            ends = [rows["end_ns"][number - back] for back in waits]
            assert rows["intended_ns"][number] == max(ends) + asked.waits_ns()[number]
    source = folder.read_json("manifest.json")["workload_source"]
    assert (source["format"], source["sessions"], source["requests"]) == ("weka", FEW.sessions, CALLS)

    # The run is a trace of sessions itself.
    run("--out", "again/results", "--no-report", trace=str(run_folder()))
    replayed = only_cell(Path("again"))
    assert replayed["sessions"]["ended"] == FEW.sessions
    assert replayed["prefix_cache_ideal"] == pytest.approx(cell["prefix_cache_ideal"], abs=0.001)


def test_a_call_that_fails_ends_its_session_and_is_counted(few):
    define("shaky", "--max-running", "64", "--fault", "html-500:every=10", ttft_ms=50, gap_ms=5)
    quick = ("--replay-speed", "20", "--no-probe", "--no-report")
    done = bench("run", "--trace", few, "--backends", "shaky", *quick, code=(0, 4))
    (cell,) = summary()["cells"]
    counts = cell["sessions"]
    assert counts["failed"] >= 1
    assert counts["planned"] == counts["ended"] + counts["failed"] + counts["cut"] == FEW.sessions
    assert cell["requests"]["unsent"] > 0
    assert "sessions of all repeats" in done.stdout


def test_bad_traces_are_one_error_each(here):
    Path("bad.jsonl").write_text(
        '{"requests": [{"t": -1, "type": "s", "in": 5, "out": 1}], "block_size": 16}\n'
    )
    done = bench("run", "--trace", "bad.jsonl", "--backends", "calm", code=2)
    assert "2 of 2 lines are not usable as weka; 1: a negative time" in done.stderr
    Path("long.jsonl").write_text(Path("trace.jsonl").read_text())
    done = bench(
        *("run", "--trace", "long.jsonl", "--backends", "calm", "--set", "prompts.max_input_tokens=9"), code=2
    )
    assert "no session begins with a prompt of 9 tokens or fewer" in done.stderr
    thinks = ("--trace", "trace.jsonl", "--backends", "calm", "--set", "load.think_time_s=2")
    assert "recorded sessions have waits of their own" in bench("run", *thinks, code=2).stderr
    assert not Path("results").exists()


def test_a_ladder_of_depths_has_a_row_for_each(here):
    quietly = ("--no-probe", "--no-report", "--requests", "12", "--output-tokens", "4")
    less = ("--set", "load.warmup_requests=3", "--set", "load.min_answers=4")
    done = bench("run", "--depth", "64,128,1k", "--backends", "calm", *quietly, *less)
    (cell,) = summary()["cells"]
    assert sorted(cell["by_kind"]) == ["128", "1k", "64"]
    records, facts = RunFolder(run_folder()).read_cell(cell["cell"])
    asked = RunFolder(run_folder()).read_requested(facts)
    assert set(asked.numbers["content_tokens"].tolist()) == {60, 124, 1020}
    assert set(records.requests["output_tokens"].tolist()) == {4}
    rows = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("calm ")]
    assert rows == ["64", "128", "1k"]
    both = ("run", "--depth", "1k", "--trace", "trace.jsonl", "--backends", "calm")
    assert "a trace has its own depths" in bench_here(*both, code=2).stderr


def test_a_single_depth_has_the_figures_of_all_requests(here):
    size = ("--requests", "8", "--output-tokens", "4", "--set", "load.min_answers=4")
    bench("run", "--depth", "128", "--backends", "calm", "--no-probe", "--no-report", *size)
    (cell,) = summary()["cells"]
    assert (cell["by_kind"], cell["requests"]["ok"]) == (None, 8)
    rules = summary()["verdict_rules"]
    assert (rules["primary"], rules["metrics"]) == ("ttft_ms.p50", ["ttft_ms.p50", "tpot_ms.p50"])


@pytest.mark.long
@pytest.mark.time
def test_verdicts_and_charts_say_at_which_depth_one_is_slower(here):
    """Both need 100 ms and so much for each token of the prompt: 0.1 ms in one, 0.2 ms in the other."""
    for name, us_per_token in (("quick", 100), ("slow", 200)):
        define(name, "--prefill-us-per-token", str(us_per_token), ttft_ms=100, gap_ms=5)
    size = ("--requests", "30", "--output-tokens", "4", "--repeats", "4", "--set", "load.min_answers=12")
    asked = ("run", "--depth", "128,2k", "--backends", "quick,slow", "--no-probe", "--no-agreement")
    bench(*asked, *size, "--concurrency", "4", pictures=True)
    found = {one["metric"]: one for one in summary()["comparison"]}
    template = 9  # tokens
    for depth, tokens in (("128", 128), ("2k", 2048)):
        verdict, read = found[f"by_kind.{depth}.ttft_ms.p50"], tokens - 4 + template
        assert (verdict["a"], verdict["verdict"]) == ("quick", "faster")
        assert verdict["ratio"][1] == pytest.approx((100 + 0.1 * read) / (100 + 0.2 * read), rel=0.05)
    assert summary()["verdict_rules"]["primary"] == "by_kind.2k.ttft_ms.p50"
    assert (run_folder() / "plots" / "ttft-depth-c4.png").is_file()
    assert "Against the depth of the context" in (run_folder() / "report.html").read_text()


@pytest.mark.long
def test_a_trace_that_ends_before_the_duration_is_not_enough_of_it(here):
    asked = ("--replay-speed", "1", "--set", "load.min_coverage=0.95", "--no-report")
    done = run(*asked, "--duration", "60", code=4)
    (cell,) = summary()["cells"]
    (reason,) = [one for one in cell["validity"]["reasons"] if one["code"] == "coverage-short"]
    assert reason["limit"] == "95%"
    assert "of 60 s" in reason["measured"]
    assert "coverage-short" in done.stdout


def test_a_trace_that_is_too_short_for_agentx_says_how_far_it_reached(few):
    asked = ("--scenario", "agentx", "--trace", few, "--concurrency", "3", "--no-probe", "--no-report")
    done = bench("run", *asked, "--backends", "calm", code=4)
    (cell,) = summary()["cells"]
    assert "coverage-short" in [one["code"] for one in cell["validity"]["reasons"]]
    assert "of 1800 s" in " ".join(done.stdout.split())
