"""Files of the two clients in vLLM's package: the one in Python, and `vllm-rs bench serve`."""

from contextlib import nullcontext
from datetime import UTC, datetime

import numpy as np
import pytest

from harness.errors import SpecError
from harness.imports import read, sums
from harness.imports.taken import UNKNOWN_LOAD, WHEN, ZONE, Taken
from harness.metrics import latency
from harness.metrics.view import RequestView
from harness.model import Load
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
@pytest.mark.parametrize("met", [120, 118])
def test_requests_that_met_were_sent_at_once(tmp_path, of, met):
    """Of 3,000 that vllm-rs sent at once 2,997 met in a second: the first had their answers by then."""
    unlimited = of(max_concurrency=None, max_concurrent_requests=met)
    taken = taken_of(foreign.write(tmp_path / "r.json", unlimited))
    assert (taken.load.slots, taken.load_known) == (120, True)


@pytest.mark.parametrize("of", [foreign.vllm, foreign.vllm_summary])
@pytest.mark.parametrize(("cap", "variant"), [(None, ""), (64, "max64")])
def test_requests_that_never_met_are_those_of_a_replay(tmp_path, of, cap, variant):
    """A replay of a trace names no rate, as a run at one's own pace does not."""
    replay = taken_of(foreign.write(tmp_path / "r.json", of(max_concurrency=cap, max_concurrent_requests=14)))
    assert (replay.load, replay.load_known, replay.variant) == (UNKNOWN_LOAD, False, variant)
    assert any("at most 14 requests met" in lack for lack in replay.lacks)


def test_a_rate_says_when_requests_left_however_few_met(tmp_path):
    at_a_rate = foreign.vllm_summary(max_concurrency=None, request_rate=16, max_concurrent_requests=8)
    taken = taken_of(foreign.write(tmp_path / "r.json", at_a_rate))
    assert (taken.load.kind, taken.load.value, taken.load_known) == ("rate", 16, True)


def test_chats_that_never_wait_are_slots(tmp_path):
    taken = taken_of(foreign.write(tmp_path / "r.json", chats()))
    assert (taken.load.slots, taken.load.think_time_s, taken.answered) == (4, 0, 36)


def test_chats_that_wait_between_turns_hold_no_slot(tmp_path):
    """Twelve chats of vllm-rs 0.33.0 that wait for 1 s ended after 3 s with two slots: two users need 14."""
    waiting = chats(inter_turn_delay_ms=1000, duration=3.0, request_throughput=12, multi_turn_concurrency=2)
    taken = taken_of(foreign.write(tmp_path / "r.json", waiting))
    assert (taken.load, taken.load_known, taken.variant) == (UNKNOWN_LOAD, False, "max2")


@pytest.mark.parametrize(("think_time_s", "refused"), [(0.0, True), (40.0, False)])
def test_users_who_mostly_wait_are_possible(think_time_s, refused):
    """Four users who wait 40 s after an answer of 0.25 s have fewer than 0.03 requests in flight."""
    slots = Load(kind="concurrency", value=4, think_time_s=think_time_s)
    reported = {"e2e_ms.mean": 250.0, "requests_per_s": 4 / 40.25}
    taken = Taken(tool="x", version=None, level="summary", took="", load=slots, reported=reported)
    with pytest.raises(SpecError, match="in flight") if refused else nullcontext():
        sums.check(taken, "r.json")
