"""Answers read by read: framing, encodings, arrival times, and how every kind of ending is named."""

import gzip
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.load.bounds import HEAD_BYTES
from harness.load.http1 import Answer
from harness.load.job import Promised
from harness.records.layout import UNKNOWN, EventKind, Outcome, content
from tests.factories.answers import CHUNKED, DONE, FINISH, USAGE, chunked, delta, event, field, head, play

_EVENTS = [
    event(data)
    for data in (
        delta("", role="assistant"),
        delta("né", ascii_only=False),
        delta("\n"),
        delta("b"),
        FINISH,
        USAGE,
        DONE,
    )
]
_BODY = b"".join(_EVENTS)
_HEAD = head(CHUNKED)


def test_every_cut_gives_the_same_events_and_the_stamp_of_their_last_byte() -> None:
    wire = _HEAD + chunked(_EVENTS)
    ends, position = [], len(_HEAD)
    for part in _EVENTS:
        ends.append(position + len(b"%x\r\n" % len(part)) + len(part))
        position = ends[-1] + 2
    whole = play([wire])
    assert whole.text == "né\nb"
    for cut in range(1, len(wire)):
        settled = play([wire[:cut], wire[cut:]])
        assert settled.outcome is Outcome.OK
        assert settled.text == whole.text
        expected = [1 if end <= cut else 2 for end in ends]
        assert settled.events["stamp_ns"].tolist() == expected, cut
        assert field(settled, "headers_ns") == (1 if cut >= len(_HEAD) else 2)
        assert field(settled, "first_text_ns") == expected[1]
        assert field(settled, "last_text_ns") == expected[3]


def test_byte_by_byte() -> None:
    wire = _HEAD + chunked([_BODY[i : i + 5] for i in range(0, len(_BODY), 5)])
    settled = play([wire[i : i + 1] for i in range(len(wire))])
    assert (settled.outcome, settled.text) == (Outcome.OK, "né\nb")
    assert settled.events["kind"].tolist() == play([wire]).events["kind"].tolist()
    assert np.all(np.diff(settled.events["stamp_ns"]) > 0)


@settings(max_examples=2 * settings().max_examples)
@given(st.data())
def test_any_chunking_and_any_reads(data: st.DataObject) -> None:
    inner = sorted(data.draw(st.sets(st.integers(1, len(_BODY) - 1), max_size=12)))
    parts = [_BODY[a:b] for a, b in zip([0, *inner], [*inner, len(_BODY)], strict=True)]
    wire = _HEAD + chunked(parts)
    outer = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1), max_size=12)))
    reads = [wire[a:b] for a, b in zip([0, *outer], [*outer, len(wire)], strict=True)]
    settled = play(reads)
    assert (settled.outcome, settled.text, len(settled.events)) == (Outcome.OK, "né\nb", 7)
    assert int(settled.events["wire_bytes"].sum()) == len(_BODY)
    assert field(settled, "wire_bytes") == len(wire)


def _deflated(wbits: int) -> bytes:
    compress = zlib.compressobj(wbits=wbits)
    return compress.compress(_BODY) + compress.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(_BODY, mtime=0)),  # without its time: the bytes are in the name of the test
        ("deflate", _deflated(15)),
        ("deflate", _deflated(-15)),
        ("identity", _BODY),
    ],
)
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_encodings_under_every_framing(encoding: str, body: bytes, framing: str) -> None:
    lines = [f"content-encoding: {encoding}"]
    if framing == "chunked":
        wire = head(*lines, CHUNKED) + chunked([body[:40], body[40:]])
    elif framing == "length":
        wire = head(*lines, f"content-length: {len(body)}") + body
    else:
        wire = head(*lines) + body
    for cut in (10, len(wire) // 2, len(wire) - 3):
        settled = play([wire[:cut], wire[cut:]])
        assert (settled.outcome, settled.text) == (Outcome.OK, "né\nb")


def test_gzip_flushed_per_event_keeps_each_arrival() -> None:
    compress = zlib.compressobj(wbits=31)
    parts = [compress.compress(part) + compress.flush(zlib.Z_SYNC_FLUSH) for part in _EVENTS]
    reads = [head("content-encoding: gzip", CHUNKED)] + [b"%x\r\n%b\r\n" % (len(p), p) for p in parts]
    settled = play([*reads, b"0\r\n\r\n"])
    assert settled.events["stamp_ns"].tolist() == [2, 3, 4, 5, 6, 7, 8]


def test_gzip_with_a_member_for_each_event_is_read_to_its_end() -> None:
    """The cuts between reads are inside members."""
    body = b"".join(map(gzip.compress, _EVENTS))
    reads = [body[at : at + 50] for at in range(0, len(body), 50)]
    settled = play([head("content-encoding: gzip", f"content-length: {len(body)}"), *reads])
    assert (settled.outcome, settled.text) == (Outcome.OK, "né\nb")
    assert len(settled.events) == len(_EVENTS)


def test_zeros_behind_gzip_are_padding() -> None:
    """Python's gzip, gunzip and httpx take such an answer for whole."""
    packed = gzip.compress(_BODY)
    for body in (packed + bytes(20), packed + bytes(20) + gzip.compress(b": end\n\n") + bytes(3)):
        for cut in (len(body) - 30, len(packed), len(packed) + 7):
            reads = [head("content-encoding: gzip", f"content-length: {len(body)}"), body[:cut], body[cut:]]
            settled = play(reads)
            assert (settled.outcome, settled.text) == (Outcome.OK, "né\nb")
    garbage = packed + b"\0not gzip"
    assert play([head("content-encoding: gzip") + garbage]).outcome is Outcome.MALFORMED


def test_interim_answers_are_passed_over() -> None:
    settled = play(
        [
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n",
            _HEAD + chunked(_EVENTS),
        ]
    )
    assert (settled.outcome, field(settled, "http_status"), field(settled, "headers_ns")) == (
        Outcome.OK,
        200,
        2,
    )


def test_chunk_extensions_and_trailers() -> None:
    wire = _HEAD + b"%x;note=1\r\n%b\r\n" % (len(_BODY), _BODY) + b"0\r\nx-time: 3\r\n\r\n"
    assert play([wire]).outcome is Outcome.OK


def _with_trailers(trailers: bytes) -> bytes:
    return _HEAD + chunked(_EVENTS).removesuffix(b"\r\n") + trailers + b"\r\n"


@pytest.mark.parametrize(
    "trailer", ["content-encoding: gzip", "content-type: text/html", "Content-Encoding: br", "x-time: 3"]
)
def test_a_trailer_changes_nothing_of_how_the_body_is_read(trailer: str) -> None:
    wire = _with_trailers(f"{trailer}\r\n".encode())
    for cut in (len(_HEAD), len(wire) - len(trailer), len(wire) - 3):
        settled = play([wire[:cut], wire[cut:]])
        assert (settled.outcome, settled.text) == (Outcome.OK, "né\nb")


def test_trailers_cost_no_more_than_their_length() -> None:
    """Headers of one name are joined, which costs the square of their number; trailers are not kept."""
    answer = Answer()
    wire = _with_trailers(b"a: b\r\n" * 10_000)
    answer.take(wire, 1)
    assert answer.complete
    assert set(answer.headers) == {b"content-type", b"transfer-encoding"}


@pytest.mark.parametrize(
    "piece", [b"a: b\r\n" * 1000, b"x" * 6000], ids=["many trailers", "one long trailer"]
)
def test_trailers_without_end_are_given_up_after_the_size_of_a_head(piece: bytes) -> None:
    answer = Answer(1 << 30)
    answer.take(_with_trailers(b"a: ")[:-2], 1)
    before, reads = answer.wire_bytes, 0
    while not answer.oversized and reads < 1000:
        answer.take(piece, 2)
        reads += 1
    assert HEAD_BYTES < answer.wire_bytes - before < 3 * HEAD_BYTES
    assert "nothing of its body" in answer.problem


def test_a_long_body_is_not_taken_for_a_trailer() -> None:
    body = event(delta("x" * 3000)) * 100
    assert len(body) > 4 * HEAD_BYTES
    wire = _HEAD + chunked([body, event(DONE)])
    settled = play([wire[at : at + 5000] for at in range(0, len(wire), 5000)])
    assert settled.outcome is Outcome.OK


def test_an_answer_that_follows_unasked_does_not_change_the_one_before() -> None:
    settled = play([_HEAD + chunked(_EVENTS) + head("content-encoding: gzip", "content-length: 0")])
    assert (settled.outcome, settled.text) == (Outcome.OK, "né\nb")


def test_bytes_after_the_answer_are_not_the_answer() -> None:
    for extra in (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"garbage"):
        settled = play([_HEAD + chunked(_EVENTS) + extra])
        assert (settled.outcome, settled.text) == (Outcome.OK, "né\nb")


def test_a_whole_json_answer_counts_as_one_text_event() -> None:
    body = (
        b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":1}}'
    )
    wire = head(f"content-length: {len(body)}", content_type="application/json") + body
    settled = play([wire[:60], wire[60:]])
    assert (settled.outcome, settled.text, settled.finish_reason) == (Outcome.OK, "Hi", "stop")
    assert field(settled, "first_text_ns") == field(settled, "last_text_ns") == 2
    assert (field(settled, "prompt_tokens"), field(settled, "output_tokens")) == (3, 1)


def test_reasoning_of_a_whole_json_answer_is_no_part_of_its_content() -> None:
    calls = b'[{"function":{"name":"f"}}]'
    body = b'{"choices":[{"message":{"reasoning":"hm","content":"{}","tool_calls":%b}}]}' % calls
    wire = head(f"content-length: {len(body)}", content_type="application/json") + body
    settled = play([wire[:60], wire[60:]], promised=Promised(done=False))
    assert (settled.outcome, settled.text, content(settled.events, settled.text)) == (
        Outcome.OK,
        "hm{}f",
        "{}",
    )
    assert field(settled, "first_reasoning_ns") == field(settled, "first_answer_ns") == 2
    assert field(settled, "text_events") == 1


@pytest.mark.parametrize(
    ("status", "body", "content_type", "error"),
    [
        ("400 Bad Request", b'{"error":{"message":"bad  field"}}', "application/json", "bad field"),
        ("422 Unprocessable", b'{"detail":[{"msg":"a"},{"msg":"b"}]}', "application/json", "a; b"),
        ("503 Busy", b"<html><h1>Busy</h1></html>", "text/html", "<html><h1>Busy</h1></html>"),
        ("307 Moved", b"", "text/plain", "HTTP 307"),
        ("401 No", b'{"error":"bad key sk-secret"}', "application/json", "bad key *********"),
    ],
)
def test_http_errors(status: str, body: bytes, content_type: str, error: str) -> None:
    settled = play([head(f"content-length: {len(body)}", status=status, content_type=content_type) + body])
    assert (settled.outcome, settled.error) == (Outcome.HTTP_ERROR, error)
    assert field(settled, "http_status") == int(status[:3])
    assert len(settled.events) == 0


def test_a_redirect_says_where_to() -> None:
    """Its page, which a browser shows for a moment, does not."""
    page = b"<html>Found</html>"
    place = "location: https://sso.example/login?key=sk-secret"
    settled = play([head(place, f"content-length: {len(page)}", status="302 Found") + page])
    assert settled.error == "a redirect to https://sso.example/login?key=*********"
    assert settled.outcome is Outcome.HTTP_ERROR


def test_a_switch_of_protocols_is_an_http_error() -> None:
    settled = play([b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"])
    assert settled.outcome is Outcome.HTTP_ERROR


def test_error_text_is_bounded() -> None:
    body = b"x" * 5000
    settled = play([head(f"content-length: {len(body)}", status="500 No") + body])
    assert len(settled.error) == 300


def test_an_error_event_wins_over_the_cut_that_follows() -> None:
    wire = _HEAD + chunked([_EVENTS[1], event(b'{"error":{"message":"oom"}}')])[:-5]
    settled = play([wire], Outcome.RESET)
    assert (settled.outcome, settled.error, settled.text) == (Outcome.STREAM_ERROR, "oom", "né")


@pytest.mark.parametrize("failure", [Outcome.RESET, Outcome.TIMEOUT, Outcome.CANCELLED, Outcome.TRUNCATED])
def test_what_arrived_before_a_failure_is_kept(failure: Outcome) -> None:
    wire = _HEAD + chunked(_EVENTS)
    settled = play([wire[: len(_HEAD) + 300]], failure)
    assert settled.outcome is failure
    assert settled.text == "né"
    assert settled.events["kind"].tolist()[:2] == [EventKind.OTHER, EventKind.TEXT]


def test_done_makes_an_answer_whole_even_if_the_last_chunk_is_missing() -> None:
    settled = play([(_HEAD + chunked(_EVENTS))[:-5]])
    assert settled.outcome is Outcome.OK


def test_a_close_delimited_stream_needs_a_sign_that_it_ended() -> None:
    assert play([head() + _EVENTS[1] + _EVENTS[4]]).outcome is Outcome.OK
    assert play([head() + _EVENTS[1]]).outcome is Outcome.TRUNCATED


def test_a_chunked_stream_without_done_is_whole() -> None:
    assert play([_HEAD + chunked(_EVENTS[:5])]).outcome is Outcome.OK


def test_no_text_is_empty_and_unknown() -> None:
    settled = play([_HEAD + chunked([_EVENTS[0], _EVENTS[4], _EVENTS[6]])])
    assert settled.outcome is Outcome.EMPTY
    assert field(settled, "first_text_ns") == field(settled, "output_tokens") == UNKNOWN


@pytest.mark.parametrize(
    "wire",
    [
        b"220 smtp ready\r\n",
        _HEAD + b"zz\r\nabc",
        _HEAD + chunked([b"data: {oops\n\n"]),
        head("content-encoding: gzip", CHUNKED) + chunked([b"not gzip"]),
        head("content-encoding: br", CHUNKED) + chunked([_BODY]),
    ],
)
def test_malformed(wire: bytes) -> None:
    settled = play([wire])
    assert settled.outcome is Outcome.MALFORMED
    assert settled.error


@pytest.mark.parametrize("reason", ["abort", "error", "ERROR", "cancelled", "content_filter", "timeout"])
def test_a_finish_reason_that_means_failure_is_aborted(reason: str) -> None:
    finish = FINISH.replace(b"stop", reason.encode())
    settled = play([_HEAD + chunked([_EVENTS[1], event(finish), event(DONE)])])
    assert (settled.outcome, settled.finish_reason) == (Outcome.ABORTED, reason)
    assert f'"{reason}"' in settled.error


@pytest.mark.parametrize("reason", ["end_turn", "paused"])
def test_any_other_finish_reason_makes_an_answer_whole(reason: str) -> None:
    finish = FINISH.replace(b"stop", reason.encode())
    assert play([_HEAD + chunked([_EVENTS[1], event(finish), event(DONE)])]).outcome is Outcome.OK


def test_a_framed_stream_without_any_sign_of_its_end_is_unfinished() -> None:
    wire = _HEAD + chunked(_EVENTS[:4])
    assert play([wire]).outcome is Outcome.UNFINISHED
    assert play([wire], promised=Promised(finish_reason=True)).outcome is Outcome.UNFINISHED
    assert play([wire], promised=Promised(done=False)).outcome is Outcome.OK


def test_an_answer_whose_status_has_no_body_is_not_said_to_have_been_cut_off() -> None:
    wire = b"HTTP/1.1 204 No Content\r\n\r\n"
    settled = play([wire])
    assert (settled.outcome, field(settled, "http_status")) == (Outcome.UNFINISHED, 204)
    assert "closed" not in settled.error
    assert play([wire], promised=Promised(done=False)).outcome is Outcome.EMPTY


def test_a_document_needs_a_finish_reason_only_where_one_is_promised() -> None:
    body = b'{"choices":[{"message":{"content":"Hi"}}]}'
    wire = head(f"content-length: {len(body)}", content_type="application/json") + body
    assert play([wire]).outcome is Outcome.OK
    assert play([wire], promised=Promised(finish_reason=True)).outcome is Outcome.UNFINISHED


@pytest.mark.parametrize("ahead", [b"", b"id: 1\n", b"retry: 9\n", b"\n\n", b"\xef\xbb\xbf", b": hi\n"])
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_events_are_read_whatever_their_type(content_type: str, ahead: bytes) -> None:
    settled = play([head(CHUNKED, content_type=content_type) + chunked([ahead + _EVENTS[0], *_EVENTS[1:]])])
    assert (settled.outcome, settled.text, len(settled.events)) == (Outcome.OK, "né\nb", len(_EVENTS))


def test_a_page_that_is_neither_events_nor_json_is_malformed() -> None:
    body = b"<html>hello</html>"
    settled = play([head(f"content-length: {len(body)}", content_type="text/html") + body])
    assert settled.outcome is Outcome.MALFORMED
