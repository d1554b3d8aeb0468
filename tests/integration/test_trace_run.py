"""Traces and prompt files as a person replays them, on the scripted server."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from harness.records.layout import Outcome
from harness.store import RunFolder
from tests.integration.scripted import bench, define, only_cell, run_folder, summary

SENT = 100  # as many as a test of arrivals needs


@pytest.fixture
def here(here):
    """An empty directory with the backend `calm`: any number of requests at once, and so slow that the limits
    of lateness (5% of the TTFT, half a gap) are kept on a machine that has other work."""
    define("calm", "--max-running", "256", "--cache-tokens", "1000000", ttft_ms=1500, gap_ms=60)
    return here


def write_mooncake(path, bad=()):
    """100 requests in bursts over 4.5 s, of sessions that grow by a block a turn."""
    lines = []
    for i in range(SENT):
        session, turn = i % 20, i // 20
        blocks = [0, *(100 * session + n + 1 for n in range(turn + 1))]
        length = 512 * (len(blocks) - 1) + 7
        lines.append(
            {
                "timestamp": i // 10 * 500,
                "input_length": length,
                "output_length": 2 + i % 3,
                "hash_ids": blocks,
            }
        )
    path.write_text("\n".join([*map(json.dumps, lines), *bad]))
    return lines


def test_a_trace_leaves_on_its_timestamps_with_its_lengths(here):
    lines = write_mooncake(Path("trace.jsonl"))
    asked = ("--backends", "calm", "--set", "prompts.max_input_tokens=4096", "--no-probe", "--no-report")
    bench("run", "--trace", "trace.jsonl", *asked)
    (cell,) = summary()["cells"]
    assert cell["load"]["kind"] == "trace"
    assert cell["validity"]["verdict"] != "INVALID"
    assert cell["requests"]["ok"] == cell["requests"]["planned"] == SENT
    assert cell["arrivals"]["verdict"] == "kept"
    assert cell["arrivals"]["against"] == "its schedule"
    folder = RunFolder(run_folder())
    records, _ = folder.read_cell(cell["cell"])
    rows = records.requests
    assert (rows["outcome"] == Outcome.OK).all()
    assert rows["intended_ns"].tolist() == [line["timestamp"] * 1_000_000 for line in lines]
    assert rows["output_tokens"].tolist() == [line["output_length"] for line in lines]
    # The server counts its chat template too: the same few tokens for every request.
    template = rows["prompt_tokens"] - [line["input_length"] for line in lines]
    assert len(set(template.tolist())) == 1
    # The server's cache holds everything, in blocks of 16: it reused what the trace shares.
    assert cell["prefix_cache_hit_rate"] == pytest.approx(cell["prefix_cache_ideal"], abs=0.02)
    assert cell["prefix_cache_ideal"] > 0.5
    source = folder.read_json("manifest.json")["workload_source"]
    assert (source["format"], source["requests"], source["skipped"]) == ("mooncake", SENT, {})

    # The run is a trace itself, and what its requests shared is kept.
    bench("run", "--trace", str(run_folder()), "--replay-speed", "4", "--out", "again/results", *asked)
    replayed = only_cell(Path("again"))
    assert replayed["requests"]["ok"] == SENT
    assert replayed["prefix_cache_ideal"] == pytest.approx(cell["prefix_cache_ideal"], abs=0.001)
    records, _ = RunFolder(run_folder(Path("again"))).read_cell(replayed["cell"])
    assert records.requests["intended_ns"].tolist() == (rows["intended_ns"] // 4).tolist()
    assert (np.diff(records.requests["prompt_tokens"] - rows["prompt_tokens"]) == 0).all()


def test_bad_lines_are_counted_and_told(here):
    bad = [
        '{"timestamp": -5, "input_length": 9, "output_length": 1, "hash_ids": [1]}',
        "{",
        '{"timestamp": 0}',
    ]
    write_mooncake(Path("trace.jsonl"), bad)
    done = bench(
        *("run", "--backends", "calm", "--trace", "trace.jsonl", "--requests", "20", "--no-report", "-v"),
        *("--set", "prompts.max_output_tokens=2", "--concurrency", "20", "--no-probe"),
    )
    assert f"3 of {SENT + 3} lines" in done.stdout
    (warning,) = [w for w in summary()["warnings"] if w["code"] == "file-lines-left-out"]
    assert "a negative time" in warning["text"]
    assert summary()["cells"][0]["requests"]["ok"] == 20


@pytest.mark.long
def test_requests_longer_than_the_context_are_told_before_they_fail(here):
    path = Path("backends", "calm.toml")
    path.write_text(path.read_text().replace("max_sequences = 8", "max_sequences = 8, context_tokens = 300"))
    small = ("--requests", "20", "--concurrency", "20", "--no-report")
    bench("run", "--backends", "calm", "--scenario", "trace", *small)
    (warning,) = [w for w in summary()["warnings"] if w["code"] == "longer-than-context"]
    assert "of 20 requests need more than its context of 300 tokens" in warning["text"]
    assert "--engine-set context_tokens=" in warning["hint"]


def test_a_file_that_is_no_trace_stops_before_anything_starts(here):
    Path("trace.jsonl").write_text("hello\n")
    done = bench("run", "--backends", "calm", "--trace", "trace.jsonl", code=2)
    assert "the format is not known from its first line" in done.stderr
    assert "no such file" in bench("run", "--backends", "calm", "--trace", "none", code=2).stderr
    assert not Path("results").exists()


def test_prompts_from_a_file(here):
    lines = [
        {"prompt": f"Question {i}: how many?", "output_tokens": 2 + i, "category": "qa" if i % 3 else "math"}
        for i in range(9)
    ]
    Path("mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    bench(
        *("run", "--scenario", "prompt-file", "--backends", "calm", "--set", "prompts.file=mine.jsonl"),
        *("--no-probe", "--no-report", "--concurrency", "9", "--set", "prompts.order=file"),
    )
    (cell,) = summary()["cells"]
    assert cell["requests"]["ok"] == cell["requests"]["planned"] == 9
    assert {name: found["requests"] for name, found in cell["by_kind"].items()} == {"math": 3, "qa": 6}
    records, _ = RunFolder(run_folder()).read_cell(cell["cell"])
    assert records.requests["output_tokens"].tolist() == [line["output_tokens"] for line in lines]


def test_answers_to_prompts_of_a_table_keep_to_their_schemas(here):
    schemas = [{"type": "object", "properties": {name: {}}, "required": [name]} for name in ("sum", "day")]
    rows = [["prompt", "output_tokens", "schema"]]
    rows += [[f"Bill {number}, as JSON.", 60, json.dumps(schemas[number % 2])] for number in range(6)]
    with Path("bills.csv").open("w", newline="") as file:
        csv.writer(file).writerows([*rows, ["Hello.", 8, ""]])
    bench(
        *("run", "--scenario", "prompt-file", "--backends", "vllm", "--launch", "simulate", "--no-probe"),
        *("--no-report", "--concurrency", "1", "--set", "prompts.file=bills.csv"),
        *("--set", "load.warmup_requests=0", "--set", "request.exact_output=false"),
    )
    (cell,) = summary()["cells"]
    assert cell["structured_valid_rate"] == 1
    assert {name: found["requests"] for name, found in cell["by_kind"].items()} == {
        "json_schema": 6,
        "other": 1,
    }
    assert cell["answers"]["structured"]["json_schema"]["valid"] == 6


@pytest.mark.long
def test_the_shipped_examples_run(here):
    bench("run", "--scenario", "trace", "--backends", "calm", "--replay-speed", "20", "--no-report")
    assert summary()["cells"][0]["requests"]["ok"] == 120
