"""Users who hang up on servers that free the slot at once, and on servers that compute on for nobody."""

import numpy as np
import pytest

from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob
from harness.mockserver import running
from harness.records.layout import UNKNOWN, Outcome, Phase
from tests.integration.scripted import bench, define, summary

TTFT_MS, GAP_MS, TOKENS = 40, 10, 40
PATIENCE_MS = 200
WHOLE_MS = TTFT_MS + (TOKENS - 1) * GAP_MS


def job(url, **settings):
    body = b'{"model": "simulated", "messages": [{"role": "user", "content": "a"}], "stream": true}'
    patience = np.full(12, UNKNOWN, np.int64)
    patience[::3] = PATIENCE_MS * 1_000_000
    schedule = ClosedLoop(3)
    return LoadJob(url, Access(), [body] * 12, schedule, patience_ns=patience, **{"workers": 1, **settings})


@pytest.mark.parametrize("settings", [{"stamps": "kernel"}, {"stamps": "user"}, {"workers": 2}])
def test_the_client_hangs_up_when_patience_ends_and_uses_the_slot_again(settings):
    with running(ttft_ms=TTFT_MS, gap_ms=GAP_MS, tokens=TOKENS) as server:
        rows = run_load(job(f"{server.url}/v1/chat/completions", **settings)).records.requests
    leaves = np.arange(12) % 3 == 0
    assert rows["outcome"][leaves].tolist() == [Outcome.ABANDONED] * 4
    assert rows["phase"][leaves].tolist() == [Phase.IMPATIENT] * 4
    assert rows["outcome"][~leaves].tolist() == [Outcome.OK] * 8
    stayed_ms = (rows["end_ns"] - rows["sent_ns"])[leaves] / 1e6
    assert (stayed_ms >= PATIENCE_MS).all()
    assert rows["text_events"][leaves].max() < TOKENS
    assert rows["first_text_ns"][leaves].min() != UNKNOWN


def test_an_answer_that_comes_in_time_is_whole():
    with running(ttft_ms=1, gap_ms=0, tokens=4) as server:
        rows = run_load(job(f"{server.url}/v1/chat/completions")).records.requests
    assert rows["outcome"].tolist() == [Outcome.OK] * 12
    assert rows["phase"].tolist() == [Phase.IMPATIENT, Phase.MEASURE, Phase.MEASURE] * 4


def run(*backends, code=(0, 4), more=()):
    values = {
        "load.abandon_after_s": PATIENCE_MS / 1000,
        "load.min_answers": 5,
        "load.min_seconds": 0.1,
        "prompts.output_spread": 0,
        "verdict.cool_down_s": 0,
    }
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
    what = ("--scenario", "impatient-users", "--backends", ",".join(backends), "--concurrency", "4")
    size = ("--requests", "40", "--output-tokens", str(TOKENS), "--repeats", "1", "--no-probe", "--no-report")
    return bench("run", *what, *size, *settings, *more, code=code)


def test_what_is_computed_for_nobody_is_seen_in_the_engines_counters(here):
    define("frees", "--max-running", "4", ttft_ms=TTFT_MS, gap_ms=GAP_MS)
    define("goes-on", "--max-running", "4", "--finishes-abandoned", ttft_ms=TTFT_MS, gap_ms=GAP_MS)
    run("frees", "goes-on")
    cells = {cell["label"]: cell for cell in summary()["cells"]}
    assert cells["frees"]["requests"]["outcomes"] == cells["goes-on"]["requests"]["outcomes"], (
        "the same users"
    )
    assert cells["frees"]["requests"]["outcomes"].keys() == {"ok", "abandoned"}
    assert cells["frees"]["tokens_after_hang_up"] == pytest.approx(0, abs=1)
    came_in_time = (PATIENCE_MS - TTFT_MS) / GAP_MS
    assert cells["goes-on"]["tokens_after_hang_up"] > TOKENS - came_in_time - 2
    assert cells["frees"]["load"]["abandonment"] == {"share": 0.5, "after_s": PATIENCE_MS / 1000}


@pytest.mark.time
def test_those_who_stay_have_their_latency_alone(here):
    define("frees", ttft_ms=TTFT_MS, gap_ms=GAP_MS)
    run("frees")
    (cell,) = summary()["cells"]
    assert cell["e2e_ms"]["p50"] == pytest.approx(WHOLE_MS, rel=0.1)
    assert cell["time_in_system_ms_mean"] == pytest.approx(WHOLE_MS, rel=0.1)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--set", "load.abandon_share=1"), "must be from 0 to 0.9, not 1"),
        (("--set", "load.abandon_after_s=0"), "load.abandon_share: needs abandon_after_s"),
        (("--set", "request.timeout_s=0.1"), "must be below request.timeout_s, 0.1, not 0.2"),
    ],
)
def test_what_cannot_be_measured_is_one_error(here, more, said):
    define("frees")
    done = run("frees", code=2, more=more)
    assert said in done.stderr
    assert done.stderr.count("error:") == 1
