"""Verdicts on hand-made summaries: every word, and why it is that one."""

import numpy as np
import pytest

from harness.compare import Rules, compare
from tests.unit.report_summaries import cell, verdict

ONE = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50",))
NOISE = np.array([0.2, -0.1, 0.1, -0.2, 0.0])  # of runs, in per cent


def cells(label, p50, *, noise=NOISE, repeats=5, load=None, work="w", **changes):
    """One cell per repeat; backends take turns in time by their label."""
    return [
        cell(
            label,
            load,
            repeat,
            p50=p50 * (1 + noise[repeat] / 100),
            workload_sha256=f"{work}{repeat}",
            started_unix_ns=1000 * repeat + sum(map(ord, label)),
            **changes,
        )
        for repeat in range(repeats)
    ]


def only(found):
    (one,) = found["comparison"]
    return one


def judged(a, b, rules=ONE):
    return only(compare([*a, *b], rules))


def test_slower_beyond_the_floor():
    one = judged(cells("a", 110), cells("b", 100, noise=-NOISE))
    assert one["verdict"] == "slower"
    low, middle, high = one["ratio"]
    assert middle == pytest.approx(1.1)
    assert 1.09 < low < middle < high < 1.11
    assert one["difference"][1] == pytest.approx(10)
    assert one["runs"] == [5, 5]
    assert one["paired"]
    assert one["primary"]
    assert one["p_holm"] < 0.01
    assert one["why"].startswith("10 % higher (")
    assert one["why"].endswith("over 5 pairs of runs, beyond the floor of 2 %")


def test_of_a_rate_more_is_better():
    rules = Rules(primary="requests_per_s", metrics=("requests_per_s",))
    a = [made | {"requests_per_s": 11 + 0.01 * i} for i, made in enumerate(cells("a", 1))]
    b = [made | {"requests_per_s": 10 + 0.01 * i} for i, made in enumerate(cells("b", 1))]
    assert judged(a, b, rules)["verdict"] == "faster"
    assert judged(b, a, rules)["verdict"] == "slower"


def test_a_sure_difference_below_the_floor_is_no_finding():
    one = judged(cells("a", 101.5), cells("b", 100))
    assert one["ratio"][0] > 1.01
    assert one["verdict"] == "same"
    assert one["why"].endswith("within 5 %")


def test_a_wide_interval_is_not_the_same():
    one = judged(cells("a", 103, noise=20 * NOISE), cells("b", 100, noise=-20 * NOISE))
    assert one["ratio"][0] < 1 < one["ratio"][2]
    assert one["verdict"] == "not enough runs"
    assert "neither beyond 2 % nor within 5 %; about" in one["why"]


def test_two_runs_are_not_enough_however_far_apart():
    one = judged(cells("a", 900, repeats=2), cells("b", 100, repeats=2))
    assert (one["verdict"], one["ratio"], one["p_holm"]) == ("not enough runs", None, None)
    assert one["why"] == "2 and 2 runs, 3 are needed"


def test_invalid_cells_never_enter():
    a, b = cells("a", 110), cells("b", 100)
    bad = verdict("INVALID", "client-busy", "99 %", "90 %", "")
    a[0] = a[0] | {"validity": bad, "ttft_ms": {"p50": 1e9}}
    assert judged(a, b)["runs"] == [4, 4]
    a[1:3] = [made | {"validity": bad} for made in a[1:3]]
    one = judged(a, b)
    assert one["verdict"] == "not enough runs"
    assert "3 of a INVALID" in one["why"]
    labels = {(made["label"], made["runs"]) for made in compare([*a, *b], ONE)["estimates"]}
    assert labels == {("a", 2), ("b", 5)}


def test_runs_of_other_requests_are_neither_paired_nor_comparable():
    one = judged(cells("a", 110, work="one"), cells("b", 100, work="other"))
    assert not one["paired"]
    assert one["ratio"][0] > 1.02
    assert one["verdict"] == "not comparable"
    assert one["why"].startswith("the requests: ")


def test_what_is_unequal_refuses_the_metrics_it_touches():
    """Answers of other lengths: no verdict on whole answers; alone, one on the first token."""
    rules = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50", "e2e_ms.p50", "requests_per_s"))
    a, b = (
        cells(label, p50, conditions={"output_tokens_mean": mean}, load={"kind": "concurrency", "value": 1})
        for label, p50, mean in (("a", 110, 32.0), ("b", 100, 16.0))
    )
    found = compare([*a, *b], rules)["comparison"]
    assert [one["verdict"] for one in found] == ["slower", "not comparable", "not comparable"]
    assert found[1]["why"].startswith("tokens per answer: 32.0 (a), 16.0 (b)")
    assert found[1]["p_holm"] is None


def test_all_of_one_before_all_of_the_other_is_refused():
    a = cells("a", 110)
    b = [made | {"started_unix_ns": made["started_unix_ns"] + 10_000} for made in cells("b", 100)]
    one = judged(a, b)
    assert one["verdict"] == "not comparable"
    assert one["why"] == "all runs of a came before all runs of b: drift is not ruled out"
    assert one["ratio"] is not None


def test_a_null_percentile_says_why():
    reason = "16 samples; p90 needs 29"
    rules = Rules(primary="ttft_ms.p90", metrics=("ttft_ms.p90",))
    a, b = (
        [made | {"ttft_ms": {"p90": None}, "nulls": {"ttft_ms.p90": reason}} for made in cells(label, 1)]
        for label in "ab"
    )
    one = judged(a, b, rules)
    assert (one["verdict"], one["why"]) == ("not enough runs", f"0 and 0 runs, 3 are needed; {reason}")


def test_a_zero_has_no_ratio():
    one = judged(cells("a", 0.0), cells("b", 100))
    assert (one["verdict"], one["why"]) == ("not enough runs", "a value is 0: there is no ratio")


def test_each_declared_metric_makes_the_others_harder():
    """One of these noises is shown alone and not among four."""
    noise = np.array([1.5, -1.2, 0.9, -1.6, 0.4])
    a, b = cells("a", 105, noise=1.5 * noise), cells("b", 100, noise=np.zeros(5))
    assert judged(a, b)["verdict"] == "slower"
    names = ("ttft_ms.p50", "requests_per_s", "output_tokens_per_s", "input_tokens_per_s")
    found = compare([*a, *b], Rules(primary="ttft_ms.p50", metrics=names))["comparison"]
    assert found[0]["verdict"] == "not enough runs"
    assert "beyond 2 % by itself, but not as one of 4 metrics" in found[0]["why"]
    assert [one["verdict"] for one in found[1:]] == ["same"] * 3


def test_a_measured_floor_is_asked_for_where_it_was_measured():
    floors = {"b": {"c4": {"ttft_ms.p50": 0.12}}}
    rules = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50",), measured_floors=floors)
    quiet = {"kind": "concurrency", "value": 1}
    assert judged(cells("a", 110), cells("b", 100), rules)["verdict"] == "same"
    assert judged(cells("a", 110, load=quiet), cells("b", 100, load=quiet), rules)["verdict"] == "slower"


def test_one_run_has_an_estimate_and_no_interval():
    (first, *_) = compare(cells("a", 100, repeats=1), ONE)["estimates"]
    assert (first["metric"], first["runs"]) == ("ttft_ms.mean", 1)
    assert first["interval"] == [None, pytest.approx(100.2), None]


def test_nothing_measured_is_nothing_to_compare():
    found = compare([], ONE)
    assert (found["comparison"], found["ranking"], found["rankings"]) == ([], {}, [])


def pooled_p99(a_factor, count=70):
    """Five runs of 70 requests: none has a p99, all together have."""
    random = np.random.default_rng(5)
    rules = Rules(primary="ttft_ms.p99", metrics=("ttft_ms.p99",))
    measured, samples = [], {}
    for label, factor in (("a", a_factor), ("b", 1.0)):
        for made in cells(label, 100):
            measured.append(made | {"ttft_ms": {"p99": None}})
            samples[made["cell"]] = np.sort(factor * np.exp(random.normal(4, 0.2, count)))
    return compare(measured, rules, {name: {"ttft_ms": values} for name, values in samples.items()})


def test_a_percentile_that_no_run_has_is_taken_of_all_their_requests():
    found = pooled_p99(1.5)
    one = only(found)
    assert (one["verdict"], one["method"], one["runs"]) == ("slower", "pooled", [5, 5])
    assert one["ratio"][0] < 1.5 < one["ratio"][2]
    assert one["difference"] is None
    assert one["why"].endswith("over 5 pairs of runs, requests pooled, beyond the floor of 2 %")
    estimate = next(made for made in found["estimates"] if made["metric"] == "ttft_ms.p99")
    assert estimate["method"] == "pooled"
    assert estimate["interval"][0] < 1.5 * np.exp(4 + 2.326 * 0.2) < estimate["interval"][2]


def test_too_few_requests_in_all_runs_have_none():
    one = only(pooled_p99(1.5, count=50))
    assert (one["verdict"], one["ratio"]) == ("not enough runs", None)
