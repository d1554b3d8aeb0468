"""Files of agents' sessions: what each call waits for, how long, and how its prompt begins."""

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SpecError
from harness.metrics.prefix import reusable
from harness.records.request_table import RequestTable
from harness.spec.scenario import TraceReplay
from harness.workload.prompts.generate import generate
from harness.workload.prompts.text import TextMaker
from harness.workload.traces import read_trace, window, with_sessions
from harness.workload.traces import sessions as layout
from harness.workload.traces.sessions import Call, Thread
from tests.unit.workload.test_prompts import letters, merging, words

S = 1_000_000_000


def call(t, given, ids, out=5, **more):
    return {"t": t, "type": "s", "model": "m", "in": given, "out": out, "hash_ids": ids, **more}


def conversation(*requests, size=16, **more):
    return {"id": "a", "models": ["m"], "block_size": size, "requests": list(requests), **more}


def agent(t, *requests):
    return {"t": t, "type": "subagent", "agent_id": "x", "status": "completed", "requests": list(requests)}


SESSION = conversation(
    call(0.0, 40, [1, 2], api_time=1.0, stop="tool_use"),
    call(1.5, 70, [1, 2, 3, 4], api_time=0.5, input_types=["tool_result"], stop="tool_use"),
    agent(2.2, call(0.0, 33, [50, 51], api_time=0.3), call(0.4, 50, [50, 51, 52], api_time=0.2)),
    agent(2.3, call(0.0, 20, [60], api_time=0.3)),
    call(3.0, 90, [1, 2, 3, 4, 5], api_time=0.3, input_types=["tool_result"], stop="end_turn"),
    call(13.0, 100, [1, 2, 3, 4, 5, 6], api_time=0.3, input_types=["text"]),
)


@pytest.fixture
def file(tmp_path):
    def write(*documents, name="t.jsonl"):
        path = tmp_path / name
        texts = (one if isinstance(one, str) else json.dumps(one) for one in documents)
        path.write_text("\n".join(texts) + "\n")
        return path

    return write


def test_agents_in_parallel_wait_for_one_call_and_the_next_call_for_both(file):
    trace = read_trace(file(SESSION))
    calls = trace.calls
    assert (trace.format, len(trace), trace.skipped, trace.remarks) == ("weka", 7, {}, {})
    assert calls.kinds == ("main", "main", *["subagent"] * 3, "main", "main")
    assert calls.after == ((1,), (1,), (1,), (2,), (2,), (1, 2), (1,))
    waits = [round(float(ns) / S, 9) for ns in calls.tool_ns]
    assert waits == [0, 0.5, 0.2, 0.3, 0.1, 0.2, 0]
    assert (calls.think_ns / S).tolist() == [0] * 6 + [9.7]


def test_prompts_begin_as_their_blocks_say(file):
    calls = read_trace(file(SESSION)).calls
    assert calls.base.tolist() == [0, 1, 0, 0, 2, 4, 1]
    assert calls.kept.tolist() == [0, 32, 0, 0, 32, 64, 80]


def test_blocks_are_of_one_conversation_unless_they_are_global(file):
    one = conversation(call(0.0, 32, [1, 2]), hash_id_scope="local")
    two = conversation(call(1.0, 48, [1, 2, 3]))
    assert read_trace(file(one, two)).calls.kept.tolist() == [0, 0]
    both = [{**document, "hash_id_scope": "global"} for document in (one, two)]
    assert read_trace(file(*both)).calls.kept.tolist() == [0, 32]
    workload = generate(TraceReplay(str(file(*both)), unique_sessions=True), 9, 1, TextMaker(words))
    assert workload.requested.numbers["kept"].tolist() == [0, 0]


def test_a_prompt_begins_with_one_of_its_own_session_where_another_has_no_more_of_it(file):
    """The second session begins as the first one and goes on; its last call has more of the first."""
    first = conversation(call(0.0, 48, [1, 2, 3]), hash_id_scope="global")
    second = conversation(
        call(1.0, 32, [1, 2]),
        call(2.0, 64, [1, 2, 8, 9]),
        call(3.0, 64, [1, 2, 3, 4]),
        hash_id_scope="global",
    )
    trace = read_trace(file(first, second))
    assert trace.calls.base.tolist() == [0, 1, 1, 3]
    assert trace.calls.kept.tolist() == [0, 32, 32, 48]
    for alone in (
        with_sessions(trace, None, unique=True).calls.only(np.arange(1, 3)),
        window(trace, 0.5).calls,
    ):
        assert alone.kept.tolist()[:2] == [0, 32]


def test_calls_share_with_each_other_what_they_shared_with_one_that_is_left_out(file):
    """Both later sessions begin as the first one, and their second calls have more of it than their first."""
    first = conversation(call(0.0, 80, [1, 2, 3, 4, 5]), hash_id_scope="global")
    second, third = (
        conversation(
            call(start, 32, [1, 2]),
            call(start + 1, 64, [1, 2, 3, own]),
            call(start + 2, 80, [1, 2, 3, 4, own + 1]),
            hash_id_scope="global",
        )
        for start, own in ((5.0, 20), (10.0, 30))
    )
    trace = read_trace(file(first, second, third))
    assert trace.calls.kept.tolist() == [0, 32, 48, 64, 32, 48, 64]
    unique = with_sessions(trace, None, unique=True).calls
    assert (unique.base.tolist(), unique.kept.tolist()) == ([0, 0, 1, 1, 0, 1, 1], [0, 0, 32, 48, 0, 32, 48])
    rest = window(trace, 0.5).calls
    assert (rest.base.tolist(), rest.kept.tolist()) == ([0, 1, 1, 3, 3, 3], [0, 32, 48, 32, 48, 64])
    last = window(trace, 9.5).calls
    assert (last.base.tolist(), last.kept.tolist()) == ([0, 1, 1], [0, 32, 48])


def test_an_agent_whose_calls_come_later_than_the_next_call_of_its_own_begins_as_that_one(file):
    """The file has the agent's calls first, and the blocks that they share first came with the other call."""
    started = agent(1.0, call(4.0, 48, [1, 2, 3], api_time=0.5))
    trace = read_trace(file(conversation(call(0.0, 16, [9]), started, call(2.0, 64, [1, 2, 3, 4]))))
    assert trace.input_tokens.tolist() == [16, 64, 48]
    assert (trace.calls.base.tolist(), trace.calls.kept.tolist()) == ([0, 0, 1], [0, 0, 48])


# Paths in a tree of blocks, whose ids name all blocks before them, and when each session begins.
trees = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.lists(st.integers(1, 2), max_size=4), min_size=1, max_size=4)),
    min_size=1,
    max_size=4,
)


@given(trees, st.booleans(), st.floats(0, 3))
def test_a_call_shares_as_much_as_its_blocks_do_with_any_call_before_it(
    tmp_path_factory, tree, unique, start_s
):
    names: dict[tuple[int, ...], int] = {}
    documents, blocks = [], []
    for begun, paths in tree:
        calls = []
        for turn, path in enumerate(paths):
            ids = [names.setdefault(tuple(path[:end]), len(names)) for end in range(1, len(path) + 1)]
            # A part of a block of its own, and the place of its blocks in the list.
            calls.append(call(begun + turn, 16 * len(ids) + 1, ids, out=1 + len(blocks)))
            blocks.append(ids)
        documents.append(json.dumps(conversation(*calls, hash_id_scope="global")))
    path = tmp_path_factory.mktemp("tree") / "t.jsonl"
    path.write_text("\n".join(documents))
    whole = read_trace(path)
    last_begun_s = float(whole.at_ns[whole.calls.turn == 0].max()) / S
    trace = with_sessions(window(whole, min(start_s, last_begun_s)), None, unique=unique)
    mine = [blocks[output - 1] for output in trace.output_tokens.tolist()]
    session = trace.calls.session.tolist()
    for row, kept in enumerate(trace.calls.kept.tolist()):
        before = [other for other in range(row) if not unique or session[other] == session[row]]
        assert kept == 16 * max((len({*mine[row]} & {*mine[other]}) for other in before), default=0)


def test_sessions_begin_in_the_order_of_their_times_and_a_later_one_gives_nothing_to_an_earlier(file):
    late = conversation(call(5.0, 32, [1, 2]), hash_id_scope="global")
    early = conversation(call(1.0, 48, [1, 2, 3]), hash_id_scope="global")
    trace = read_trace(file(late, early))
    assert (trace.at_ns / S).tolist() == [0, 4]
    assert trace.input_tokens.tolist() == [48, 32]
    assert trace.calls.kept.tolist() == [0, 32]


@pytest.mark.parametrize(("ids", "kept"), [([9, 8, 3], 0), ([1, 8, 3], 16), ([1, 2, 2], 32)])
@pytest.mark.parametrize("scope", ["local", "global"])
def test_a_block_that_follows_another_one_elsewhere_is_not_shared_and_counted(file, ids, kept, scope):
    """A block is that of all blocks before it: after others it cannot be the same text."""
    given = call(0, 48, [1, 2, 3], api_time=1), call(9, 48, ids, api_time=1), call(19, 48, [1, 2, 3])
    trace = read_trace(file(conversation(*given, hash_id_scope=scope)))
    assert trace.calls.kept.tolist() == [0, kept, 48]
    moved = "calls with a block that follows another one elsewhere: they share what is before it"
    assert (trace.skipped, trace.remarks) == ({}, {moved: 1})


def test_a_think_time_of_the_file_goes_before_a_computed_one(file):
    trace = read_trace(file(conversation(call(0, 16, [1]), call(9, 32, [1, 2], think_time=2.5))))
    assert (trace.calls.think_ns / S).tolist() == [0, 2.5]
    assert trace.remarks == {}


def test_without_a_duration_the_whole_time_to_the_next_call_is_waited_and_counted(file):
    trace = read_trace(file(conversation(call(0, 16, [1]), call(9, 32, [1, 2]))))
    assert (trace.calls.think_ns / S).tolist() == [0, 9]
    assert trace.remarks == {"calls without a duration: the whole time to the next one is waited": 1}


def test_times_of_an_agent_may_be_those_of_the_session(file):
    absolute = agent(2.2, call(2.2, 33, [50, 51], api_time=0.3), call(2.6, 50, [50, 51, 52]))
    found = read_trace(file(conversation(call(0.0, 40, [1, 2], api_time=1.0), absolute)))
    assert (found.at_ns / S).tolist() == [0, 2.2, 2.6]


def test_a_tokenizer_that_counts_across_spaces_is_off_by_a_part_of_a_token_for_each_text(file):
    prompts = whole(generate(TraceReplay(str(file(SESSION))), 100, 1, TextMaker(letters)))
    assert np.abs(np.array(letters(prompts)) - [40, 70, 33, 20, 50, 90, 100]).max() <= 5


@pytest.mark.parametrize("tokenizer", [words, merging])
def test_prompts_are_of_exactly_the_traces_length_and_begin_as_it_says(file, tokenizer):
    workload = generate(TraceReplay(str(file(SESSION))), 100, 1, TextMaker(tokenizer))
    prompts = whole(workload)
    assert tokenizer(prompts) == [40, 70, 33, 20, 50, 90, 100]
    for text, base, chars in zip(prompts, *links(workload), strict=True):
        assert text[:chars] == prompts[prompts.index(text) - base][:chars]
    assert reusable(workload.requested)[0].tolist() == [0, 32, 0, 0, 32, 64, 80]
    assert workload.requested.waits_ns().tolist()[5] == 0.2 * S
    again = RequestTable.from_json(workload.requested.as_json())
    assert [tuple(after) for after in again.after] == list(workload.requested.after)
    assert (again.numbers == workload.requested.numbers).all()


def links(workload):
    calls = [request.call for request in workload.requests]
    return [one.base for one in calls], [one.kept_bytes for one in calls]


def whole(workload):
    """Prompts as they are put together."""
    prompts = []
    for request in workload.requests:
        front = (
            prompts[len(prompts) - request.call.base][: request.call.kept_bytes] if request.call.base else ""
        )
        prompts.append(front + request.messages[0][1])
    return prompts


def test_a_window_takes_whole_sessions_and_a_limit_ends_them_before_longer_prompts(file):
    path = file(*(conversation(*SESSION["requests"]) for _ in range(3)))
    assert len(window(read_trace(path), max_requests=15)) == 14
    workload = generate(TraceReplay(str(path), max_input_tokens=60, max_wait_s=0.1), 100, 1, TextMaker(words))
    assert workload.requested.numbers["turn"].tolist() == [0, 0, 0]
    with pytest.raises(SpecError, match="no session begins with a prompt of 30 tokens or fewer"):
        generate(TraceReplay(str(path), max_input_tokens=30), 100, 1, TextMaker(words))


def test_waits_above_a_limit_are_cut(file):
    workload = generate(TraceReplay(str(file(SESSION)), max_wait_s=0.25), 100, 1, TextMaker(words))
    assert (workload.requested.waits_ns() / S).round(3).tolist() == [0, 0.25, 0.2, 0.25, 0.1, 0.2, 0.25]


GOOD = [call(i, 32, [1, 2], api_time=0.1) for i in range(8)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (call(-1, 32, [1, 2]), "a negative time"),
        (call(1, -5, []), "a negative length"),
        (call(1, 32, [1, 2], out=0), "no output token (a request that failed when it was recorded)"),
        (call(1, 32, [1]), "blocks that do not add up to the input"),
        (call(1, 32, [1, "x"]), "hash_ids that are not a list of whole numbers"),
        (call(1, 32, [1, 2], api_time=-3), "a negative time"),
        (call(1, 32, [1, 2], think_time=-3), "a negative time"),
        ({"t": 1, "type": "s"}, "a value is missing"),
        (agent(1), "an agent without calls"),
        ([], "not a JSON object"),
        (7, "not a JSON object"),
    ],
)
def test_a_call_that_cannot_be_is_left_out_and_counted(file, bad, reason):
    trace = read_trace(file(conversation(*GOOD, bad)))
    assert (len(trace), trace.skipped) == (8, {reason: 1})


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "not JSON"),
        (json.dumps(conversation(*GOOD))[:-40], "not JSON"),
        ("[[[]]]", "not a JSON object"),
        (conversation(*GOOD, size=0), "a block_size that is not a whole number above 0"),
        (conversation(), "a session without a usable call"),
        ({"block_size": 16, "requests": 3}, "requests that are not a list"),
    ],
)
def test_a_session_that_cannot_be_is_left_out_and_counted(file, bad, reason):
    trace = read_trace(file(conversation(*GOOD), bad))
    assert (len(trace), trace.skipped) == (8, {reason: 1})


def test_agents_inside_agents_without_end_are_left_out(file):
    inner = [call(0, 16, [1])]
    for _ in range(40):
        inner = [agent(0, *inner), call(1, 16, [1])]
    trace = read_trace(file(conversation(*GOOD, *inner)))
    assert list(trace.skipped) == ["agents inside agents, more than 20 deep"]


def test_a_file_of_which_most_is_unusable_is_one_error(file):
    with pytest.raises(SpecError, match="9 of 10 lines are not usable as weka; 9: a negative time"):
        read_trace(file(conversation(GOOD[0], *(call(-1, 32, [1, 2]) for _ in range(9)))))


def test_a_document_over_several_lines_and_a_compressed_file_are_read(file, tmp_path):
    path = file(json.dumps(SESSION, indent=1))
    assert len(read_trace(path)) == 7
    assert len(read_trace(file(json.dumps([SESSION, SESSION], indent=1)))) == 14
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(SESSION).encode()))
    assert len(read_trace(packed)) == 7
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(SpecError, match="cannot be read"):
        read_trace(packed)
    damaged = bytearray(gzip.compress(json.dumps(SESSION).encode()))
    damaged[10] ^= 0b110  # the kind of the first block
    packed.write_bytes(damaged)
    with pytest.raises(SpecError, match="cannot be read"):
        read_trace(packed)


def test_a_document_that_is_too_long_is_one_error(file, monkeypatch):
    monkeypatch.setattr("harness.workload.traces.documents.MOST_BYTES", 100)
    with pytest.raises(SpecError, match="has a document of more than 0 MiB"):
        read_trace(file(SESSION))
    with pytest.raises(SpecError, match="has a document of more than 0 MiB"):
        read_trace(file(json.dumps(SESSION, indent=1)))


@st.composite
def threads(draw, levels=2):
    items = []
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, 9))
        if levels and draw(st.booleans()):
            inner = draw(threads(levels - 1))
            items.append(Thread(inner.items, min(start, inner.start_s), inner.end_s))
        else:
            items.append(Call(start, start + draw(st.integers(0, 4)), 1, 1))
    return Thread.of(items)


@given(threads())
def test_a_call_comes_after_all_that_it_waits_for_and_those_had_ended(thread):
    calls = layout.lay_out(thread)
    assert [one.start_s for one in calls] == sorted(one.start_s for one in calls)
    place = {id(one): number for number, one in enumerate(calls)}
    for one in calls:
        for before in one.waits_for:
            assert place[id(before)] < place[id(one)]
            assert before.end_s <= one.start_s


def test_calls_one_after_another_are_a_chain_however_many():
    calls = [Call(i, i + 0.5, 1, 1) for i in range(500)]
    laid = layout.lay_out(Thread.of(list(calls)))
    assert all(second.waits_for == (first,) for first, second in pairwise(laid))


def test_a_session_is_of_its_own_times(file):
    days = [conversation(call(t, 16, [1])) for t in (0, 1, 2, 4e7)]
    trace = read_trace(file(*days))
    assert trace.skipped == {"a time more than 400 days from the others": 1}
    assert np.array_equal(trace.calls.session, [0, 1, 2])
    with pytest.raises(SpecError, match=r"2 of 2 lines are not usable .* 400 days from the others"):
        read_trace(file(*(conversation(call(t, 16, [1])) for t in (0, 1e9))))


def test_a_call_of_no_possible_time_is_left_out_of_its_session(file):
    far = [agent(1, call(1e13, 16, [1])), agent(1, call(10**400, 16, [1])), call(1e13, 16, [1])]
    trace = read_trace(file(conversation(*far, *(call(t, 16, [1]) for t in range(4)))))
    assert (trace.at_ns / S).tolist() == [0, 1, 2, 3]
    far_away, no_number = "a time more than 400 days from the others", "a value is not a number"
    assert trace.skipped == {no_number: 1, "an agent without calls": 1, far_away: 2}
