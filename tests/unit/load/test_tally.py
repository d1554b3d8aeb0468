"""What a worker records of an answer that its parsers did not foresee."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.apis import ANSWER, CHAT, Api
from harness.load.dispatcher import Closing, SessionDispatcher
from harness.load.exchange import Exchange
from harness.load.finalize import Finalizer
from harness.load.http1 import Answer
from harness.load.job import ClosedLoop, Promised, Sessions
from harness.load.spill import Spill, merge
from harness.load.tally import Tally
from harness.load.turns import TurnBodies
from harness.load.worker import _follow_up
from harness.records.layout import Outcome, empty_requests
from harness.untrusted import Secrets
from tests.factories.answers import CHUNKED, DONE, FINISH, chunked, delta, event, head

_WIRE = head(CHUNKED) + chunked([event(delta("hi")), event(FINISH), event(DONE)])


def _finalizer() -> Finalizer:
    return Finalizer(
        0,
        lambda taken: np.asarray(taken, np.int64),
        Secrets([]),
        np.ones(8, np.uint8),
        0,
        closed_loop=False,
        promised=Promised(),
    )


def _exchange(seq: int) -> Exchange:
    answer = Answer()
    answer.take(_WIRE, 7)
    answer.close()
    return Exchange(seq, 0, seq, sent=5, end=7, answer=answer)


def test_an_answer_that_nobody_foresaw_has_a_record_and_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(body: bytes, content_type: bytes, api: Api, *, ended: bool) -> None:
        raise KeyError(body[:4])

    spill = Spill(tmp_path)
    tally = Tally(_finalizer(), spill)
    for seq in range(3):
        with monkeypatch.context() as patched:
            if seq == 1:
                patched.setattr("harness.load.finalize.parse_answer", fail)
            tally.finalize(_exchange(seq))
    spill.close()
    records = merge([tmp_path], empty_requests(0), "lost")
    assert records.requests["outcome"].tolist() == [Outcome.OK, Outcome.MALFORMED, Outcome.OK]
    assert records.errors[1] == "the answer cannot be read: KeyError: b'data'"
    assert (tally.done, tally.failed) == (2, 1)


def test_what_an_interruption_cancels_has_not_failed(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    tally = Tally(_finalizer(), spill)
    tally.finalize(Exchange(0, 0, 0, sent=5, end=7, failure=Outcome.CANCELLED))
    tally.finalize(Exchange(1, 0, 1, sent=5, end=7, failure=Outcome.TIMEOUT))
    spill.close()
    assert merge([tmp_path], empty_requests(0), "lost").requests["outcome"].tolist() == [
        Outcome.CANCELLED,
        Outcome.TIMEOUT,
    ]
    assert (tally.done, tally.failed) == (0, 1)


def test_timeouts_in_a_row_end_with_any_token_and_not_with_a_user_who_hung_up_before_one(
    tmp_path: Path,
) -> None:
    """Whose answers last longer than the time limit is slow, and does not hang."""
    spill = Spill(tmp_path)
    tally = Tally(_finalizer(), spill)
    in_a_row = []
    for seq, failure in enumerate(
        (Outcome.TIMEOUT, Outcome.ABANDONED, Outcome.TIMEOUT, Outcome.HTTP_ERROR, Outcome.TIMEOUT)
    ):
        tally.finalize(Exchange(seq, 0, seq, sent=5, end=7, failure=failure))
        in_a_row.append(tally.pulse(seq + 1, 0).timeouts)
    tally.finalize(replace(_exchange(5), failure=Outcome.TIMEOUT))
    in_a_row.append(tally.pulse(6, 0).timeouts)
    tally.finalize(Exchange(6, 0, 6, sent=5, end=7, failure=Outcome.TIMEOUT))
    tally.finalize(replace(_exchange(7), failure=Outcome.ABANDONED))
    in_a_row.append(tally.pulse(8, 0).timeouts)
    spill.close()
    assert in_a_row == [1, 1, 2, 0, 1, 0, 0]


def test_an_answer_that_no_later_turn_can_carry_ends_its_chat_alone(tmp_path: Path) -> None:
    tried: list[str] = []

    def turn(text: str, tool_calls: str) -> tuple[bytes, bytes]:
        tried.append(text)
        if len(tried) == 1:
            raise RecursionError("too deep")
        return text.encode(), b""

    chats = Sessions(np.array([0, 0, 1, 1], np.int32), np.zeros(4, np.int64))
    turns = TurnBodies([b"{}", ANSWER] * 2, chats, replace(CHAT, turn=turn))
    dispatcher = SessionDispatcher(ClosedLoop(2), chats, t0=0, closing=Closing(0, None))
    assert [dispatcher.take(0, 0), dispatcher.take(0, 1)] == [(0, 0), (0, 2)]
    spill = Spill(tmp_path)
    tally = Tally(_finalizer(), spill, turns)
    for index in (0, 2):
        _follow_up(tally, dispatcher, _exchange(index))
    assert dispatcher.take(9, 0) == (7, 3)
    assert turns[3] == b"hi"
    assert not dispatcher.has_more(9, 0)
    spill.close()
    records = merge([tmp_path], empty_requests(0), "lost")
    assert records.requests["outcome"].tolist() == [Outcome.MALFORMED, Outcome.OK]
    assert records.errors[0] == "the answer cannot be read: RecursionError: too deep"


def test_places_of_whole_answers_are_kept_by_the_model_that_they_name(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    tally = Tally(_finalizer(), spill)
    for seq, (model, ending) in enumerate([("a", DONE), ("b", DONE), ("b", b""), ("", DONE), ("a", DONE)]):
        text = delta("hi").replace(b'"m"', f'"{model}"'.encode())
        answer = Answer()
        answer.take(head(CHUNKED) + chunked([event(part) for part in (text, ending) if part]), 7)
        answer.close()
        tally.finalize(Exchange(seq, 0, seq, sent=5, end=7, answer=answer))
    spill.close()
    assert {name: list(places) for name, places in tally.models.items()} == {"a": [0, 4], "b": [1]}
