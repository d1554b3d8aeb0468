"""Requests of GenAI-Perf: the responses of a server, in the pieces in which they came."""

import json
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.imports import read, results_among
from harness.records.layout import UNKNOWN, Outcome
from tests.factories import foreign

CAPTURE = Path(__file__).resolve().parents[2] / "captures" / "imports" / "genai-perf"
BEGUN = 1_796_025_511_000_000_000


def event(text=None, **delta):
    choices = [{"index": 0, "delta": {"content": text} | delta}]
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': choices})}\n\n"


def usage(tokens):
    return f"data: {json.dumps({'choices': [], 'usage': {'completion_tokens': tokens}})}\n\n"


def request(*pieces):
    """A piece each 10 ms, the first after 100."""
    return {
        "timestamp": BEGUN,
        "request_inputs": {"payload": '{"model": "m"}'},
        "response_timestamps": [BEGUN + (100 + 10 * index) * 10**6 for index in range(len(pieces))],
        "response_outputs": [{"response": piece} for piece in pieces],
    }


def of(*requests, mode="concurrency", value=1, **changes):
    experiment = {"experiment": {"mode": mode, "value": value}, "requests": list(requests)}
    return {"service_kind": "openai", "experiments": [experiment]} | changes


def taken_of(tmp_path, document):
    _, (taken,) = read(foreign.write(tmp_path / "p.json", document))
    return taken


def texts_ms(taken):
    (row,) = taken.records.requests
    return [row[name] / 1e6 for name in ("first_text_ns", "last_text_ns", "end_ns")], row["text_events"]


STREAMS = [
    pytest.param([event("", role="assistant"), event("a"), event("b")], ([110, 120, 120], 2), id="role"),
    pytest.param([event("a"), event("b") + event(None) + "data: [DONE]\n\n"], ([100, 110, 110], 2), id="end"),
    pytest.param([event("a"), event("b"), usage(2)], ([100, 110, 120], 2), id="usage last"),
    pytest.param([event("a")[:20], event("a")[20:], event("b")], ([110, 120, 120], 2), id="in pieces"),
    pytest.param([event("a") + event("b")[:9], event("b")[9:]], ([100, 110, 110], 2), id="begun early"),
    pytest.param([event("a"), event("b").rstrip()], ([100, 110, 110], 2), id="no empty line at the end"),
    pytest.param([event("a").replace("\n", "\r\n"), event("b")], ([100, 110, 110], 2), id="CRLF"),
    pytest.param([": ping\n\n", "event: x\n" + event("a")], ([110, 110, 110], 1), id="comment"),
    pytest.param([event(None, reasoning="t"), event("a")], ([100, 110, 110], 2), id="reasoning"),
    pytest.param([event("a", tool_calls=None), event("a\n\nb")], ([100, 110, 110], 2), id="newlines in text"),
]


@pytest.mark.parametrize(("pieces", "times"), STREAMS)
def test_text_comes_with_the_last_byte_of_its_event(tmp_path, pieces, times):
    found, events = texts_ms(taken_of(tmp_path, of(request(*pieces))))
    assert (found, events) == (pytest.approx(times[0], abs=1e-3), times[1])


def test_tokens_are_the_servers_where_it_counted_them_in_each_answer(tmp_path):
    counted = request(event("a"), event("b"), usage(7))
    taken = taken_of(tmp_path, of(counted, counted))
    assert list(taken.records.requests["output_tokens"]) == [7, 7]
    assert "tokens" in taken.facts
    taken = taken_of(tmp_path, of(counted, request(event("a"), event("b"))))
    assert list(taken.records.requests["output_tokens"]) == [7, UNKNOWN]
    assert "tokens" not in taken.facts


def test_an_error_in_a_stream_is_a_failure_and_an_answer_without_text_is_empty(tmp_path):
    error = request(event("a"), 'data: {"error": {"message": "x"}}\n\n')
    taken = taken_of(tmp_path, of(request(event("a")), error, request(event(""))))
    assert list(taken.records.requests["outcome"]) == [Outcome.OK, Outcome.STREAM_ERROR, Outcome.EMPTY]


LOADS = [("concurrency", 4, "c4", True), ("request_rate", 10.0, "r10", True), ("custom", "x", "u1", False)]


@pytest.mark.parametrize(("mode", "value", "label", "known"), LOADS)
def test_a_load_is_what_the_experiment_names(tmp_path, mode, value, label, known):
    taken = taken_of(tmp_path, of(request(event("a")), mode=mode, value=value))
    assert (taken.load.point.label, taken.load_known) == (label, known)
    assert any("constant" in lack for lack in taken.lacks) == (mode == "request_rate")


def test_experiments_are_loads(tmp_path):
    document = of(request(event("a")))
    document["experiments"] += of(request(event("a")), value=8)["experiments"]
    _, taken = read(foreign.write(tmp_path / "p.json", document))
    assert [each.load.slots for each in taken] == [1, 8]


def with_request(**changes):
    return of(request(event("a")) | changes)


REFUSED = [
    pytest.param(of(), "holds no request", id="none"),
    pytest.param(of(request(event("a")), service_kind="triton"), "of kind 'triton'", id="triton"),
    pytest.param(of(request('{"choices": []}')), "no answer has a first token", id="not streamed"),
    pytest.param(with_request(response_timestamps=[1, 2]), "2 times of 1 responses", id="lengths"),
    pytest.param(with_request(timestamp=10**400), "is not what genai-perf writes", id="huge"),
    pytest.param(with_request(timestamp=BEGUN + 10**9), "not in the order", id="sent later"),
    pytest.param(of(request("data: {\n\n")), "is not what genai-perf writes", id="no JSON"),
    pytest.param(of(request("data: [1]\n\n")), "is not what genai-perf writes", id="a list"),
    pytest.param(of(request(event("a"), usage(-1))), "a count of -1", id="count"),
]


@pytest.mark.parametrize(("document", "why"), REFUSED)
def test_requests_that_cannot_be_are_refused(tmp_path, document, why):
    path = foreign.write(tmp_path / "p.json", document)
    with pytest.raises(SpecError) as caught:
        read(path)
    assert why in str(caught.value)
    assert str(path) in str(caught.value)


def test_times_that_run_backwards_are_refused(tmp_path):
    backwards = request(event("a"), event("b"))
    backwards["response_timestamps"].reverse()
    with pytest.raises(SpecError, match="run backwards"):
        read(foreign.write(tmp_path / "p.json", of(backwards)))


@pytest.mark.parametrize(("figure", "value"), [("request_count", 11.0), ("time_to_first_token", 0.1)])
def test_requests_and_the_summary_next_to_them_agree(tmp_path, figure, value):
    path = tmp_path / "profile_export.json"
    path.write_text((CAPTURE / path.name).read_text())
    summary = json.loads((CAPTURE / "profile_export_genai_perf.json").read_text())
    foreign.write(tmp_path / "profile_export_genai_perf.json", summary)
    read(path)
    summary[figure]["avg"] = value
    foreign.write(tmp_path / "profile_export_genai_perf.json", summary)
    with pytest.raises(SpecError, match=rf"its {figure} \(in profile_export_genai_perf.json\) is"):
        read(path)


def test_figures_of_answers_that_were_not_streamed_are_refused(tmp_path):
    summary = json.loads((CAPTURE / "profile_export_genai_perf.json").read_text())
    del summary["time_to_first_token"]
    with pytest.raises(SpecError, match="has no time to a first token"):
        read(foreign.write(tmp_path / "s.json", summary))


def test_of_a_folder_the_requests_are_read_and_its_inputs_are_not(tmp_path):
    for path in CAPTURE.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    foreign.write(tmp_path / "inputs.json", {"data": []})
    kept, left_out = results_among(sorted(tmp_path.iterdir()))
    assert [path.name for path in kept] == ["profile_export.json"]
    assert len(left_out) == 2
