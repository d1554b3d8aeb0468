"""An answer without end is cut off where no engine needs more, and says so."""

import gzip
import json
import math
import zlib
from functools import partial
from inspect import signature
from itertools import chain

import pytest

from harness.apis import RESPONSES
from harness.load.bounds import EVENT_BYTES, HEAD_BYTES, USUAL_BYTES, answer_bytes
from harness.load.http1 import Answer
from harness.records.layout import Outcome
from tests.factories import answers
from tests.factories.answers import CHUNKED, DONE, FINISH, chunked, delta, event, head, play

GOOD = event(delta("a")) + event(FINISH) + event(DONE)


def taken(reads, most_bytes=USUAL_BYTES):
    """The answer, and whether a read is left once no more is to be read."""
    answer, rest = Answer(most_bytes), iter(reads)
    for read in rest:
        if answer.take(read, 0):
            break
    return answer, any(True for _ in rest)


@pytest.mark.parametrize("size", [1, 100, 65_536])
@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\na: ", b"HTTP/1.1 200 OK\r\n", b""],
    ids=["one header", "headers", "interim answers"],
)
def test_a_head_without_end_is_oversized(start, size):
    said = b"a: b\r\n" if start.endswith(b"\n") else b"a" if start else b"HTTP/1.1 103 x\r\na: b\r\n\r\n"
    endless = said * (4 * HEAD_BYTES // len(said))
    answer, left = taken(chain([start], (endless[at : at + size] for at in range(0, len(endless), size))))
    assert answer.oversized
    assert left
    assert answer.wire_bytes <= HEAD_BYTES + size
    assert "head of the answer" in answer.problem


@pytest.mark.parametrize("size", [7, 4096])
@pytest.mark.parametrize("framing", [b"transfer-encoding: chunked\r\n", b"content-length: 99999999\r\n", b""])
def test_a_body_without_end_is_oversized(framing, size):
    said = b"5\r\n: x\n\n\r\n" if b"chunked" in framing else b": still here\n\n"
    endless = said * (1 << 14)
    reads = [
        b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n",
        *(endless[at : at + size] for at in range(0, len(endless), size)),
    ]
    answer, left = taken(reads, 50_000)
    assert answer.oversized
    assert left
    assert answer.wire_bytes <= len(reads[0]) + 50_000 + size
    assert not answer.reusable()


def test_an_answer_of_the_most_bytes_is_none():
    reads = [head(f"content-length: {len(GOOD)}"), GOOD]
    assert not taken(reads, len(GOOD))[0].oversized
    assert taken(reads, len(GOOD) - 1)[0].oversized


def test_a_head_and_a_long_body_in_one_read_are_told_apart():
    body = GOOD + (b": " + b"x" * 996 + b"\n\n") * (5 * HEAD_BYTES // 1000)
    assert play([head(f"content-length: {len(body)}") + body]).outcome is Outcome.OK


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_compressed_answer_is_not_blown_up(monkeypatch, coding):
    assert signature(Answer).parameters["most_bytes"].default == USUAL_BYTES
    monkeypatch.setattr(answers, "Answer", partial(Answer, 100_000))  # less to decompress
    zeros = bytes(100_000 + 1)
    body = gzip.compress(zeros, 1) if coding == "gzip" else zlib.compress(zeros, 1)
    settled = play([head(f"content-encoding: {coding}", f"content-length: {len(body)}"), body])
    assert settled.outcome is Outcome.OVERSIZED
    assert not len(settled.events)


def test_an_event_longer_than_any_engine_makes_is_oversized():
    def outcome(size):
        body = event(delta("a" * (size - len(event(delta("")))))) + event(FINISH)
        return play([head(CHUNKED), chunked([body])]).outcome

    assert outcome(EVENT_BYTES) is Outcome.OK
    assert outcome(EVENT_BYTES + 1) is Outcome.OVERSIZED


def test_an_error_status_is_told_whatever_its_body_does():
    settled = play([head("content-length: 999999999", status="503 No"), *[b"x" * 65536] * 1100])
    assert (settled.outcome, settled.error) == (Outcome.HTTP_ERROR, "HTTP 503")


def test_the_bound_grows_with_what_was_asked_for():
    longest = len(event(delta("\\u00e9" * 30, logprobs={"content": ["x" * 300]})))
    for tokens in (1, 1000, 100_000):
        assert answer_bytes(tokens) > 4 * tokens * longest


@pytest.mark.parametrize(("items", "dimensions"), [(1, 8192), (32, 2048), (32, 4096), (256, 1024)])
def test_vectors_of_any_model_are_within_the_bound(items, dimensions):
    """Numbers as Python's json writes those of single vectors: every digit of a double."""
    vector = [-math.pi / 1000 - place for place in range(dimensions)]
    entry = {"object": "embedding", "index": items, "embedding": vector}

    def length(count):
        answer = {"object": "list", "data": [entry] * count, "usage": {"prompt_tokens": 1}}
        return len(json.dumps(answer, indent=1).encode())

    # Every entry adds as much as the second: to write them all would take long.
    said = length(1) + (items - 1) * (length(2) - length(1))
    assert 20 * items * dimensions < said < answer_bytes(1, items)


def test_what_a_response_repeats_of_its_request_is_within_the_bounds():
    """Each of three events holds the instructions, here longer than any event of a chat, and escaped."""
    instructions = "\u00e4" * (EVENT_BYTES // 2)
    asked = RESPONSES.encode(RESPONSES.body([{"role": "system", "content": instructions}], 16))
    answer = {"object": "response", "status": "in_progress", "instructions": instructions}
    starts = [event(json.dumps({"type": f"response.{name}", "response": answer}).encode()) for name in "ab"]
    text = event(json.dumps({"type": "response.output_text.delta", "delta": "a"}).encode())
    whole = {"type": "response.completed", "response": answer | {"status": "completed"}}
    said = b"".join([*starts, text, event(json.dumps(whole).encode())])
    assert len(said) < answer_bytes(16, echoed_bytes=RESPONSES.echoes * len(asked))
    assert play([head(CHUNKED), chunked([said])], api=RESPONSES).outcome is Outcome.OK
