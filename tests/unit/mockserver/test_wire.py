import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.mockserver.wire import (
    MAX_HEAD_BYTES,
    ProtocolError,
    Request,
    chunk,
    error_answer,
    head,
    take_request,
)

LENGTH = b"POST /v1/completions?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: Close\r\n\r\n"
    b"3;note=1\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
)
PLAIN = b"GET /health HTTP/1.1\r\n\r\n"


@given(st.permutations([LENGTH, CHUNKED, PLAIN]), st.integers(1, 200))
def test_requests_come_out_whole_however_the_bytes_arrive(messages: list[bytes], size: int) -> None:
    stream = b"".join(messages)
    buffer = bytearray()
    taken: list[Request] = []
    for at in range(0, len(stream), size):
        buffer += stream[at : at + size]
        while request := take_request(buffer):
            taken.append(request)
    assert not buffer
    expected = {LENGTH: "/v1/completions", CHUNKED: "/tokenize", PLAIN: "/health"}
    assert [request.path for request in taken] == [expected[message] for message in messages]
    for request in taken:
        assert request.body == (b"" if request.path == "/health" else b"hello")
        assert request.keep_alive == (request.path != "/tokenize")


@pytest.mark.parametrize("message", [LENGTH, CHUNKED, PLAIN])
def test_an_incomplete_request_stays_in_the_buffer(message: bytes) -> None:
    for end in range(len(message)):
        buffer = bytearray(message[:end])
        assert take_request(buffer) is None
        assert buffer == message[:end]


@pytest.mark.parametrize(
    "junk",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        pytest.param(b"GET / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", id="digits"),
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-6\r\nhello",
        b"GET / HTTP/1.1\r\nx: " + b"y" * MAX_HEAD_BYTES,
    ],
)
def test_what_is_not_http_is_refused(junk: bytes) -> None:
    with pytest.raises(ProtocolError):
        take_request(bytearray(junk))


def test_every_answer_is_marked_as_simulated() -> None:
    assert head(200, {}) == b"HTTP/1.1 200 OK\r\nx-bench-simulated: 1\r\n\r\n"
    refused = error_answer(429, "slow down", {"retry-after": 2})
    assert refused.startswith(b"HTTP/1.1 429 Too Many Requests\r\nx-bench-simulated: 1\r\n")
    assert b"\r\nretry-after: 2\r\n" in refused


def test_chunk() -> None:
    assert chunk(b"x" * 17) == b"11\r\n" + b"x" * 17 + b"\r\n"
