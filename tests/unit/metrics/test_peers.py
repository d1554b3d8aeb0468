"""Other tools' figures of a stream that can be worked out on paper.

One answer: intended at 0, sent at 10, role chunk at 30, text at 110, 130, 150 (5 tokens), finish 160, [DONE]
170.
"""

import re
import tracemalloc
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from harness.metrics.peers import READ_IN, TOOLS, changed, recompute, tool_named
from harness.metrics.peers.definitions import CHANGED, Measure
from harness.model import CellResult
from harness.records.layout import EVENT_DTYPE, EventKind, Outcome, Phase, Records
from tests.factories.recorded import MS, facts, records

STAMPS = [
    (EventKind.OTHER, 30),
    (EventKind.TEXT, 110),
    (EventKind.TEXT, 130),
    (EventKind.TEXT, 150),
    (EventKind.OTHER, 160),
    (EventKind.USAGE, 165),
    (EventKind.DONE, 170),
]


def stream(*, count=1, failed=0):
    made = records(
        *({"intended": 0, "sent": 10, "texts": [110, 130, 150], "tokens": 5} for _ in range(count)),
        *({"intended": 0, "sent": 10, "outcome": Outcome.HTTP_ERROR} for _ in range(failed)),
    )
    made.requests["connect_ns"] = 4 * MS
    made.requests["end_ns"] = 180 * MS
    events = [(seq, kind, 0, 1, at * MS) for seq in range(count) for kind, at in STAMPS]
    return Records(made.requests, np.array(events, EVENT_DTYPE), made.texts, made.finish_reasons, made.errors)


def said(tool, made=None, handshake=None):
    cell = facts(client__connect_ms={"p50": handshake})
    view = recompute([tool_named(tool)], made or stream(), cell)[tool]
    return {(figure.measure, figure.statistic): figure.value for figure in view.figures}, view.evidence


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        # connecting counts, the role chunk ends TTFT, the finish chunk ends the answer
        ("vllm", {"TTFT": 24, "ITL": 130 / 4, "TPOT": 130 / 4, "E2E": 154}),
        # from 0.33 on neither the role chunk nor the finish chunk counts
        ("vllm@0.33", {"TTFT": 104, "ITL": 20, "TPOT": 40 / 4, "E2E": 144}),
        # a handshake of 6 ms although the connection took 4; the last line ends the answer
        ("sglang", {"TTFT": 106, "ITL": 20, "TPOT": 60 / 4, "E2E": 166}),
        ("aiperf", {"TTFT": 104, "ITL": 10, "E2E": 144}),
        # connecting is left out; TPOT has the TTFT in it; the end of the stream ends the answer
        ("guidellm", {"TTFT": 100, "ITL": 10, "TPOT": 28, "E2E": 170}),
        # five tokens in three events: two gaps of 20 and two of 0
        ("inference-perf", {"TTFT": 104, "ITL": 10, "TPOT": 10, "E2E": 174}),
    ],
)
def test_means(tool, expected):
    found, _ = said(tool, handshake=6.0)
    assert {measure: found[measure, "mean"] for measure in expected} == pytest.approx(expected)
    assert (("TPOT", "mean") in found) == ("TPOT" in expected)


def test_rates_are_over_the_whole_run():
    found, _ = said("vllm", stream(count=2))
    assert found["output", ""] == pytest.approx(10 / 0.174)
    assert found["requests", ""] == pytest.approx(2 / 0.174)
    # its run ends with the last text, not with the stream
    assert said("aiperf", stream(count=2))[0]["requests", ""] == pytest.approx(2 / 0.144)


@pytest.mark.parametrize("measure", get_args(Measure))
def test_tools_that_mean_the_same_in_words_give_the_same_figures(measure):
    """Imported figures of equal words are compared."""
    made = stream(count=3, failed=1)
    made.requests["end_ns"][-1] = 900 * MS  # the failure ends last
    made.requests["output_tokens"][1:3] = [1, 0]
    made.events["stamp_ns"][made.events["seq"] == 1] += 40 * MS
    by_words = {}
    for tool in (*TOOLS.values(), *chain.from_iterable(CHANGED.values())):
        if measure in tool.why:
            found = recompute([tool], made, facts(client__connect_ms={"p50": 6.0}))[tool.name]
            figures = {each.statistic: each.value for each in found.figures if each.measure == measure}
            assert by_words.setdefault(tool.why[measure], figures) == figures, tool.name


@pytest.mark.parametrize("tool", ["vllm", "aiperf"])
def test_rates_count_the_answers_of_users_who_did_not_hang_up_in_time(tool):
    """They would be requests as any other of a tool without such users; times are of the measured alone."""
    made = stream(count=2)
    made.requests["phase"][1] = Phase.IMPATIENT
    every, found = said(tool, stream(count=2))[0], said(tool, made)[0]
    assert found["requests", ""] == every["requests", ""]
    assert found["output", ""] == every["output", ""]
    made.requests["outcome"][1] = Outcome.ABANDONED
    assert said(tool, made)[0] == said(tool, stream())[0]


def test_sglang_reads_no_tool_calls():
    """Its client takes stamps of content and reasoning alone; an answer without keeps a TTFT of 0."""
    made = stream(count=2)
    calls = (made.events["seq"] == 1) & (made.events["kind"] == EventKind.TEXT)
    made.events["kind"][calls] = EventKind.TOOL_CALL
    made.events["kind"][3] = EventKind.TOOL_CALL  # the last text of the first answer
    found, _ = said("sglang", made, handshake=6.0)
    assert found["TTFT", "mean"] == pytest.approx((106 + 0) / 2)
    assert found["ITL", "mean"] == pytest.approx(20)
    assert found["TPOT", "mean"] == pytest.approx((60 / 4 + 166 / 4) / 2)
    assert said("guidellm", made)[0]["TTFT", "mean"] == pytest.approx(100)


@pytest.mark.parametrize("api", ["responses", "messages"])
def test_events_without_text_are_no_chunks_with_a_choice_in_other_apis(api):
    """vLLM's client of responses takes stamps of text alone."""
    view = recompute([tool_named("vllm")], stream(), facts(request={"api": api}))["vllm"]
    means = {figure.measure: figure.value for figure in view.figures if figure.statistic == "mean"}
    assert means == pytest.approx({"TTFT": 104, "ITL": 20, "TPOT": 40 / 4, "E2E": 144})
    assert "chunks without text" not in view.evidence


def test_guidellm_never_interpolates():
    made = stream(count=4)
    made.requests["first_text_ns"] = np.array([110, 120, 130, 140]) * MS
    assert said("guidellm", made)[0]["TTFT", "p50"] == 110
    assert said("aiperf", made)[0]["TTFT", "p50"] == 119


@pytest.mark.parametrize(
    ("tokens", "mean"),
    [
        (3, 20),  # a token in each event: two gaps of 20
        (4, 40 / 3),  # one of 0 more
        (5, 40 / 4),
        (2, 20),  # fewer than events take none away
    ],
)
def test_inference_perf_counts_a_gap_of_nothing_for_each_token_that_shares_a_chunk(tokens, mean):
    made = stream()
    made.requests["output_tokens"] = tokens
    assert said("inference-perf", made)[0]["ITL", "mean"] == pytest.approx(mean)


def test_inference_perf_counts_shared_chunks_of_each_answer_alone():
    """One answer of 5 tokens in three events, one of 2: 2 gaps of 0 beside four of 20."""
    made = stream(count=2)
    made.requests["output_tokens"] = [5, 2]
    assert said("inference-perf", made)[0]["ITL", "mean"] == pytest.approx(80 / 6)


def test_answers_of_one_token_have_no_first_token_in_inference_perf_alone():
    made = stream(count=2)
    made.requests["output_tokens"] = [5, 1]
    made.requests["first_text_ns"] = np.array([110, 130]) * MS
    assert said("inference-perf", made)[0]["TTFT", "mean"] == 104
    assert said("aiperf", made)[0]["TTFT", "mean"] == 114


def test_guidellm_weighs_answers_by_their_tokens():
    """Of 5 and 2 tokens: gaps of 10 ms four times and of 40 once; per token 28 five times and 70 twice."""
    made = stream(count=2)
    made.requests["output_tokens"] = [5, 2]
    found, _ = said("guidellm", made)
    assert found["ITL", "mean"] == pytest.approx((4 * 10 + 1 * 40) / 5)
    assert found["TPOT", "mean"] == pytest.approx((5 * 28 + 2 * 70) / 7)
    made.requests["last_text_ns"][0] = 510 * MS  # four gaps of 100 ms and one of 40: most are of 100
    assert said("guidellm", made)[0]["ITL", "p50"] == 100


def test_an_answer_of_one_token_has_a_tpot_in_guidellm():
    made = stream(count=2)
    made.requests["output_tokens"] = [5, 1]
    assert said("guidellm", made)[0]["TPOT", "mean"] == pytest.approx((5 * 28 + 140) / 6)


def test_failed_requests_are_left_out_and_counted():
    found, evidence = said("vllm", stream(count=2, failed=3))
    assert found["TTFT", "p99"] == 24
    assert evidence["failed requests"] == "3"
    assert evidence["chunks without text"].startswith("2 of 2 answers began with one, 80 ms")


@pytest.mark.parametrize(
    ("ahead_ms", "words"), [(80, "80 ms"), (0.5, "0.5 ms"), (1234, "1234 ms"), (0, None)]
)
def test_a_chunk_without_text_is_told_however_soon_the_text_follows(ahead_ms, words):
    made = stream()
    made.requests["first_text_ns"] = (30 + ahead_ms) * MS
    told = words and f"1 of 1 answers began with one, {words} before their text (median)"
    assert said("vllm", made)[1].get("chunks without text") == told


@pytest.mark.parametrize(
    ("tool", "measure", "value"),
    [
        ("vllm", "TPOT", 130),
        ("sglang", "TPOT", 60),
        ("aiperf", "ITL", 40),
        ("guidellm", "ITL", 40),
        ("inference-perf", "TPOT", 40),
    ],
)
def test_time_between_tokens_is_of_answers_from_two_tokens_on(tool, measure, value):
    made = stream(count=2)
    made.requests["output_tokens"] = [2, 1]
    found, _ = said(tool, made)
    assert (found[measure, "mean"], found[measure, "p99"]) == (value, value)
    made.requests["output_tokens"] = 1
    assert said(tool, made)[0][measure, "mean"] is None


def test_what_makes_the_difference_is_told_by_its_name():
    _, evidence = said("vllm", stream(), handshake=6.0)
    assert evidence == {
        "chunks without text": "1 of 1 answers began with one, 80 ms before their text (median)",
        "intended to actual send": "10 ms (median)",
        "last text to end of stream": "30 ms (median)",
        "tokens per text event": "1.67",
        "TCP handshake": "6 ms (median)",
    }


@pytest.mark.parametrize(
    ("tool", "start", "slots", "usage", "words"),
    [
        ("vllm", "spread", 4, True, ["vllm sends the first requests all at once"]),
        ("sglang", "spread", 4, False, ["sglang sends the first requests all at once"]),
        ("vllm", "together", 4, True, []),
        ("vllm", "spread", 1, True, []),
        ("vllm", None, 4, False, ["vllm sees no usage here"]),
        ("aiperf", "spread", 4, False, []),
    ],
)
def test_what_no_records_show_is_named(tool, start, slots, usage, words):
    """llama.cpp sends the usage of completions with the finish reason, where vllm bench serve 0.32 overlooks
    it: of answers of 64 tokens its tokenizer counted up to 73. The same server had a TTFT of 15 ms where its
    slots were spread, and of 29 ms where they began together.
    """
    made = stream()
    if not usage:
        kept = made.events[made.events["kind"] != EventKind.USAGE]
        made = Records(made.requests, kept, made.texts, made.finish_reasons, made.errors)
    cell = facts(client__start=start, load__value=slots)
    beyond = recompute([tool_named(tool)], made, cell)[tool].beyond
    assert [line[: len(word)] for line, word in zip(beyond, words, strict=True)] == words


@pytest.mark.parametrize("tool", TOOLS)
def test_a_file_in_which_no_time_passed_gives_no_rates(tool):
    made = records({"texts": [0], "tokens": 1})
    made.requests["end_ns"] = 0
    figures, _ = said(tool, made)
    assert figures["TTFT", "mean"] in (0, None)
    assert not {"output", "requests"} & {measure for measure, _ in figures}


@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_measured_gives_no_figures(tool):
    assert said(tool, stream(count=0, failed=2)) == ({}, {})


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_every_figure_has_its_reason(tool):
    view = recompute([tool], stream(), facts())[tool.name]
    assert {figure.measure for figure in view.figures} == set(tool.why)
    # Each has its place in a cell of summary.json, beside which it is shown.
    cell = CellResult.__struct_fields__
    assert all(figure.path.partition(".")[0] in cell for figure in view.figures)
    units = {figure.measure: figure.unit for figure in view.figures}
    known = {"TTFT": "ms", "ITL": "ms", "TPOT": "ms", "E2E": "ms", "output": "tok/s", "requests": "req/s"}
    assert units == {measure: known[measure] for measure in units}
    assert {f"ttft_ms.{figure.statistic}" for figure in view.figures if figure.measure == "TTFT"} == {
        figure.path for figure in view.figures if figure.measure == "TTFT"
    }


def test_the_command_line_knows_the_same_tools():
    from harness.cli.commands.report import TOOLS as WORDS

    assert tuple(TOOLS) == WORDS


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("vllm", "vllm"),
        ("vllm@0.32.1", "vllm"),
        ("vllm@0.8.5.post1", "vllm"),
        ("vllm@0.33.0", "vllm@0.33"),
        ("vllm@0.40", "vllm@0.33"),
        ("aiperf@0.12.0", "aiperf"),
    ],
)
def test_a_version_has_the_definitions_of_the_last_change_before_it(name, found):
    assert tool_named(name).name == found


@pytest.mark.parametrize(
    ("name", "said_"),
    [
        ("vlm", "unknown tool"),
        ("vllm@", "not a version"),
        ("vllm@new", "'new' is not a version such as 0.33"),
    ],
)
def test_a_name_that_is_none(name, said_):
    with pytest.raises(ValueError, match=said_):
        tool_named(name)


def test_what_changed_is_named_with_both_versions_and_the_rest_is_not():
    found = list(changed(["ttft_ms", "output_tokens_per_s", "prefix_cache_hit_rate"]))
    assert [(metric, title) for metric, title, _ in found] == [
        ("ttft_ms", "vllm bench serve 0.32"),
        ("ttft_ms", "vllm bench serve 0.33"),
    ]
    assert "be it role-only" in found[0][2]
    assert "a role chunk no longer counts" in found[1][2]


def test_the_page_names_the_versions_that_were_read():
    """By hand, since each was read: `bench engines outdated` compares them with the newest."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "peers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\S+) \| [^|]+ \| ([\d.]+) \|", page, re.MULTILINE)
    assert dict(rows) == READ_IN, "of a tool with two rows the last is its newest"
    assert set(TOOLS) <= set(READ_IN)


def test_events_are_read_in_blocks(monkeypatch):
    """Of a long cell the gaps stay in memory, three times 8 bytes an event, and no copy of all events."""
    count, requests = 30_000, 20
    made = records(*({"intended": 0, "sent": 10, "texts": [110, 150], "tokens": 5} for _ in range(requests)))
    events = np.zeros(count, EVENT_DTYPE)
    events["seq"], events["wire_bytes"] = np.arange(count) // (count // requests), 1
    events["kind"], events["stamp_ns"] = EventKind.TEXT, np.arange(count) * MS
    long = replace(made, events=events)
    whole = recompute(TOOLS.values(), long, facts())
    monkeypatch.setattr("harness.records.layout._EVENTS_PER_BLOCK", count // 30 - 1)
    tracemalloc.start()
    try:
        assert recompute(TOOLS.values(), long, facts()) == whole
        assert tracemalloc.get_traced_memory()[1] < 70 * count
    finally:
        tracemalloc.stop()
