"""The load that questions of an accuracy are put under, and how much of it is in flight before the first."""

import json
from itertools import islice
from types import SimpleNamespace

import pytest

from harness.model import LoadPoint
from harness.run.measure.agreement_load import under_load
from harness.run.measure.workloads import FILL, Workloads, between_questions, filling
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.scenario import Load


@pytest.mark.parametrize(
    ("load", "point", "count"),
    [
        (Load(requests=8, concurrency=(1, 6)), LoadPoint("concurrency", 6), 6),
        (Load(requests=8, concurrency=(2,), working_set=(0.5, 8)), LoadPoint("working-set", 8), 2),
        (Load(requests=8, rate=(3,)), LoadPoint("rate", 3), FILL),
    ],
)
def test_as_many_as_the_load_keeps_in_flight(load, point, count):
    assert filling(load, point) == count


def put(concurrency, scenario="fixed-length", **overrides):
    """The load of 20 made and 58 fixed questions, and its requests."""
    overrides = {"load.concurrency": concurrency, **overrides}
    prepared = prepare(RunOptions(scenario, "truth", overrides=overrides, accuracy=20))
    made = Workloads(prepared.scenario, 1, 0, None, between=between_questions(prepared)).between
    engine = SimpleNamespace(definition=prepared.backends[0].ref.definition, served_name="m")
    return under_load(prepared, made, engine), made


def test_questions_are_put_under_the_highest_load_wherever_it_is_listed():
    load, made = put([40, 1])
    assert (load.point, load.fill) == (LoadPoint("concurrency", 40), 40)
    assert load.schedule(100).concurrency == 40
    assert len(made) == 3 * 40 + 78 // 2 + 3  # the questions are put in up to three parts
    assert made.sha256 == put([1, 40])[1].sha256


def test_slots_think_between_questions_as_they_do_in_the_load():
    """Without thinking, more requests would be in flight than while speed was measured."""
    load, _ = put([4], **{"load.think_time_s": 0.5, "load.think_time": "constant"})
    assert load.schedule(6).think_ns.tolist() == [500_000_000] * 6
    assert put([4])[0].schedule(6).think_ns is None


def test_questions_are_put_under_the_largest_working_set():
    """A prefix and its question hold 84 tokens of the cache, with the answer: 10 of them are ten times 84."""
    sizes = {"prefix_tokens": 64, "question_tokens": 12, "output_tokens": 8}
    given = {f"prompts.{key}": size for key, size in sizes.items()}
    load, made = put([1], "kv-working-set", **{"load.working_set": [10, 1], "load.kv_tokens": 84, **given})
    assert load.point == LoadPoint("working-set", 10)
    assert {shared[0].id for shared in made.requested.shared} == set(range(10))


def test_recorded_sessions_are_put_as_their_first_prompts_with_all_that_these_begin_with(tmp_path):
    """The second session begins with 32 tokens of the first one."""
    calls = [{"t": 0.0, "in": 16 * blocks, "out": 5, "hash_ids": list(range(blocks))} for blocks in (2, 3)]
    sessions = [
        {"id": str(n), "block_size": 16, "hash_id_scope": "global", "requests": [{**one, "type": "s"}]}
        for n, one in enumerate(calls)
    ]
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(map(json.dumps, sessions)))
    load, made = put([1], "agent-sessions", **{"prompts.file": str(file)})
    sent = [json.loads(body)["messages"][0]["content"] for body in islice(load.bodies, 3)]
    first, rest = (request.messages[0][1] for request in made.requests)
    assert sent == [first, first + rest, first]
