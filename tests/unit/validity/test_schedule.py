"""How late a request may leave, by the time that its first token takes."""

import pytest

from harness.metrics.view import RequestView
from harness.records.layout import UNKNOWN, Outcome, Phase
from harness.validity import Evidence, judge
from harness.validity.arrivals import lag_limit_ms
from tests.factories.recorded import facts, records

OPEN = {"kind": "rate", "value": 10.0, "arrival": "constant", "over_cap": "wait"}


def evidence(*rows, lag_ms=0.0):
    """Each row: TTFT in ms (None: it failed), and its phase."""
    made = [
        {"intended": 100 * place, "phase": phase[0] if phase else Phase.MEASURE}
        | ({"texts": [100 * place + ttft]} if ttft else {"outcome": Outcome.TIMEOUT})
        for place, (ttft, *phase) in enumerate(rows)
    ]
    lag = {"samples": 1000, **dict.fromkeys(("p50", "p90", "p95", "p99", "max"), lag_ms)}
    given = facts(load=OPEN, client__send_lag_ms=lag)
    return Evidence(RequestView(records(*made)), given)


@pytest.mark.parametrize(
    ("ttft", "limit_ms"),
    [
        ((20, 40, 60), 5),
        ((20, 100, 900), 5),
        ((20, 400, 900), 20),
        ((20, 400, 900, None), 0.05 * 650),  # the middle of 400 and 900
        ((20, 400, None, None), 5),  # half of them have no first token
        ((None, None), 5),
    ],
)
def test_a_request_may_leave_5_ms_late_or_a_twentieth_of_the_median_ttft(ttft, limit_ms):
    assert lag_limit_ms(evidence(*((one,) for one in ttft))) == pytest.approx(limit_ms)


@pytest.mark.parametrize(("per_s", "said"), [(10.5, None), (25.0, ("10.00/s sent", "25.00/s ± 35%"))])
def test_the_rate_of_another_tool_is_held_to_what_was_asked(per_s, said):
    """Its file does not say when each was due, so chance has its part: three standard errors of 100."""
    made = records(*({"sent": 100 * place, "texts": [100 * place + 50]} for place in range(100)))
    made.requests["intended_ns"] = UNKNOWN
    judged = judge(Evidence(RequestView(made), facts(load={**OPEN, "value": per_s})))
    found = next((one for one in judged.reasons if one.code == "rate-missed"), None)
    assert (found and (found.measured, found.limit)) == said


@pytest.mark.parametrize("due_ms", [0, 2])
@pytest.mark.parametrize(("late_ms", "verdict"), [(0, None), (5, None), (6, "INVALID")])
def test_a_burst_is_sent_at_its_rate_where_its_requests_leave_in_time(due_ms, late_ms, verdict):
    """12 requests due at one moment, or the last one 2 ms later: of so short a time the rate is any."""
    burst = [{"intended": 0, "texts": [100]}] * 11
    last = {"intended": due_ms, "sent": due_ms + late_ms, "texts": [100]}
    judged = judge(Evidence(RequestView(records(*burst, last)), facts(load=OPEN)))
    found = {one.code: one.verdict for one in judged.reasons}
    assert found.get("rate-missed") == verdict


def test_without_a_measured_request_the_limit_is_that_of_all():
    assert lag_limit_ms(evidence()) == 5
    assert lag_limit_ms(evidence((900, Phase.WARMUP))) == 5


@pytest.mark.parametrize(
    ("ttft", "lag_ms", "said"),
    [
        (100, 5.0, None),
        (100, 5.1, ("p99 5.1 ms", "5.0 ms")),
        (400, 20.0, None),
        (400, 20.1, ("p99 20.1 ms", "20.0 ms")),
    ],
)
def test_later_than_that_the_cell_is_invalid(ttft, lag_ms, said):
    reasons = {one.code: one for one in judge(evidence(*[(ttft,)] * 20, lag_ms=lag_ms)).reasons}
    found = reasons.get("schedule-lag")
    assert (found and (found.measured, found.limit)) == said
    assert found is None or found.verdict == "INVALID"
