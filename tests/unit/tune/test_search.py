"""Coordinate descent with successive halving, on functions whose best value is known."""

import pytest

from harness.tune.search import LEAST_GAIN, SHARES, Search


class Bench:
    """Counts its trials; each takes its share of a second."""

    def __init__(self, speed, budget=1e9):
        self.speed, self.budget, self.time, self.tried = speed, budget, 0.0, []

    def measure(self, values, share):
        self.time += share
        self.tried.append((dict(values), share))
        return self.speed(values)

    def best(self, tunable, start, better="higher"):
        return Search(tunable, better, self.measure, lambda: self.time >= self.budget).best(start)


def separable(values):
    return 100 - abs(values["a"] - 8) - 2 * abs(values["b"] - 3)


TUNABLE = {"a": (1, 2, 4, 8, 16), "b": (1, 2, 3, 4)}


def test_the_best_of_each_key_is_found():
    assert Bench(separable).best(TUNABLE, {"a": 1, "b": 1}) == {"a": 8, "b": 3}
    slower = Bench(lambda values: 1000 / separable(values))
    assert slower.best(TUNABLE, {"a": 1, "b": 1}, "lower") == {"a": 8, "b": 3}


def test_keys_that_depend_on_each_other_need_a_second_pass():
    def speed(values):
        return 100 - 5 * abs(values["a"] - values["b"]) - abs(values["b"] - 3)

    assert Bench(speed).best({"a": (1, 2, 3, 4), "b": (1, 2, 3, 4)}, {"a": 1, "b": 4}) == {"a": 4, "b": 4}
    ridge = Bench(lambda v: 100 - 10 * (v["a"] != v["b"]) + 20 * (v["a"] == 2) + 40 * (v["b"] == 2))
    assert ridge.best({"a": (1, 2), "b": (1, 2)}, {"a": 1, "b": 1}) == {"a": 2, "b": 2}


def test_only_the_better_half_gets_longer_trials_and_nothing_is_measured_twice():
    bench = Bench(separable)
    bench.best({"a": (1, 2, 4, 8, 16)}, {"a": 2, "b": 3})
    tried = {share: [values["a"] for values, of in bench.tried if of == share] for share in SHARES}
    assert tried[0.25] == [2, 1, 4, 8, 16]
    assert set(tried[0.5]) == {2, 4, 8}  # 1 and 16 were no better than 2
    assert set(tried[1.0]) == {2, 8}
    assert len(bench.tried) == len({(str(values), share) for values, share in bench.tried})


def test_a_gain_below_the_least_changes_nothing():
    def speed(values):
        return 100 * (1 + (LEAST_GAIN / 2 if values["a"] == 2 else 0))

    assert Bench(speed).best({"a": (1, 2)}, {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("better", "values", "best"),
    [
        ("higher", {1: 0.0, 2: 0.5, 3: 4.0, 4: 0.2, 5: 0.0}, 3),  # goodput of a default that keeps no limit
        ("higher", {1: 0.0, 2: 0.0, 3: 0.0, 4: None, 5: 0.0}, 1),
        ("lower", {1: 7.0, 2: 5.0, 3: 0.0, 4: 6.0, 5: 7.0}, 3),
        ("lower", {1: -2.0, 2: -1.0, 3: 5.0, 4: -4.0, 5: 9.0}, 1),  # what is below 0 is noise alone
    ],
)
def test_what_is_better_than_nothing_is_found_and_no_ratio_is_taken_of_what_is_below_0(better, values, best):
    bench = Bench(lambda v: values[v["a"]])
    assert bench.best({"a": (1, 2, 3, 4, 5)}, {"a": 1}, better) == {"a": best}


def test_failed_trials_are_passed_over_and_a_default_without_a_figure_is_none():
    bench = Bench(lambda values: None if values["a"] == 8 else separable(values))
    assert bench.best(TUNABLE, {"a": 1, "b": 3})["a"] == 4
    assert Bench(lambda values: None).best(TUNABLE, {"a": 1, "b": 1}) is None


def test_shares_too_short_for_the_metric_are_left_out():
    bench = Bench(separable)
    measure = bench.measure
    bench.measure = lambda values, share: None if share < 0.5 else measure(values, share)
    assert bench.best({"a": (1, 8)}, {"a": 1, "b": 3})["a"] == 8
    assert {share for _, share in bench.tried} == {0.5, 1.0}


def test_only_the_shares_that_are_given_are_tried():
    bench = Bench(separable)
    search = Search({"a": (1, 8)}, "higher", bench.measure, lambda: False, (0.5, 1.0))
    assert search.best({"a": 1, "b": 3}) == {"a": 8, "b": 3}
    assert {share for _, share in bench.tried} == {0.5, 1.0}


@pytest.mark.parametrize("budget", [0.3, 1.0, 2.0, 5.0])
def test_no_trial_begins_after_the_budget(budget):
    bench = Bench(separable, budget)
    bench.best(TUNABLE, {"a": 1, "b": 1})
    assert bench.time - bench.tried[-1][1] < budget
    assert bench.time <= budget + max(SHARES)


def test_candidates_that_there_was_no_time_to_compare_are_not_taken():
    bench = Bench(separable, budget=0.5)  # the default and one candidate of four
    assert bench.best({"a": (1, 2, 4, 8, 16)}, {"a": 1, "b": 3}) == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("budget", "start", "unfinished"),
    [(0.5, 1, {"a": 2, "b": 3}), (0.5, 8, None), (0.25, 1, None), (1e9, 1, None)],
)
def test_what_was_better_when_the_time_ended_is_known(budget, start, unfinished):
    bench = Bench(separable, budget)
    search = Search({"a": (1, 2, 4, 8)}, "higher", bench.measure, lambda: bench.time >= budget)
    bench.speed = lambda values: 100 + 10 * values["a"]
    search.best({"a": start, "b": 3})
    assert search.unfinished == unfinished
