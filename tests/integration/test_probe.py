"""The probe against the scripted server: all that it asks, and the traps that lie in bytes and times.

What it concludes from an answer is in tests/unit/probe.
"""

import json
import time
from contextlib import closing

import pytest

from harness.engines.speak.server import Server
from harness.engines.start.smoke_test import hello
from harness.host.access import Access
from harness.mockserver import running
from harness.model import as_json
from harness.probe import examine, traps
from harness.probe.asker import Asker
from harness.probe.cache import LongPrompt, findings
from harness.probe.exchange import Line
from harness.spec.backend_refs import parse_backend
from tests.integration.scripted import bench, bench_here

HABITS = {
    "unknown_fields": "ignored",
    "first_chunk": "role",
    "tokens_per_event": "one",
    "usage": "last",
    "cached_tokens": True,
    "done": True,
    "comments": False,
}
# Taken by vLLM before 0.12, and ignored without a word ever since.
FORMER = {"json_schema": {"guided_json": "{schema}"}, "regex": {"guided_regex": "{regex}"}}

STRICT = """
[backend]
name = "strict"
title = "Strict"
licence = "MIT"
homepage = ""
weights = "none"

[server]
ready_path = "/health"
startup_timeout_s = 5

[dialect]
exact_output = { ignore_eos = true }
extra = { max_tokens = "many" }
"""


def definition(dialect=None, **tables):
    table = {
        "backend": {"name": "x", "title": "X", "licence": "MIT", "homepage": "", "weights": "none"},
        "server": {
            "ready_path": "/health",
            "startup_timeout_s": 5,
            "version": {"path": "/version", "key": "version"},
            "tokenize": {"path": "/tokenize", "text_field": "prompt"},
        },
        "dialect": {"exact_output": {"ignore_eos": True}, "habits": HABITS} | (dialect or {}),
        "prefix_cache": {"enabled": True, "reset": {"path": "/reset_prefix_cache", "success_key": "success"}},
        "metrics": {"path": "/metrics", "counters": {"cached_prompt_tokens": "vllm:prefix_cache_hits_total"}},
    }
    return parse_backend(table | tables, "x.toml")


def probed(server, made=None, **limits):
    with closing(Server(made or definition(), server.url, "simulated")) as asked:
        return examine(asked, **limits)


def finding(found, topic):
    (one,) = [finding for finding in found.findings if finding.topic.startswith(topic)]
    return one


@pytest.fixture(scope="module")
def plain():
    with running(ttft_ms=5, gap_ms=1, stop_after_tokens=3) as server:
        yield server


def test_all_that_is_declared_holds(plain):
    found = probed(plain)
    assert found.mismatches == ()
    assert found.simulated
    assert found.version.endswith("+simulated")
    assert finding(found, "exactly 32 tokens").seen == "32 tokens, 3 when not forced"
    assert finding(found, "prefix cache").holds
    assert finding(found, "cache reset").seen.startswith(
        "99% cached before, 0% after POST /reset_prefix_cache"
    )
    assert finding(found, "metrics").seen == "1 of 1 series"
    assert all(count > 5 for count in found.prompt_tokens.values())
    json.dumps(as_json(found))


def test_a_habit_other_than_declared_is_found():
    with running(ttft_ms=5, gap_ms=1, tokens_per_event=4, role="none", usage="each") as server:
        found = probed(server)
    assert {one.topic for one in found.findings if one.holds is False} == {
        "first event",
        "tokens per event",
        "usage block",
    }


def test_a_constraint_that_is_accepted_and_ignored_is_caught(plain):
    made = definition({"structured": FORMER})
    found = probed(plain, made)
    for topic in ("structured: json_schema", "structured: regex"):
        one = finding(found, topic)
        assert one.holds is False
        assert one.matters
        assert one.seen.startswith("accepted and ignored: ")
    undeclared = finding(found, "structured: others")
    assert (undeclared.seen, undeclared.holds) == ("not asked: json_object, choice, grammar", None)


def test_only_the_shapes_that_are_wanted_are_tried(plain):
    made = definition({"structured": FORMER})
    topics = {one.topic for one in probed(plain, made, shapes=["regex"], tools=False).findings}
    assert "structured: regex" in topics
    assert not topics & {"structured: json_schema", "tools"}


def test_a_reset_that_answers_200_and_empties_nothing_is_caught(plain):
    lying = {"enabled": True, "reset": {"path": "/health", "method": "GET"}}
    one = finding(probed(plain, definition(prefix_cache=lying)), "cache reset")
    assert one.holds is False
    assert one.seen.startswith("99% cached before, 99% after GET /health")
    lying["reset"]["leaves"] = "most of it"
    one = finding(probed(plain, definition(prefix_cache=lying)), "cache reset")
    assert (one.holds, one.matters) == (None, False), "what it leaves was declared"
    assert one.seen.endswith("99% after GET /health; leaves most of it")
    assert "not cold" in one.then
    refused = {"enabled": True, "reset": {"path": "/nowhere"}}
    one = finding(probed(plain, definition(prefix_cache=refused)), "cache reset")
    assert "answered 404" in one.seen
    assert one.matters


def test_series_and_endpoints_that_are_not_there_are_named(plain):
    made = definition(
        metrics={"path": "/metrics", "counters": {"prompt_tokens": "no:such"}},
        server={
            "ready_path": "/health",
            "startup_timeout_s": 5,
            "version": {"path": "/nowhere"},
            "tokenize": {"path": "/nowhere", "text_field": "prompt"},
        },
    )
    found = probed(plain, made)
    assert finding(found, "metrics").then == "null: prompt_tokens (no:such)"
    assert finding(found, "version").holds is False
    assert finding(found, "tokenizer").seen == "404"


def test_a_server_that_refuses_every_request_is_told_in_its_own_words(plain):
    found = probed(plain, definition({"extra": {"max_tokens": "many"}}))
    one = finding(found, "chat")
    assert one.holds is False
    assert one.seen.startswith("400: ")
    assert found.refused == one.seen
    assert probed(plain).refused == ""


def test_a_backend_whose_requests_are_refused_is_started_once_and_the_others_are_measured(tmp_path):
    """Its other starts would end in the same answer."""
    strict = tmp_path / "strict.toml"
    strict.write_text(STRICT)
    short = ("--concurrency", "1", "--requests", "8", "--input-tokens", "8", "--output-tokens", "2")
    quick = ("--no-agreement", "--no-report", "--set", "verdict.cool_down_s=0")
    flags = ("--scenario", "fixed-length", *short, "--repeats", "2", *quick)
    with running(ttft_ms=100, gap_ms=1) as server:
        both = f"{strict}={server.url},truth={server.url}"
        done = bench("run", "--backends", both, *flags, cwd=tmp_path, code=3)
        alone = bench("run", "--backends", f"{strict}={server.url}", *flags, cwd=tmp_path, code=3)
    assert done.stderr.count("strict: attaching") == 1
    assert "not-measured: strict: it refuses the requests: 400: " in done.stdout
    assert len(list(tmp_path.glob("results/*/cells/*-truth-*"))) == 2
    assert not list(tmp_path.glob("results/*/cells/*-strict-*"))
    assert "strict: it refuses the requests: 400: " in alone.stderr


def test_a_server_that_hangs_costs_no_more_than_the_limit():
    with running(ttft_ms=5, gap_ms=1, fault=["stall"]) as server:
        found = probed(server, limit_s=1.0)
    assert found.wall_s < 5
    assert finding(found, "chat").holds is False
    assert {one.topic for one in found.findings} >= {"version", "tokenizer", "metrics"}
    assert found.requests == 1


def test_what_the_time_did_not_reach_is_not_said_of_the_cache(plain):
    with (
        closing(Server(definition(), plain.url, "simulated")) as server,
        closing(Line(server.api_url, Access(), time.monotonic() + 60)) as line,
    ):
        prompt = LongPrompt.new(Asker(server, line, thorough=False))
        first, _ = prompt.send()
        line.deadline = 0.0
        told = [(found.seen, found.holds) for found in findings(prompt, first)]
    over = "not asked: the time for this probe is over"
    assert told == [(over, None), (f"accepted, not seen to work ({over})", None)]


def test_the_command_prints_a_table_or_json_and_tells_by_its_exit_code(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    table = bench("probe", f"truth={plain.url}").stdout
    assert "SIMULATED" in table
    assert "nothing that was seen differs from what is declared" in table
    document = json.loads(bench_here("probe", f"truth={plain.url}", "--json").stdout)
    assert {"findings", "prompt_tokens", "version"} <= set(document)
    assert "structured: regex" in bench_here("probe", f"vllm={plain.url}", code=1).stdout
    nowhere = bench_here("probe", "truth=http://127.0.0.1:9", code=3)
    assert "truth: http://127.0.0.1:9: no answer" in nowhere.stderr
    assert "one backend at a time" in bench_here("probe", "truth,vllm", code=2).stderr


def test_a_server_that_is_not_the_engine_it_is_called_is_found_out():
    with running(dialect="vllm", ttft_ms=5, gap_ms=1) as server:
        table = bench_here("probe", f"tgi={server.url}", code=1).stdout
    assert "no  structured: regex" in table


# What makes figures unfair, each on a server that does it.


def ours(server, made=None, **limits):
    """As a server that bench started, with the settings of its definition."""
    with closing(Server(made or definition(), server.url, "simulated")) as asked:
        asked.started_here = True
        hello(asked)
        return examine(asked, shapes=(), tools=False, **limits)


def test_no_trap_is_seen_where_there_is_none(monkeypatch):
    monkeypatch.setattr(traps, "waited_for_cpu_s", lambda: 0.0)  # other tests load the machine
    made = definition(engine={"values": {"context_tokens": 2048}})
    with running(ttft_ms=5, gap_ms=30, stop_after_tokens=3) as server:
        found = ours(server, made)
    assert found.mismatches == ()
    for topic in ("events sent", "3 streams at once", "loaded when ready", "context"):
        assert finding(found, topic).holds, topic


def test_output_in_bursts_is_caught(monkeypatch):
    monkeypatch.setattr(traps, "waited_for_cpu_s", lambda: 0.0)  # other tests load the machine
    with running(ttft_ms=5, gap_ms=30, events_per_write=5) as server:
        one = finding(probed(server), "events sent")
    assert (one.holds, one.matters) == (False, True)
    assert "gaps are of 0" in one.seen


def test_a_new_request_that_ends_the_running_ones_is_caught():
    with running(ttft_ms=5, gap_ms=30, interrupts=True) as server:
        one = finding(probed(server, shapes=(), tools=False), "3 streams at once")
    assert (one.holds, one.matters) == (False, True)
    assert one.seen.startswith("2 of 3 ended after")


def test_a_model_that_the_first_request_loads_is_caught():
    with running(dialect="lmstudio", ttft_ms=5, gap_ms=1, loading_s=1.5) as server:
        made = definition(server={"ready_path": "/v1/models", "startup_timeout_s": 5})
        one = finding(ours(server, made), "loaded when ready")
    assert one.holds is False
    assert one.seen.startswith("first answer after 1.")
