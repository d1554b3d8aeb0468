"""What a replay kept of a trace, worked out by hand on a few requests."""

import json
from pathlib import Path

import pytest

from tests.bench.replays import Asked, kept, mooncake, weka
from tests.factories.replays import write_mooncake

MS = 1_000_000


def record(received_ms, answer, ended_ms=0):
    end_ns = ended_ms * MS
    return {
        "received_ns": received_ms * MS,
        "planned_tokens": answer,
        "ended_ns": end_ns,
        "write_ns": [end_ns],
    }


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lateness_counts_from_the_request_that_was_least_late():
    asked = [Asked(0.0, 10, 5, 0), Asked(1.0, 10, 6, 0), Asked(2.0, 10, 7, 0)]
    result = kept(asked, [record(703, 5), record(1700, 6), record(2710, 7)])
    assert result.late == pytest.approx([3, 0, 10])
    assert (result.others, result.early, result.wait_errors) == (0, 0, [])


def test_requests_are_known_by_their_answers_and_equal_ones_by_their_order():
    asked = [Asked(0.0, 10, 5, 0), Asked(1.0, 20, 5, 0)]
    records = [record(0, 9), record(100, 5), record(1100, 5), record(1200, 5)]
    result = kept(asked, records)
    assert [(one.prompt, found["received_ns"] / MS) for one, found in result.found] == [(10, 100), (20, 1100)]
    assert result.others == 2, "of another length, and one more than the trace has"


def test_a_call_waits_for_the_agents_that_were_started_before_it(tmp_path):
    def call(at_s, tokens, answer, ids):
        return {"t": at_s, "type": "s", "in": tokens, "out": answer, "hash_ids": ids, "api_time": 0.5}

    agents = [
        {"t": 0.6, "type": "subagent", "requests": [call(0.0, 32, 2, [7, 8])]},
        {"t": 0.6, "type": "subagent", "requests": [call(0.0, 32, 3, [7, 9]), call(0.7, 32, 4, [7, 9])]},
    ]
    requests = [call(0.0, 40, 1, [1, 2]), *agents, call(2.0, 48, 5, [1, 2, 3])]
    asked = weka(lines(tmp_path / "f", {"block_size": 16, "requests": requests}))
    by_answer = {one.answer: one for one in asked}
    assert {n: [before.answer for before in one.after] for n, one in by_answer.items()} == {
        1: [], 2: [1], 3: [1], 4: [3], 5: [2, 4],
    }  # fmt: skip
    assert {n: round(one.wait_s, 3) for n, one in by_answer.items()} == {1: 0, 2: 0.1, 3: 0.1, 4: 0.2, 5: 0.2}
    assert {n: one.shared for n, one in by_answer.items()} == {1: 0, 2: 0, 3: 16, 4: 32, 5: 32}

    records = [record(0, 1, 100), record(200, 2, 300), record(250, 3, 300), record(550, 4, 900)]
    late = kept(asked, [*records, record(1110, 5)])
    assert (late.early, late.late) == (0, [0])
    assert late.wait_errors == pytest.approx([0, 50, 50, 10])
    assert kept(asked, [*records, record(898, 5)]).early == 1
    unknown = kept(asked, [*records[:3], record(1110, 5)])
    assert (unknown.early, len(unknown.wait_errors)) == (0, 2), "one that it waits for was not found"


def test_the_trace_made_here_shares_whole_blocks_and_has_an_answer_of_each_length(tmp_path: Path):
    asked = mooncake(write_mooncake(tmp_path / "f", 60, seed=3))
    assert len({one.answer for one in asked}) == len(asked) == 60
    assert [one.at_s for one in asked] == sorted(one.at_s for one in asked)
    assert 0 < sum(one.shared for one in asked) < sum(one.prompt for one in asked)
    assert all(one.shared % 512 == 0 and one.shared <= one.prompt for one in asked)
