"""What a worker records of an answer that its parsers did not foresee."""

from pathlib import Path

import numpy as np
import pytest

from harness.apis import Api
from harness.load.finalize import Exchange, Finalizer
from harness.load.http1 import Answer
from harness.load.job import Promised
from harness.load.spill import Spill, merge
from harness.load.worker import Tally
from harness.records.layout import Outcome, empty_requests
from harness.untrusted import Secrets
from tests.factories.answers import CHUNKED, DONE, FINISH, chunked, delta, event, head

_WIRE = head(CHUNKED) + chunked([event(delta("hi")), event(FINISH), event(DONE)])


def test_an_answer_that_nobody_foresaw_has_a_record_and_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(body: bytes, api: Api, *, ended: bool) -> None:
        raise KeyError(body[:4])

    spill = Spill(tmp_path)
    finalizer = Finalizer(
        0,
        lambda taken: np.asarray(taken, np.int64),
        Secrets([]),
        0,
        0,
        closed_loop=False,
        promised=Promised(),
    )
    tally = Tally(finalizer, spill)
    for seq in range(3):
        answer = Answer()
        answer.take(_WIRE, 7)
        answer.close()
        with monkeypatch.context() as patched:
            if seq == 1:
                patched.setattr("harness.load.finalize.parse_events", fail)
            tally.finalize(Exchange(seq, 0, sent=5, end=7, answer=answer))
    spill.close()
    records = merge([tmp_path], empty_requests(0), "lost")
    assert records.requests["outcome"].tolist() == [Outcome.OK, Outcome.MALFORMED, Outcome.OK]
    assert records.errors[1] == "the answer cannot be read: KeyError: b'data'"
    assert (tally.done, tally.failed) == (2, 1)
