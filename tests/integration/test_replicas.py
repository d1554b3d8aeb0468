"""Several URLs of one model, from the servers' ledgers to the printed words."""

import json
import re
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from harness.engines.session import EngineSession
from harness.engines.speak.server import Server
from harness.load import run_load
from harness.load.balance import round_robin
from harness.load.job import ClosedLoop, OpenLoop
from harness.mockserver import running
from harness.spec.backend_refs import load_backend
from harness.store import RunFolder
from tests.integration.load_server import serve
from tests.integration.scripted import MEASURED, bench, only_cell, run_folder, summary
from tests.integration.test_load_sessions import MS, echo, job, messages

SIZE = ("--scenario", "fixed-length", "--input-tokens", "64", "--output-tokens", "8", "--no-probe")
WARM = ("--set", "load.warmup_requests=2")
SLOW_MS, QUICK_MS = 240, 60


def measure(backends, *more, requests=16, concurrency=4, code=MEASURED, report=False):
    load = ("--requests", str(requests), "--concurrency", str(concurrency))
    quick = () if report else ("--no-report",)
    return bench("run", *SIZE, *WARM, *load, "--backends", backends, "-v", *quick, *more, code=code)


def ledger(server):
    """Of the cell: what came before it is bench's greeting, and cells that were measured again."""
    run = RunFolder(run_folder())
    (name,) = run.cells()
    t0 = run.read_cell(name)[1].t0_monotonic_ns
    return [record for record in server.truth()["records"] if record["received_ns"] >= t0]


@pytest.fixture(scope="module")
def pair():
    """A quick server and a slow one, which count on from test to test."""
    with (
        running(dialect="vllm", ttft_ms=QUICK_MS, gap_ms=5) as quick,
        running(dialect="vllm", ttft_ms=SLOW_MS, gap_ms=5) as slow,
    ):
        yield quick, slow


def joined(*servers):
    return "+".join(server.url for server in servers)


def requests_of_cell():
    run = RunFolder(run_folder())
    (name,) = run.cells()
    return run.read_cell(name)[0].requests


@pytest.mark.long
@pytest.mark.time
def test_round_robin_is_even_and_each_url_has_the_time_of_its_server(here, pair):
    done = measure(f"vllm={joined(*pair)}", requests=80, report=True)
    cell, servers = only_cell(), {server.url: server for server in pair}
    assert cell["replicas"]["balance"] == "round-robin"
    for part in cell["replicas"]["urls"]:
        records = ledger(servers[part["url"]])
        truth = [(one["write_ns"][0] - one["received_ns"]) / 1e6 for one in records]
        assert part["ttft_ms"]["p50"] == pytest.approx(np.median(truth), abs=20)
        assert (part["requests"], part["failed"], part["share"]) == (40, 0, 0.5)
        row = next(line for line in done.stdout.splitlines() if line.startswith(part["url"]))
        assert row.split()[1:4] == ["40", "50.0", "0"]
        assert part["url"] in (run_folder() / "report.html").read_text()
    rows = requests_of_cell()
    # Warm-up, then the measured ones: dealt in the order of the schedule.
    assert (rows["replica"] == rows["seq"] % 2).all()
    assert [len(ledger(server)) for server in pair] == [
        np.count_nonzero(rows["replica"] == k) for k in (0, 1)
    ]
    # Both servers' counters: one of them has half of it, which the law would tell.
    laws = {law["law"]: law["holds"] for law in cell["conservation"]}
    assert laws["output tokens: by the engine's counters = in its answers"] is True
    assert cell["server"]["output_tokens"] == 8 * len(rows)
    assert re.search(rf"replica-slower, {re.escape(pair[1].url)}: TTFT \+1\d\d", done.stdout)
    assert f"replica-slower, {pair[0].url}" not in done.stdout


def test_least_outstanding_spares_the_slow_server(here, pair):
    done = measure(f"vllm={joined(*pair)}", "--balance", "least-outstanding", requests=40)
    quick, slow = only_cell()["replicas"]["urls"]
    assert quick["requests"] + slow["requests"] == 40
    # Two in flight at each: the quick one ends about three times as many.
    assert 2 * slow["requests"] < quick["requests"]
    assert [part["requests"] for part in (quick, slow)] == [
        len(ledger(server)) - warm for server, warm in zip(pair, _warmup(), strict=True)
    ]
    assert "by URL, least-outstanding" in done.stdout


def _warmup():
    rows = requests_of_cell()
    return [np.count_nonzero((rows["replica"] == place) & (rows["phase"] == 0)) for place in (0, 1)]


@pytest.mark.parametrize("balance", ["round-robin", "least-outstanding"])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "schedule", [ClosedLoop(4), OpenLoop(np.arange(8, dtype=np.int64) * 5 * MS)], ids=["closed", "open"]
)
def test_a_session_stays_where_it_began(balance, workers, schedule):
    turns = (3, 2, 4, 2, 3, 2, 3, 2)
    with serve(echo) as one, serve(echo) as other:
        made = job(one.url, turns, schedule, workers=workers, other_urls=(other.url,))
        if balance == "round-robin":
            made = replace(made, replicas=round_robin(sum(turns), made.sessions, 2))
        result = run_load(made)
    assert (result.records.requests["outcome"] == 0).all()
    by_server = [{said[-1]["content"].split(".")[0] for said in messages(server)} for server in (one, other)]
    assert not by_server[0] & by_server[1]
    assert sum(map(len, by_server)) == len(turns)
    assert all(by_server)
    if balance == "round-robin":
        assert by_server == [{"0", "2", "4", "6"}, {"1", "3", "5", "7"}]


def test_a_url_that_answers_nothing_is_named(here):
    broken = running(dialect="vllm", ttft_ms=QUICK_MS, gap_ms=5, fault=["503:at=2:times=100000"])
    with running(dialect="vllm", ttft_ms=QUICK_MS, gap_ms=5) as well, broken as dead:
        done = measure(f"vllm={joined(well, dead)}", code=4)
    cell = only_cell()
    assert {"replica-failed", "failed-requests"} <= {reason["code"] for reason in cell["validity"]["reasons"]}
    words = " ".join(done.stdout.split())
    assert f"replica-failed, {dead.url}: 0 of 8 requests answered" in words
    assert f"replica-failed, {well.url}" not in words
    assert [part["failed"] for part in cell["replicas"]["urls"]] == [0, 8]


def test_a_url_that_nobody_listens_at_is_named_before_anything_is_sent(here):
    with running(dialect="vllm", ttft_ms=QUICK_MS, gap_ms=5) as well:
        refused = measure(f"vllm={well.url}+http://127.0.0.1:9", code=3)
        assert well.truth()["records"] == []
    assert "http://127.0.0.1:9" in refused.stderr


def test_another_model_is_one_error_with_both_urls(here):
    with running(dialect="vllm", model_name="a") as one, running(dialect="vllm", model_name="b") as other:
        refused = measure(f"vllm={joined(one, other)}", code=3)
    (error,) = [line for line in refused.stderr.splitlines() if line.startswith("error:")]
    assert f"{other.url}: serves b; {one.url} serves a" in error


def test_counters_are_summed_over_the_urls_given(here, pair):
    """As of a front with its engines behind it: here the second server did nothing."""
    one, other = pair
    more = ("--metrics-url", f"{one.url}/metrics", "--metrics-url", f"vllm={other.url}")
    measure(f"vllm={one.url}", *more)
    cell, rows = only_cell(), requests_of_cell()
    assert cell["server"]["output_tokens"] == 8 * len(rows)
    run = RunFolder(run_folder())
    series = run.read_telemetry(run.cells()[0]).series
    counted = [series[f"engine.{place}output_tokens"].values for place in ("0.", "1.", "")]
    assert counted[0][-1] > counted[0][0]
    assert counted[1][-1] == counted[1][0]
    assert counted[2][-1] == counted[0][-1] + counted[1][-1]


def test_the_probe_reads_counters_where_they_are(here, pair):
    """A front without metrics of its own is not said to lack them."""
    definition = load_backend("vllm")
    with (
        closing(Server(definition, pair[0].url, "simulated")) as one,
        closing(Server(definition, pair[1].url, "simulated")) as other,
    ):
        front = EngineSession(definition, "http://127.0.0.1:9", "simulated", metrics=[one, other])
        before = front.counters()["output_tokens"]
        one.one_chat([{"role": "user", "content": "hello"}], 4)
        other.one_chat([{"role": "user", "content": "hello"}], 8)
        assert front.counters()["output_tokens"] == before + 12


def test_metrics_that_cannot_be_read_are_named_and_not_summed_without(here, pair):
    one, _ = pair
    measure(f"vllm={one.url}", "--metrics-url", one.url, "--metrics-url", "http://127.0.0.1:9")
    run = RunFolder(run_folder())
    facts = json.loads((run.path / "cells" / run.cells()[0] / "cell.json").read_text())
    assert facts["server_counters"] is None
    assert "127.0.0.1:9" in facts["telemetry"]["sources"]["engine"]["last_failure"]
    series = run.read_telemetry(run.cells()[0]).series
    assert "engine.0.output_tokens" in series
    assert "engine.output_tokens" not in series


def test_the_short_form_takes_replicas(here, pair):
    done = bench(joined(*pair), "--minutes", "0.2", "--no-report", code=MEASURED)
    assert f"--backends vllm={joined(*pair)}" in done.stdout
    assert len(summary()["cells"][0]["replicas"]["urls"]) == 2
