"""Who put the events of one read together: the server that wrote them, or a client that looked late."""

import numpy as np
import pytest

from harness.load.exchange import Exchange
from harness.load.finalize import Finalizer
from harness.load.http1 import Answer
from harness.load.job import Promised
from harness.load.stamps import read_late
from harness.untrusted import Secrets
from tests.factories.answers import CHUNKED, DONE, FINISH, chunked, delta, event, head

MS = 1_000_000
FIRST = [0, 0, MS]  # the look that brought it


@pytest.mark.parametrize(
    ("look", "stamp_ns", "late"),
    [
        ([100, 100, 900], 140, False),  # two events within 40 ns: the server wrote them together
        ([100, 100, 900], 150, False),
        ([100, 100, 900], 160, True),  # nobody looked for more than half a gap
        ([100, 800, 830], 810, False),  # it waited, and woke at once
        ([100, 800, 850], 810, True),  # it woke, and the last one had lain there for long
    ],
)
def test_a_read_is_late_where_events_a_gap_apart_may_share_it(
    look: list[int], stamp_ns: int, late: bool
) -> None:
    assert read_late(np.array([stamp_ns]), [look], 100.0).tolist() == [late]


def counted(looks: list[list[int] | None], stamps_ms: list[int], parts: list[list[bytes]]) -> tuple[int, int]:
    """Events that shared a read, and those of late ones, of an answer with a read for each part."""
    answer, last = Answer(), len(parts) - 1
    for number, (part, stamp_ms, look) in enumerate(zip(parts, stamps_ms, looks, strict=True)):
        body = chunked(part)
        if number < last:
            body = body.removesuffix(b"0\r\n\r\n")
        answer.take((b"" if number else head(CHUNKED)) + body, stamp_ms * MS, look)
    answer.close()
    finalizer = Finalizer(
        0,
        lambda taken: np.asarray(taken, np.int64),
        Secrets([]),
        np.ones(1, np.uint8),
        0,
        closed_loop=False,
        promised=Promised(),
    )
    exchange = Exchange(0, 0, 0, sent=-5 * MS, end=(stamps_ms[-1] + 1) * MS, answer=answer)
    made = finalizer.finalize(exchange)
    assert (made.error, len(made.generated_ns)) == ("", 4)
    return made.shared_events


@pytest.mark.parametrize(
    ("look_ms", "late"),
    [((29.9, 29.9, 30.1), 0), ((19.0, 19.0, 30.1), 2), ((9.0, 30.0, 31.0), 0), ((9.0, 30.0, 33.0), 2)],
)
def test_three_of_four_events_in_one_read(look_ms: tuple[float, ...], late: int) -> None:
    """They come 10 ms apart on average."""
    parts = [[event(delta("a"))], [*(event(delta(text)) for text in "bcd"), event(FINISH), event(DONE)]]
    assert counted([FIRST, [int(moment * MS) for moment in look_ms]], [0, 30], parts) == (2, late)


@pytest.mark.parametrize(("since_ms", "late"), [(4, 0), (6, 3)])
def test_an_answer_that_came_at_once_is_late_where_a_loop_may_not_lag_so_much(
    since_ms: int, late: int
) -> None:
    parts = [[*(event(delta(text)) for text in "abcd"), event(FINISH), event(DONE)]]
    assert counted([[(30 - since_ms) * MS, (30 - since_ms) * MS, 31 * MS]], [30], parts) == (3, late)


def test_without_stamps_of_the_kernel_nobody_is_late() -> None:
    parts = [[event(delta("a"))], [*(event(delta(text)) for text in "bcd"), event(FINISH), event(DONE)]]
    assert counted([None, None], [0, 30], parts) == (2, 0)
