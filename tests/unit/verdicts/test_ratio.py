"""Ratios of two backends from one number per run and from pooled requests, on figures made by hand."""

import numpy as np
import pytest

from harness.model import Imported, LoadPoint
from harness.stats.runs import Either, Shift
from harness.verdicts.ratio import estimate, ratio, share_of
from harness.verdicts.run_values import series
from tests.factories.documents import changed, made
from tests.factories.summaries import UNSTEADY, cell

P50, P95 = "ttft_ms.p50", "ttft_ms.p95"
POINT = LoadPoint("concurrency", 4)


def of(label, p50s, requests=None, work="w"):
    """A run for each median; `requests` are the times in each, of which no run has a p95."""
    made = [
        changed(cell(label, repeat=index, workload_sha256=f"{work}{index}"), ttft_ms={"p50": p50})
        for index, p50 in enumerate(p50s)
    ]
    samples = {one.cell: {"ttft_ms": np.asarray(requests)} for one in made} if requests is not None else {}
    (found,) = series(made, POINT, samples)
    return found


def compared(a, b, metric=P50, least=3):
    return ratio(a, b, metric, least, 0.95)


def test_paired_runs_have_the_geometric_mean_of_their_ratios():
    """2 × 2 × 8 = 32 = 2^5, so that its logarithm is 5 / 3 of that of 2."""
    found = compared(of("a", [20, 40, 800]), of("b", [10, 20, 100]))
    assert (found.runs, found.paired, found.method, found.zero) == ((3, 3), True, "runs", False)
    assert found.shift.estimate == pytest.approx(np.log(2) * 5 / 3)
    assert found.shift.freedom == 2
    assert found.difference.estimate == pytest.approx((10 + 20 + 700) / 3)
    assert found.runs_words(None) == "3 pairs of runs"


def test_runs_of_other_requests_are_two_samples():
    sides = of("a", [20, 20, 20]), of("b", [10, 10, 10, 10], work="x")
    found = compared(*sides)
    assert (found.runs, found.paired) == ((3, 4), False)
    assert found.shift.estimate == pytest.approx(np.log(2))
    assert found.runs_words(None) == "3 and 4 runs"
    assert found.runs_words(sides) == "3 runs of a and 4 of b"


def test_runs_of_which_too_few_have_a_partner_are_two_samples():
    """Of four repeats a lacks the first and b the last: two are common."""
    (a,), (b,) = (
        series(of(label, [p50] * 4).cells[part], POINT, {})
        for label, p50, part in (("a", 20, slice(1, 4)), ("b", 10, slice(3)))
    )
    found = compared(a, b)
    assert (found.runs, found.paired) == ((3, 3), False)
    assert found.shift.estimate == pytest.approx(np.log(2))


def test_starts_of_which_too_few_have_a_partner_are_two_samples():
    """Three starts of two blocks each, of which two have partners: four blocks, and too few starts."""

    def in_starts(label, p50, starts):
        made = [
            changed(
                cell(
                    label,
                    repeat=2 * start + block,
                    workload_sha256=f"w{2 * start + block}",
                    start_number=start,
                ),
                ttft_ms={"p50": p50},
            )
            for start in starts
            for block in range(2)
        ]
        return series(made, POINT, {})[0]

    found = compared(in_starts("a", 20.0, (1, 2, 3)), in_starts("b", 10.0, (0, 1, 2)))
    assert (found.runs, found.paired, len(found.shifts)) == ((3, 3), False, 1)


def test_runs_that_are_left_out_take_no_verdict_by_their_partners():
    """The first run of a is left out. Without it one pair is common, with it two; three are needed."""
    a = list(of("a", [20] * 5).cells)
    a[0] = changed(a[0], validity=UNSTEADY)
    (a,), (b,) = series([a[0], *a[2:]], POINT, {}), series(of("b", [10] * 3).cells, POINT, {})
    found = compared(a, b)
    assert (found.runs, found.paired) == ((3, 3), False)
    assert found.shift.estimate == pytest.approx(np.log(2))


def test_repeats_of_the_same_requests_are_paired_by_their_number_where_one_is_missing():
    """Each repeat is twice as slow as the one before, on both; a lacks the first."""
    a, b = (
        [changed(found, workload_sha256="trace") for found in of(label, p50s).cells]
        for label, p50s in (("a", [11, 22, 44, 88]), ("b", [10, 20, 40, 80]))
    )
    (late,), (whole,) = series(a[1:], POINT, {}), series(b, POINT, {})
    found = compared(late, whole)
    assert (found.runs, found.paired) == ((3, 3), True)
    assert found.shift.estimate == pytest.approx(np.log(1.1))


def test_too_few_runs_and_values_of_zero_have_no_ratio():
    few = compared(of("a", [20, 20]), of("b", [10, 10]))
    assert (few.runs, few.shift, few.zero, few.difference) == ((2, 2), None, False, None)
    zero = compared(of("a", [20, 20, 0]), of("b", [10, 10, 10]))
    assert (zero.runs, zero.shift, zero.zero) == ((3, 3), None, True)


def test_runs_are_those_that_count_where_one_that_is_left_out_has_no_logarithm():
    """The fourth run of a is not steady and has a value of 0: with it there is no ratio."""
    steady, (left_out,) = of("a", [20, 20, 20]).cells, of("a", [0]).cells
    left_out = changed(left_out, cell="a-r3", repeat=3, workload_sha256="w3", validity=UNSTEADY)
    (a,) = series([*steady, left_out], POINT, {})
    found = compared(a, of("b", [10, 10, 10, 10]))
    assert (found.runs, found.zero, found.shift) == ((3, 3), True, None)


def test_a_percentile_of_all_requests_is_compared_where_runs_have_none():
    """Every request of a takes twice as long, in each of three runs of forty."""
    times = np.linspace(100, 200, 40)
    found = compared(of("a", [1] * 3, 2 * times), of("b", [1] * 3, times), P95)
    assert (found.runs, found.paired, found.method) == ((3, 3), True, "pooled")
    assert found.shift.estimate == pytest.approx(np.log(2))
    assert found.runs_words(None) == "3 pairs of runs, requests pooled"


@pytest.mark.parametrize(
    "requests",
    [[0.0] * 40, [1.0] * 20 + [np.inf] * 20, [1.0] * 19],
    ids=["of zero", "of what never came", "of 57 requests, where 59 are needed"],
)
def test_a_percentile_of_all_requests_that_is_no_number_has_no_ratio(requests):
    found = compared(of("a", [1] * 3, requests), of("b", [1] * 3, [5.0] * 40), P95)
    assert (found.runs, found.method, found.shifts, found.shift) == ((0, 0), "runs", (), None)


def test_two_runs_and_a_mean_are_not_pooled():
    times = [5.0] * 60
    assert compared(of("a", [1] * 2, times), of("b", [1] * 2, times), P95).method == "runs"
    lacking = [changed(one, ttft_ms={"mean": None}) for one in of("a", [1] * 3).cells]
    samples = {one.cell: {"ttft_ms": np.array(times)} for one in lacking}
    (a,) = series(lacking, POINT, samples)
    assert compared(a, a, "ttft_ms.mean").method == "runs"


@pytest.mark.parametrize(
    ("metric", "share"),
    [
        ("ttft_ms.p99", 0.99),
        ("e2e_ms.p50", 0.5),
        ("ttft_ms.mean", None),
        ("ttft_ms.pool", None),
        ("requests_per_s", None),
    ],
)
def test_the_share_of_a_metric_is_that_of_its_percentile(metric, share):
    assert share_of(metric) == share


def test_an_estimate_has_ends_from_two_runs_on():
    """√(50 × 200) = 100; both logarithms are ln 2 away, and t at 97.5% of one degree is 12.706."""
    assert estimate(of("a", [50]), P50).interval == (None, pytest.approx(50), None)
    two = estimate(of("a", [50, 200]), P50)
    assert (two.runs, two.method) == (2, "runs")
    low, middle, high = two.interval
    assert middle == pytest.approx(100)
    assert np.log([middle / low, high / middle]) == pytest.approx(12.706 * np.log(2), rel=1e-4)
    assert estimate(of("a", [1]), P95) is None


def test_an_estimate_of_values_that_reach_zero_is_their_mean():
    assert estimate(of("a", [0, 4]), P50).interval[1] == 2


def test_an_estimate_of_all_requests_needs_two_runs_and_enough_requests():
    found = estimate(of("a", [1, 1], [7.0] * 30), P95)
    assert (found.runs, found.method, found.interval) == (2, "pooled", pytest.approx((7, 7, 7)))
    assert estimate(of("a", [1], [7.0] * 60), P95) is None
    assert estimate(of("a", [1, 1], [7.0] * 29), P95) is None
    assert estimate(of("a", [1, 1], [0.0] * 60), P95) is None


def of_file(label, p50s, level="summary"):
    file = made(Imported, level=level)
    cells = [changed(one, imported=file) for one in of(label, p50s, work=label).cells]
    (found,) = series(cells, POINT, {})
    return found


@pytest.mark.parametrize(
    ("figures", "step"),
    [([12.3] * 3, 0.1), ([12.3, 12.34, 12.3], 0.01), ([400.0] * 3, 1.0), ([0.0123 * 1e3] * 3, 0.1)],
)
def test_equal_figures_of_files_are_as_unsure_as_their_digits(figures, step):
    """A uniform error of one step in the last digit, common to equal figures: step / √12."""
    error = step / np.sqrt(12)
    found = compared(of_file("a", figures), of_file("b", figures))
    assert found.shift.error >= np.sqrt(2) * error / np.mean(figures) * (1 - 1e-9)
    assert 0 < found.shift.p_beyond(-1e-9, 1e-9) <= 1
    low, middle, high = estimate(of_file("a", figures), P50).interval
    assert high - low >= 2 * 4.30 * error * 0.99
    assert low < middle < high


def test_a_difference_beyond_the_digits_of_files_stays_sure():
    found = compared(of_file("a", [12.9] * 3), of_file("b", [12.3] * 3))
    assert 0 < found.shift.p_beyond(0, 0) < 0.01
    assert found.difference.low > 0


def test_more_runs_do_not_lessen_the_error_of_equal_rounded_figures():
    """They may all be off by the same, so its share of the error stays, also of fewer independent values."""
    few, many = (compared(of_file("a", [12.0] * runs), of_file("b", [12.0] * runs)).shift for runs in (3, 30))
    assert few.error == many.error == few.least == pytest.approx(np.sqrt(2 / 12) / 12)
    assert few.of_fewer(0.5).least == few.least
    assert Either((few, Shift(0.1, 0.001, 4))).least == few.least
    assert compared(of_records("a", [12.0] * 3), of_records("b", [12.0] * 3)).shift.least == 0


@pytest.mark.parametrize("level", ["records", "answers"])
def test_figures_that_were_computed_from_records_have_all_digits(level):
    assert compared(of_file("a", [12.5] * 3, level), of_file("b", [12.5] * 3, level)).shift.error == 0


def test_full_digits_of_files_add_nothing():
    exact = [100 / 7, 101 / 7, 102 / 7]
    found, plain = (compared(side("a", exact), side("b", exact)) for side in (of_file, of_records))
    assert found.shift.error == plain.shift.error


def of_records(label, p50s):
    return of(label, p50s, work=label)
