import json
from array import array

import pytest

from harness.mockserver.ledger import Ledger, Outcome, Record
from harness.mockserver.statistics import document, statistics

MS = 1_000_000


def record(outcome: Outcome, *writes_ms: float, received_ms: float = 0, late_us: int = 0) -> Record:
    writes = array("q", (round(at * MS) for at in writes_ms))
    return Record(
        number=0,
        path="/v1/completions",
        received_ns=round(received_ms * MS),
        read_ns=round(received_ms * MS) + 2000,
        outcome=outcome,
        planned_tokens=len(writes),
        tokens=len(writes),
        write_ns=writes,
        due_ns=array("q", (at - late_us * 1000 for at in writes)),
    )


def test_statistics_of_complete_answers_only() -> None:
    ledger = Ledger()
    ledger.add(record("complete", 101, 151, 201, received_ms=1, late_us=5))
    ledger.add(record("complete", 110, received_ms=10, late_us=5))
    ledger.add(record("aborted", 900, 2000))
    ledger.add(record("faulted", 900))
    ledger.add(record("refused"))
    ledger.add(record("open", 900))
    truth = statistics(ledger)
    counts = {"requests": 6, "complete": 2, "aborted": 1, "faulted": 1, "refused": 1, "open": 1}
    assert {name: truth[name] for name in counts} == counts
    assert truth["tokens"] == 8
    assert truth["ttft_ms"] == {
        "n": 2,
        "mean": 100,
        "min": 100,
        "p50": 100,
        "p90": 100,
        "p99": 100,
        "max": 100,
    }
    assert (truth["itl_ms"]["n"], truth["itl_ms"]["mean"]) == (2, 50)
    assert (truth["tpot_ms"]["n"], truth["tpot_ms"]["mean"]) == (1, 50)
    assert truth["e2e_ms"]["max"] == 200
    assert (truth["schedule_error_us"]["n"], truth["schedule_error_us"]["mean"]) == (4, 5)
    assert truth["read_lag_us"]["mean"] == 2


def test_an_empty_ledger_has_no_statistics_but_says_so() -> None:
    assert statistics(Ledger())["ttft_ms"] == {"n": 0}
    assert json.loads(json.dumps(document(Ledger())))["records"] == []


def test_reset_keeps_what_is_still_open() -> None:
    ledger = Ledger()
    ledger.add(record("complete", 1))
    ledger.add(record("open", 1))
    ledger.blocked_writes = 3
    ledger.reset()
    assert [one.outcome for one in ledger.records] == ["open"]
    assert ledger.blocked_writes == 0


def test_the_last_requests_only() -> None:
    ledger = Ledger(keep=2)
    for received_ms in (1, 2, 3):
        ledger.add(record("complete", 100, received_ms=received_ms))
    truth = statistics(ledger)
    assert (truth["requests"], truth["dropped"], truth["ttft_ms"]["mean"]) == (2, 1, 97.5)
    ledger.reset()
    assert (len(ledger.records), ledger.records.maxlen, ledger.dropped) == (0, 2, 0)


def test_records_as_json() -> None:
    value = json.loads(json.dumps(record("complete", 1, 2, late_us=1).as_json()))
    assert value["write_ns"] == [MS, 2 * MS]
    assert value["due_ns"] == [MS - 1000, 2 * MS - 1000]
    assert value["outcome"] == "complete"


@pytest.mark.parametrize(
    ("status", "planned", "written", "outcome"),
    [(200, 3, 3, "complete"), (200, 3, 2, "faulted"), (429, 0, 0, "refused")],
)
def test_outcome_of_an_answer_written_to_its_end(
    status: int, planned: int, written: int, outcome: str
) -> None:
    one = Record(0, "/", 0, 0, status=status, planned_tokens=planned, tokens=written)
    assert one.outcome_when_written() == outcome
