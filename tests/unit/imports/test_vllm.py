"""Files of the two clients in vLLM's package: the one in Python, and `vllm-rs bench serve`."""

from datetime import UTC, datetime

import numpy as np
import pytest

from harness.errors import SpecError
from harness.imports import read
from harness.imports.taken import UNKNOWN_LOAD, WHEN, ZONE
from harness.metrics import latency
from harness.metrics.view import RequestView
from tests.factories import foreign


def taken_of(path, version=None):
    _, (taken,) = read(path, version)
    return taken


def of_rust(document, **changes):
    return document | {"date": "2026-11-24T08:00:00Z", "input_throughput": 100.0} | changes


def chats(**changes):
    """Three turns of each of twelve chats, four at a time."""
    document = of_rust(foreign.vllm_summary(requests=36), mode="multi_turn", num_conversations=12)
    left_out = ("endpoint_type", "num_prompts", "request_rate", "burstiness", "max_concurrency")
    kept = {key: value for key, value in document.items() if key not in left_out}
    return kept | {"multi_turn_concurrency": 4, "inter_turn_delay_ms": 0} | changes


@pytest.mark.parametrize("version", [None, "0.33.0"])
def test_a_role_chunk_ends_ttft_of_the_client_in_rust_in_0_33_too(tmp_path, version):
    early = of_rust(foreign.vllm(), ttfts=[0.002] * 120, mean_ttft_ms=2.0, mean_itl_ms=None)
    early["itls"] = [[0.098, *gaps[1:]] for gaps in early["itls"]]
    taken = taken_of(foreign.write(tmp_path / "r.json", early), version)
    assert np.median(latency.of_metric(RequestView(taken.records), "ttft_ms")) == pytest.approx(100, abs=0.01)
    assert taken.tool == "vllm-rs bench serve"
    summary = taken_of(foreign.write(tmp_path / "s.json", of_rust(foreign.vllm_summary())), version)
    assert "role-only" in summary.definitions["ttft_ms"]


def test_the_date_of_the_client_in_rust_has_its_zone(tmp_path):
    of_a_minute = of_rust(foreign.vllm_summary(), duration=60, request_throughput=2)
    taken = taken_of(foreign.write(tmp_path / "r.json", of_a_minute))
    assert taken.started_unix_ns == datetime(2026, 11, 24, 7, 59, tzinfo=UTC).timestamp() * 1e9
    assert not {WHEN, ZONE} & set(taken.lacks)


@pytest.mark.parametrize("of", [foreign.vllm, foreign.vllm_summary])
def test_requests_that_never_met_were_not_sent_at_once(tmp_path, of):
    """A replay of a trace names neither a rate nor a limit, as a run without both does."""
    unlimited = of(max_concurrency=None)
    once = taken_of(foreign.write(tmp_path / "a.json", unlimited | {"max_concurrent_requests": 120}))
    assert (once.load.slots, once.load_known) == (120, True)
    replay = taken_of(foreign.write(tmp_path / "b.json", unlimited | {"max_concurrent_requests": 14}))
    assert (replay.load, replay.load_known) == (UNKNOWN_LOAD, False)


def test_chats_are_slots_that_wait_between_turns(tmp_path):
    taken = taken_of(foreign.write(tmp_path / "r.json", chats(inter_turn_delay_ms=500)))
    assert (taken.load.slots, taken.load.think_time_s, taken.answered) == (4, 0.5, 36)


def test_chats_that_mostly_wait_are_possible(tmp_path):
    """Four users who wait 40 s after an answer of 0.25 s have 0.1 requests in a second."""
    slow = {"duration": 362.25, "request_throughput": 36 / 362.25, "mean_e2el_ms": 250.0}
    waiting = chats(inter_turn_delay_ms=40_000, **slow)
    assert taken_of(foreign.write(tmp_path / "r.json", waiting)).load.think_time_s == 40
    with pytest.raises(SpecError, match="in flight"):
        read(foreign.write(tmp_path / "s.json", waiting | {"inter_turn_delay_ms": 0}))
