"""The gate on a run's own limits: what keeps them, what misses them, and what is not known."""

import pytest

from harness.model import LoadPoint
from harness.verdicts.limits import limit_checks
from tests.factories.summaries import cell, summary

SLO = {"ttft_ms": {"p90": 100.0}}
C4 = LoadPoint("concurrency", 4)


def limited(p90, within, *, repeat=0, met=None, of=32, **changes):
    """A repeat of `vllm` whose TTFT p90 has this value; `within`: share of the requests inside 100 ms."""
    met = within >= 0.9 if met is None else met
    limit = {"metric": "ttft_ms", "share": "p90", "limit_ms": 100, "within": within, "met": met}
    slo = {"limits": [limit], "met": met, "good": round(of * within), "requests": of, "attainment": within}
    return cell("vllm", repeat=repeat, slo=slo, ttft_ms={"mean": p90, "p90": p90}, **changes)


INVALID = {"verdict": "INVALID", "reasons": []}


def refused(failed, *codes, of=32, late=0, **changes):
    """A repeat that this many failed requests made INVALID and these codes; `late`: others over 100 ms."""
    reasons = [
        {"code": code, "verdict": "INVALID", "measured": "", "limit": "", "hint": ""}
        for code in ("failed-requests", *codes)
    ]
    validity = {"verdict": "INVALID", "reasons": reasons}
    requests = {"ok": of - failed, "failed": failed}
    return limited(80, (of - failed - late) / of, of=of, validity=validity, requests=requests, **changes)


@pytest.mark.parametrize(
    ("cells", "row"),
    [
        ([limited(80, 1)], None),
        ([limited(140.4, 0.5)], ("limit", "140 ms, limit 100 ms")),
        (
            [limited(80, 1), limited(120, 0.8, repeat=1), limited(140, 0.8, repeat=2)],
            ("limit", "130 ms, limit 100 ms, in 2 of 3 repeats"),
        ),
        # Failed requests keep no limit, and the latency is of the others.
        ([limited(80, 0.81)], ("limit", "81% of the requests inside, limit 100 ms")),
        ([limited(None, 0.5)], ("limit", "50% of the requests inside, limit 100 ms")),
        ([limited(80, 1, validity=INVALID)], ("missing", "no valid repeat")),
        ([limited(80, 1), limited(900, 0, repeat=1, validity=INVALID)], None),
        ([cell("vllm")], ("missing", "a latency with a limit is not known")),
        # No figure reads as the limit that it misses.
        ([limited(100.3, 0.5)], ("limit", "100.3 ms, limit 100 ms")),
        ([limited(80, 0.89996)], ("limit", "89.996% of the requests inside, limit 100 ms")),
        # Failed requests are the server's, also where they are so many that the repeat is INVALID.
        ([refused(4)], ("limit", "87.5% of the requests inside, limit 100 ms")),
        (
            [limited(80, 1), refused(4, repeat=1)],
            ("limit", "87.5% of the requests inside, limit 100 ms, in 1 of 2 repeats"),
        ),
        ([refused(3)], ("missing", "no valid repeat")),
        ([refused(3, of=30)], ("missing", "no valid repeat")),
        # Failed requests alone are not too many: (1 - 0.9) * 30 is a little below 3.
        ([refused(3, of=30, late=3)], ("missing", "no valid repeat")),
        ([cell("vllm"), refused(3, repeat=1)], ("missing", "a latency with a limit is not known")),
        ([refused(4, "client-busy")], ("missing", "no valid repeat")),
    ],
)
def test_a_limit_fails_where_a_valid_repeat_misses_it_or_none_is_there(cells, row):
    (check,) = limit_checks(summary(*cells), SLO, [("vllm", C4)] * len(cells))
    assert (check.label, check.load, check.words) == ("vllm", C4, "TTFT p90 ≤ 100 ms")
    assert (check.row and (check.row.kind, check.row.why)) == row
    assert check.row is None or (check.row.label, check.row.metric) == ("vllm", "ttft_ms.p90")


def test_each_backend_load_and_limit_has_a_check():
    cells = [
        cell(label, {"kind": "concurrency", "value": load}) for label in ("vllm", "tgi") for load in (1, 4)
    ]
    slo = {"ttft_ms": {"p50": 1.0, "p99": 2.0}, "e2e_ms": {"max": 3.0}}
    planned = [(each.label, each.point) for each in cells]
    checks = limit_checks(summary(*cells), slo, planned)
    found = [(check.label, check.load.value, check.words) for check in checks]
    words = ("TTFT p50 ≤ 1 ms", "TTFT p99 ≤ 2 ms", "E2E max ≤ 3 ms")
    assert found == [(label, load, each) for label in ("vllm", "tgi") for load in (1, 4) for each in words]


def test_what_was_planned_and_never_measured_is_missing():
    """A server that was gone leaves no cell behind."""
    planned = [("vllm", C4), ("vllm", LoadPoint("concurrency", 8)), ("gone", C4)]
    checks = limit_checks(summary(limited(80, 1)), SLO, planned)
    rows = [
        (check.label, check.load.label, check.row and (check.row.kind, check.row.why)) for check in checks
    ]
    missing = ("missing", "not measured")
    assert rows == [("vllm", "c4", None), ("vllm", "c8", missing), ("gone", "c4", missing)]
