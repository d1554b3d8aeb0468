"""The client against the ledger: pairs, errors, dispersion, on records made by hand."""

import numpy as np
import pytest

from harness.doctor.compare import find_errors, spread, true_records
from harness.model import ErrorSpread
from harness.records.layout import Outcome
from tests.factories.recorded import MS, records

T0 = 5_000 * MS


def truth(received, writes, prompt=10):
    """Times in ms from t0, as the client's."""
    return {
        "received_ns": T0 + round(received * MS),
        "prompt_tokens": prompt,
        "write_ns": [T0 + round(write * MS) for write in writes],
    }


def told(*rows):
    return records(*({"prompt": 10, "tokens": len(row["texts"]), **row} for row in rows))


def test_what_the_client_adds_is_its_error():
    seen = told({"sent": 100, "texts": [151, 163, 171]})
    errors = find_errors(seen, [truth(100, [150, 160, 170])], T0)
    assert errors.ttft_ms == ErrorSpread(1, 1, 1)
    assert errors.itl_ms.max == pytest.approx(2)  # 12 against 10, 8 against 10
    assert errors.itl_ms.p50 == pytest.approx(2)
    assert errors.e2e_ms.max == pytest.approx(1)
    assert errors.p99_ms == pytest.approx(2, rel=0.01)


def test_an_answer_that_comes_whole_has_one_error():
    seen = told({"sent": 100, "texts": [151]})
    seen.requests["text_events"] = 0
    errors = find_errors(seen, [truth(99, [150])], T0)
    assert (errors.ttft_ms, errors.itl_ms) == (None, None)
    assert errors.p99_ms == errors.e2e_ms.max == 0
    assert find_errors(seen, [truth(99, [150, 160])], T0) is None


def test_when_a_server_got_what_it_answers_whole_is_known():
    """The way from a load node is compared with this."""
    seen = told({"sent": 100, "texts": [151]})
    seen.requests["text_events"] = 0
    assert true_records(seen, [truth(99, [150])], T0).requests["sent_ns"].tolist() == [99 * MS]


def test_a_late_server_is_no_error_of_the_client():
    seen = told({"sent": 0, "texts": [500, 900]})
    errors = find_errors(seen, [truth(0, [500, 900])], T0)
    assert errors.p99_ms == errors.e2e_ms.max == 0


def test_a_late_send_is_no_error_of_the_stamps():
    seen = told({"intended": 0, "sent": 30, "texts": [80]}, {"intended": 0, "sent": 31, "texts": [80, 90]})
    errors = find_errors(seen, [truth(30, [80]), truth(31, [80, 90])], T0)
    assert errors.ttft_ms.max == errors.e2e_ms.max == 0


def test_the_way_to_the_server_counts():
    errors = find_errors(told({"sent": 10, "texts": [60, 70]}), [truth(12, [60, 70])], T0)
    assert errors.ttft_ms.max == pytest.approx(2)


def test_requests_are_paired_by_length_and_order_not_by_place():
    seen = told(
        {"sent": 0, "texts": [50, 60], "prompt": 11},
        {"sent": 1, "texts": [151, 161], "prompt": 12},
        {"sent": 2, "texts": [252, 262], "prompt": 11},
    )
    ledger = [
        truth(2, [252, 262], prompt=11),
        truth(0.5, [151, 161], prompt=12),  # overtook the first on its way
        truth(0, [50, 60], prompt=11),
    ]
    errors = find_errors(seen, ledger, T0)
    assert errors.itl_ms.max == 0
    assert errors.ttft_ms.max == pytest.approx(0.5)
    assert seen.requests["sent_ns"].tolist() == [0, MS, 2 * MS]  # the caller's records are as they were


@pytest.mark.parametrize(
    "ledger",
    [
        [],
        [truth(0, [50, 60]), truth(0, [50, 60])],
        [truth(0, [50, 60], prompt=11)],
        [truth(0, [50, 60, 70])],
        [truth(0, [50])],
    ],
    ids=["no request", "one more request", "another prompt", "an event lost", "an event invented"],
)
def test_what_does_not_match_is_not_compared(ledger):
    assert find_errors(told({"sent": 0, "texts": [50, 60]}), ledger, T0) is None


def test_failed_requests_are_not_compared():
    seen = told({"sent": 0, "texts": [50, 60], "outcome": Outcome.TRUNCATED})
    assert find_errors(seen, [truth(0, [50, 60])], T0) is None


def test_spread_is_of_sizes():
    found = spread(np.array([-3.0, 1.0, 2.0]))
    assert (found.p50, found.max) == (2, 3)
