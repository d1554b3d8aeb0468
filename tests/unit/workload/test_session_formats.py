"""Sessions of TraceLab and OpenTelemetry: the same trees from rounds and from spans."""

import gzip
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.workload.traces import read_trace

S = 1_000_000_000


@pytest.fixture
def file(tmp_path):
    def write(*documents):
        path = tmp_path / "t.jsonl"
        path.write_text("\n".join(json.dumps(one) for one in documents) + "\n")
        return path

    return write


def stamp(second):
    return f"2026-06-01T05:{int(second) // 60:02}:{second % 60:06.3f}Z"


def round_of(session, at, ends, given, prefix, *, brought="tool_result", **more):
    events = [
        {"event_type": brought, "timestamp": stamp(at - 0.5)},
        {"event_type": brought, "timestamp": stamp(at)},
        {"event_type": "text", "timestamp": stamp(ends - 0.1)},
        {"event_type": "tool_call", "timestamp": stamp(ends)},
        {"event_type": "usage_report"},
    ]
    return {
        "session_id": session,
        "round_index": 0,
        "input_tokens_total": given,
        "prefix_tokens": prefix,
        "newly_append_tokens": given - prefix,
        "output_tokens": 7,
        "timing_events": events,
        **more,
    }


def test_rounds_of_tracelab_leave_when_the_last_of_what_they_bring_is_there(file):
    trace = read_trace(
        file(
            round_of("b", 40, 41, 100, 60, brought="user_message"),
            round_of("a", 10, 12, 500, 400, brought="user_message"),
            round_of("a", 13, 14, 900, 505),
            round_of("a", 20, 22, 700, 80, brought="user_message"),
        )
    )
    calls = trace.calls
    assert trace.format == "tracelab"
    assert (trace.at_ns / S).tolist() == [0, 3, 10, 30]
    assert calls.session.tolist() == [0, 0, 0, 1]
    assert (calls.tool_ns / S).tolist() == [0, 1, 0, 0]
    assert (calls.think_ns / S).tolist() == [0, 0, 6, 0]
    assert calls.kept.tolist() == [0, 500, 80, 0]  # never more than the prompt before held
    assert trace.remarks == {"first calls whose prompt was in a cache before: it is their own here": 2}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"timing_events": []}, "a round without a time"),
        ({"timing_events": 3}, "timing_events that are not a list"),
        ({"timing_events": [{"event_type": "text", "timestamp": "soon"}]}, "a time that is not a date"),
        ({"timing_events": [{"event_type": "text"}]}, "a value is missing"),
        ({"session_id": 4}, "a session_id that is not a text"),
        ({"prefix_tokens": -1}, "prefix_tokens that are not a whole number"),
        ({"input_tokens_total": "many"}, "a value is not a number"),
        ({"output_tokens": 0}, "no output token (a request that failed when it was recorded)"),
    ],
)
def test_a_round_that_cannot_be_is_left_out_and_counted(file, change, reason):
    rounds = [round_of("a", 10 * i, 10 * i + 1, 100, 0) for i in range(1, 3)]
    trace = read_trace(file(*rounds, {**rounds[0], "session_id": "b", **change}))
    assert (len(trace), trace.skipped) == (2, {reason: 1})


def test_a_call_far_from_the_others_of_its_session_is_left_out(file):
    """A date of zero, as some programs write where they have none."""
    unset = {"timing_events": [{"event_type": "user_message", "timestamp": "0001-01-01T00:00:00Z"}]}
    rounds = [round_of("a", at, at + 1, 100, 0) for at in (10, 20, 30)]
    trace = read_trace(file(rounds[0] | unset, *rounds))
    assert (trace.at_ns / S).tolist() == [0, 10, 20]
    assert trace.skipped == {"a time more than 400 days from the others": 1}


def span(name, start, end, parent="", operation="chat", **attributes):
    """In OTLP's JSON, as a collector writes it to a file."""
    usage = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 9} if operation == "chat" else {}
    typed = {
        key: {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
        for key, value in {"gen_ai.operation.name": operation, **usage, **attributes}.items()
    }
    return {
        "traceId": "t1",
        "spanId": name,
        "parentSpanId": parent,
        "startTimeUnixNano": str(int(start * S)),
        "endTimeUnixNano": str(int(end * S)),
        "attributes": [{"key": key, "value": value} for key, value in typed.items()],
    }


def exported(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


TREE = [
    span("agent", 0, 9.5, operation="invoke_agent"),
    span("c1", 0.25, 1, "agent", **{"gen_ai.usage.input_tokens": 100}),
    span("tool", 1, 1.5, "agent", operation="execute_tool"),
    span("c2", 1.75, 2, "agent", **{"gen_ai.usage.input_tokens": 150}),
    span("task1", 2, 5, "agent", operation="execute_tool"),
    span("sub", 2.5, 5, "task1", operation="invoke_agent"),
    span("s1", 2.5, 3, "sub", **{"gen_ai.usage.input_tokens": 40}),
    span("s2", 3.5, 5, "sub", **{"gen_ai.usage.cache_read.input_tokens": 16}),
    span("task2", 2, 4, "agent", operation="execute_tool"),
    span("s3", 2.25, 4, "task2"),
    span("c3", 5.5, 6, "agent", **{"gen_ai.usage.input_tokens": 200}),
    span("c4", 8, 9, "agent", **{"gen_ai.usage.input_tokens": 120}),
]


@pytest.mark.parametrize("form", ["one document", "a line each", "spans by line", "plain spans"])
def test_spans_become_a_tree_of_calls(file, form):
    plain = [
        {
            "trace_id": "t1",
            "span_id": one["spanId"],
            "parent_span_id": one["parentSpanId"] or None,
            "start_time": stamp(int(one["startTimeUnixNano"]) / S),
            "end_time": stamp(int(one["endTimeUnixNano"]) / S),
            "attributes": {entry["key"]: next(iter(entry["value"].values())) for entry in one["attributes"]},
        }
        for one in TREE
    ]
    documents = {
        "one document": [exported(*TREE)],
        "a line each": [exported(one) for one in reversed(TREE)],
        "spans by line": [{"session_id": "x", "spans": TREE}],
        "plain spans": plain,
    }
    trace = read_trace(file(*documents[form]))
    calls = trace.calls
    assert (trace.format, trace.skipped) == ("otel", {})
    assert trace.input_tokens.tolist() == [100, 150, 100, 40, 100, 200, 120]  # c1 c2 s3 s1 s2 c3 c4
    assert calls.kinds == ("main", "main", "subagent", "subagent", "subagent", "main", "main")
    assert calls.after == ((1,), (1,), (1,), (2,), (1,), (1, 3), (1,))
    assert (calls.tool_ns / S).tolist() == [0, 0.75, 0.25, 0.5, 0.5, 0.5, 0]
    assert (calls.think_ns / S).tolist() == [0] * 6 + [2]
    assert calls.kept.tolist() == [0, 100, 0, 0, 16, 150, 0]


def test_what_is_wrong_with_spans_is_counted(file):
    circle = [span("x", 1, 2, "y"), span("y", 1, 2, "x", operation="invoke_agent")]
    failed = {**span("f", 1, 2), "status": {"code": 2}}
    backwards = span("b", 3, 2)
    lost = span("l", 20, 21, "nowhere")
    twice = span("c1", 4, 5)
    trace = read_trace(file(exported(*TREE, *circle, failed, backwards, lost, twice), exported(7)))
    assert trace.skipped == {
        "calls in spans that are inside each other": 1,
        "a call that failed when it was recorded": 1,
        "a negative time": 1,
        "a span_id that an earlier span has": 1,
        "not a JSON object": 1,
    }
    assert trace.remarks["spans whose parent is not in the file: they stand at the top of their session"] == 1
    assert len(trace) == 8


def test_cached_tokens_below_zero_are_not_known(file):
    """Recorders write -1 so."""
    calls = [span(f"c{i}", 10 * i, 10 * i + 5, **{"gen_ai.usage.cached_tokens": -1}) for i in range(3)]
    trace = read_trace(file(exported(*calls)))
    assert (trace.calls.kept.tolist(), trace.skipped) == ([0, 100, 100], {})
    assert [count for text, count in trace.remarks.items() if "without cached tokens" in text] == [2]


def test_an_agents_sum_of_tokens_is_no_call_and_a_servers_span_no_second_one(file):
    def agent(tokens, operation):
        usage = {"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 27}
        return span("agent", 0, 40, operation=operation, **usage)

    steps = [span(f"c{i}", 10 * i, 10 * i + 5, "agent") for i in range(3)]
    served = [span(f"s{i}", 10 * i + 1, 10 * i + 4, f"c{i}") for i in range(3)]
    trace = read_trace(file(exported(agent(300, None), *steps, *served)))
    assert (trace.input_tokens.tolist(), trace.skipped) == ([100] * 3, {})
    assert trace.calls.kept.tolist() == [0, 100, 100]
    summed = "spans with the tokens of several calls inside them: only these calls are replayed"
    assert trace.remarks[summed] == 1
    trace = read_trace(file(exported(agent(250, "chat"), *steps)))
    assert trace.input_tokens.tolist() == [250]
    assert trace.remarks == {"calls inside another call, whose tokens are not their sum: left out": 3}


def test_spans_inside_spans_without_end_are_read(file):
    """Deeper than a function may call itself."""
    count = sys.getrecursionlimit() + 100
    deep = [span("s0", 0, 1)]
    deep += [span(f"s{i}", i, i + 1, f"w{i - 1}") for i in range(1, count)]
    deep += [
        span(f"w{i}", i, 2 * count, f"w{i - 1}" if i else "", operation="invoke_agent") for i in range(count)
    ]
    trace = read_trace(file(exported(*deep)))
    assert len(trace) == count
    assert trace.calls.turn.tolist() == list(range(count))


def test_a_file_without_a_call_is_one_error(file):
    with pytest.raises(SpecError, match="holds no request"):
        read_trace(file(exported(TREE[0])))
    with pytest.raises(SpecError, match="not usable as weka"):
        read_trace(file(exported(*TREE)), "weka")


SESSION = {"block_size": 4, "requests": [{"t": 0, "in": 4, "out": 4, "hash_ids": [1], "api_time": 1}]}


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_sessions_come_from_a_pipe_where_their_form_is_named(pack):
    ends = os.pipe()
    with os.fdopen(ends[0], "rb") as out, os.fdopen(ends[1], "wb") as into:
        into.write(pack(json.dumps(SESSION).encode()))
        into.close()
        assert len(read_trace(Path(f"/dev/fd/{out.fileno()}"), "weka")) == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_of_sessions_is_read_to_a_limit_and_a_file_to_its_end(monkeypatch, tmp_path, pack):
    """Only the pipe may have no end: no line of it is long."""
    line = json.dumps(SESSION).encode() + b"\n"
    monkeypatch.setattr("harness.workload.traces.documents.MOST_BYTES", 2 * len(line))
    path = tmp_path / "t.jsonl"
    path.write_bytes(pack(3 * line))
    assert len(read_trace(path, "weka")) == 3
    ends = os.pipe()
    with os.fdopen(ends[0], "rb") as out, os.fdopen(ends[1], "wb") as into:
        into.write(pack(3 * line))
        into.close()
        pipe = Path(f"/dev/fd/{out.fileno()}")
        with pytest.raises(SpecError, match=f"{pipe}: is a pipe with more than"):
            read_trace(pipe, "weka")


def test_a_packed_file_of_sessions_is_unpacked_to_a_limit(monkeypatch, tmp_path):
    """Some kilobytes can unpack without end."""
    monkeypatch.setattr("harness.workload.traces.documents.MOST_BYTES", 1 << 20)
    line = json.dumps(SESSION | {"note": 10_000 * "x"}).encode() + b"\n"
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(200 * line))
    with pytest.raises(SpecError, match=rf"{path}: unpacks to more than 1 MiB"):
        read_trace(path, "weka")


def test_the_sum_of_a_file_is_over_all_its_bytes_also_behind_a_line_that_was_cut(tmp_path):
    data = "\n".join(['{"block_size": 4, "requ', *[json.dumps(SESSION)] * 2, ""]).encode()
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    trace = read_trace(path, "weka")
    assert trace.skipped == {"not JSON": 1}
    assert trace.sha256 == hashlib.sha256(data).hexdigest()
