"""Frames cut out of reads of any size, and the allowance for those that bring nothing."""

import h2.exceptions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.load.http2_frames import Allowance, FloodError, Frame, FrameBuffer, read_goaway


def frame(kind: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, 0]) + stream.to_bytes(4) + payload


def read(buffer: FrameBuffer, data: bytes) -> list[Frame]:
    found = []
    while data:
        space = buffer.space()
        part, data = data[: len(space)], data[len(space) :]
        space[: len(part)] = part
        found += list(buffer.take(len(part)))
    return found


@given(st.lists(st.integers(0, 16_384), max_size=12), st.lists(st.integers(1, 40_000), max_size=20))
def test_any_frames_in_any_reads(lengths: list[int], cuts: list[int]) -> None:
    frames = [frame(number % 10, number, bytes([number]) * length) for number, length in enumerate(lengths)]
    wire, buffer, found = b"".join(frames), FrameBuffer(), []
    for cut in [*cuts, len(wire)]:
        found += read(buffer, wire[:cut])
        wire = wire[cut:]
    assert found == [(number % 10, number, whole) for number, whole in enumerate(frames)]


def test_a_frame_over_the_maximum_is_refused_by_its_head() -> None:
    buffer = FrameBuffer()
    assert read(buffer, frame(0, 1, bytes(16_384)))
    with pytest.raises(h2.exceptions.FrameTooLargeError, match="16385"):
        read(buffer, frame(0, 1, bytes(16_385))[:9])


def test_an_answer_in_another_version_is_named_as_one() -> None:
    with pytest.raises(h2.exceptions.FrameTooLargeError, match=r"^the server answers in HTTP/1$"):
        read(FrameBuffer(), b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("stopped", [False, True])
def test_there_is_always_space_for_a_read(stopped: bool) -> None:
    """Also where whoever takes the frames stops in the middle."""
    buffer = FrameBuffer()
    space = buffer.space()
    wire = (frame(6, 0, bytes(8)) * 2000)[: len(space)]
    space[:] = wire
    taken = buffer.take(len(wire))
    next(taken)
    if stopped:
        taken.close()
    else:
        list(taken)
    assert len(buffer.space()) > 0


def spend(allowance: Allowance, times: int) -> None:
    for _ in range(times):
        allowance.spend()


def test_frames_that_bring_nothing_use_the_allowance_up() -> None:
    allowance = Allowance()
    with pytest.raises(FloodError):
        spend(allowance, 10_000)


@pytest.mark.parametrize("size", [8, 200, 16_384, None])
def test_what_brings_something_pays_for_itself(size: int | None) -> None:
    allowance = Allowance()
    for _ in range(10_000):
        allowance.spend()
        allowance.earn(size)


def test_no_good_past_allows_a_flood_without_end() -> None:
    allowance = Allowance()
    for _ in range(100_000):
        allowance.earn()
    with pytest.raises(FloodError):
        spend(allowance, 100_000)


def test_goaway() -> None:
    assert read_goaway(Frame(7, 0, frame(7, 0, bytes([0, 0, 0, 5, 0, 0, 0, 11]) + b"calm \xff"))) == (
        5,
        True,
        "ENHANCE_YOUR_CALM calm �",
    )
    for stream, payload in ((0, bytes(7)), (1, bytes(8))):
        with pytest.raises(h2.exceptions.ProtocolError):
            read_goaway(Frame(7, stream, frame(7, stream, payload)))
