from dataclasses import asdict, replace
from random import Random
from typing import Any

from harness.engines.speak.prometheus import read_series
from harness.mockserver.ask import Ask
from harness.mockserver.declared import declared_dialect
from harness.mockserver.engine import Engine, Job
from harness.mockserver.event_style import ResponsesStyle
from harness.mockserver.faults import Fault
from harness.mockserver.habits import Habits
from harness.mockserver.ledger import Record
from harness.mockserver.metrics import Meter
from harness.mockserver.options import Options
from harness.mockserver.script import NS_PER_MS, Distribution
from harness.spec.backend_refs import load_backend

BODIES = [b'{"prompt": "one"}', b'{"prompt": "two"}', b'{"prompt": "one"}']

TRUTH = declared_dialect("truth")


def engine(**options: Any) -> Engine:
    times = {"ttft_ms": Distribution.parse("100"), "gap_ms": Distribution.parse("50")}
    return Engine(Options(habits=Habits(role="none"), **(times | options)))


def job(number: int = 0, prompt: str = "x", tokens: int = 3) -> Job:
    ask = Ask(chat=False, prompt=list(prompt), stream=True, max_tokens=tokens)
    return Job(ask, Record(number, "/v1/completions", 0, 0), Random(0), None, gzip=False, close=False)


def test_slots_are_given_in_order_of_arrival() -> None:
    limited = engine(max_running=2)
    admitted: list[tuple[int, int]] = []
    jobs = [job(number) for number in range(5)]
    for at_ns, one in enumerate(jobs):
        limited.submit(one, at_ns, lambda now_ns, one=one: admitted.append((one.record.number, now_ns)))
    assert admitted == [(0, 0), (1, 1)]
    limited.leave(jobs[2], 10)  # its client left while it waited
    limited.leave(jobs[1], 20)
    assert admitted == [(0, 0), (1, 1), (3, 20)]
    assert jobs[3].record.admitted_ns == 20
    limited.leave(jobs[0], 30)
    limited.leave(jobs[3], 40)
    limited.leave(jobs[4], 50)
    assert admitted[3:] == [(4, 30)]
    assert not limited.running
    assert not limited.waiting


def test_a_request_that_was_read_before_a_slot_was_free_got_it_when_it_was() -> None:
    """Read at 5, looked at after the only slot was left at 10; the next one finds it free."""
    limited = engine(max_running=1)
    jobs = [job(number) for number in range(3)]
    limited.submit(jobs[0], 0, lambda _: None)
    limited.leave(jobs[0], 10)
    limited.submit(jobs[1], 5, lambda _: None)
    assert jobs[1].record.admitted_ns == 10
    limited.leave(jobs[1], 20)
    limited.submit(jobs[2], 30, lambda _: None)
    assert jobs[2].record.admitted_ns == 30


def test_a_request_draws_the_same_in_whatever_order_it_comes() -> None:
    one, other = engine(), engine()
    forward = {(body, k): one.rng(body).random() for k, body in enumerate(BODIES)}
    draws = [other.rng(body).random() for body in (BODIES[1], BODIES[0], BODIES[2])]
    assert draws == [forward[BODIES[1], 1], forward[BODIES[0], 0], forward[BODIES[2], 2]]
    assert len(set(draws)) == 3, "the same body twice draws anew"
    assert engine(seed=1).rng(BODIES[0]).random() not in draws
    one.restart_numbering()
    assert one.rng(BODIES[0]).random() == forward[BODIES[0], 0]
    assert [one.number(), one.number()] == [0, 1]


def test_the_first_fault_that_strikes_counts() -> None:
    faulty = engine(faults=(Fault("reset", at=1), Fault("stall", every=2)))
    kinds = [faulty.fault(number, Random(0)) for number in range(4)]
    assert [fault and fault.kind for fault in kinds] == [None, "reset", None, "stall"]


def first_token_ms(on: Engine, prompt: str) -> float:
    one = job(prompt=prompt)
    on.submit(one, 0, lambda _: None)
    due_ns = next(write.due_ns for write in on.writes(one, created=0) if write.tokens)
    on.leave(one, 0)
    return due_ns / NS_PER_MS


def test_uncached_prompt_tokens_lengthen_the_ttft() -> None:
    cached = engine(prefill_us_per_token=1000)
    assert first_token_ms(cached, "a" * 40) == 140
    assert first_token_ms(cached, "a" * 40) == 108
    assert first_token_ms(cached, "a" * 32 + "b" * 8) == 108
    cached.cache.clear()
    assert first_token_ms(cached, "a" * 40) == 140
    uncached = engine(prefill_us_per_token=1000, no_prefix_cache=True)
    assert [first_token_ms(uncached, "a" * 40) for _ in range(2)] == [140, 140]


def test_cached_tokens_that_a_label_splits_are_read_in_parts() -> None:
    busy = engine()
    busy.cached_tokens, busy.host_cached_tokens = 50, 20
    text = Meter(busy, declared_dialect("sglang"), "m").prometheus()
    metrics = load_backend("sglang").metrics
    assert metrics is not None
    found = read_series(text, asdict(metrics.counters), {})
    assert (found["cached_prompt_tokens"], found["host_cached_tokens"]) == (50, 20)
    assert text.count("# TYPE sglang:cached_tokens_total counter") == 1


def test_metrics_count_what_happened() -> None:
    busy = engine(max_running=1)
    first, second = job(prompt="a" * 20), job(prompt="a" * 20)
    for one in (first, second):
        busy.submit(one, 0, lambda _, one=one: list(busy.writes(one, created=0)))
    first.record.tokens = 2
    text = Meter(busy, TRUTH, "m").prometheus()
    for line in ("num_requests_running", "num_requests_waiting"):
        assert f'vllm:{line}{{model_name="m",engine="0"}} 1\n' in text
    assert 'generation_tokens_total{model_name="m",engine="0"} 2\n' in text
    busy.leave(first, 0)
    busy.leave(second, 0)
    text = Meter(busy, TRUTH, "m").prometheus()
    for line, value in {
        "num_requests_running": 0,
        "prompt_tokens_total": 40,
        "prefix_cache_hits_total": 16,
        "generation_tokens_total": 2,
    }.items():
        assert f'vllm:{line}{{model_name="m",engine="0"}} {value}\n' in text


def test_a_body_that_is_no_longer_kept_draws_like_a_new_one() -> None:
    bounded = engine(keep_requests=2)
    first = bounded.rng(b"one").random()
    assert bounded.rng(b"one").random() != first
    bounded.rng(b"two")
    bounded.rng(b"three")  # two are kept, and "one" came before these
    assert bounded.rng(b"one").random() == first


def test_turns_are_kept_of_as_many_requests() -> None:
    bounded = engine(keep_requests=2)
    names = []
    for number in range(3):
        turn = job(number)
        asked = replace(turn.ask, style=ResponsesStyle(), kept=({"role": "user", "content": "hello"},))
        list(bounded.writes(replace(turn, ask=asked), created=0))
        names.append(f"resp_cmpl-{number:016x}")
    assert list(bounded.kept) == names[1:]
