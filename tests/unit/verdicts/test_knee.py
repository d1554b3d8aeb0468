"""The knee of curves whose crossing is known."""

import pytest

from harness.verdicts.knee import filled, knees, words
from tests.factories.summaries import cell


def at(size, rate, repeat=0, **changes):
    """Ten prefixes that leave 100 tokens each, at a cache of `1000 / size` tokens."""
    held = {
        "prefixes": 10,
        "held_tokens": 100,
        "kv_tokens": round(1000 / size) if size else 1000,
        "in_flight": 1,
        "rest_s": 0,
    }
    load = {"kind": "working-set", "value": size, "working_set": held}
    conditions = {"prompt_tokens": {"mean": None, "first": [], "sha256": None}}
    given = {"prefix_cache_hit_rate": rate, "prefix_cache_ideal": 0.9, "conditions": conditions}
    return cell("vllm", load, repeat, **given | changes)


def knee(*cells):
    (found,) = knees(cells)
    return found


def said(*cells):
    return " ".join(words(knee(*cells)))


def test_a_step_lies_between_the_points_around_it():
    found = knee(at(0.5, 0.8), at(1, 0.8), at(2, 0.0), at(8, 0.0))
    assert found.interval == pytest.approx((1, 2))
    assert found.value == pytest.approx(2**0.5)  # half-way down, half-way along the logarithm
    assert (found.repeats, found.crossed, found.fits) == (1, 1, 0.8)


def test_the_interval_spans_the_points_of_all_repeats():
    curves = [
        [(0.5, 0.8), (1, 0.7), (2, 0.1)],
        [(0.5, 0.8), (1, 0.3), (2, 0.1)],
        [(0.5, 0.8), (1, 0.6), (2, 0)],
    ]
    found = knee(*(at(*point, repeat) for repeat, curve in enumerate(curves) for point in curve))
    assert found.interval == pytest.approx((0.5, 2))
    assert found.repeats == found.crossed == 3
    assert 1 < found.value < 2  # the median of 1.41, 0.87 and 1.26
    assert found.value == pytest.approx(2 ** (1 / 3), rel=1e-6)


def test_what_could_be_found_is_of_working_sets_and_not_of_the_control():
    control = at(0, 0.05, prefix_cache_ideal=0.99)
    assert knee(control, at(0.5, 0.8), at(1, 0.8, prefix_cache_ideal=None), at(2, 0.0)).ideal == 0.9


def test_a_hit_rate_that_does_not_fall_has_no_knee():
    found = knee(at(0.5, 0.8), at(8, 0.7))
    assert (found.value, found.interval, found.crossed) == (None, None, 0)
    assert said(at(0.5, 0.8), at(8, 0.7)) == (
        "vllm: the hit rate stays above half of 80% up to 8 × the KV cache (1 repeat)"
    )


def test_a_smallest_working_set_that_does_not_fit_is_no_curve():
    assert said(at(0.5, 0.2), at(1, 0.0)) == (
        "vllm: no knee, since the smallest working set has 20% hits: it does not fit"
    )


def test_a_fall_from_a_working_set_that_does_not_fit_is_no_knee():
    """The second repeat lost its smaller sets, and what it finds of the others falls by chance."""
    alone = [at(0.5, 0.2), at(1, 0.0)]
    assert (knee(*alone).value, knee(*alone).interval, knee(*alone).crossed) == (None, None, 0)
    found = knee(at(0.5, 0.8), at(1, 0.8), at(2, 0.02), at(4, 0.0), at(2, 0.02, 1), at(4, 0.0, 1))
    assert found.interval == pytest.approx((1, 2))
    assert (found.repeats, found.crossed) == (2, 1)


def test_hits_where_no_prefix_is_used_twice_are_reported():
    fits = at(0.5, 0.8), at(2, 0.0)
    assert "no prefix is used twice" in said(at(0, 0.3), *fits)
    assert "no prefix is used twice" not in said(at(0, 0.05), *fits)


def test_an_invalid_cell_and_one_without_a_rate_are_no_points():
    invalid = {"validity": {"verdict": "INVALID", "reasons": []}}
    found = knee(at(0.5, 0.8), at(1, 0.1, **invalid), at(2, None), at(4, 0.0))
    assert found.interval == pytest.approx((0.5, 4))
    assert said(at(0.5, None), at(1, 0.2)).startswith("vllm: no knee, since fewer than two")


def test_runs_of_other_loads_have_none():
    assert knees([cell()]) == ()


def counted(mean, answer=50.0):
    prompt = {"mean": mean, "first": [], "sha256": None}
    return {"prompt_tokens": prompt, "output_tokens_mean": answer}


def test_a_working_set_is_of_the_tokens_that_were_counted_with_the_answer():
    """Ten prefixes of 150 tokens and 50 of the answer in a cache of 1000; 100 as planned, if not counted."""
    assert filled(at(1, 0.8, conditions=counted(150.0))) == 2
    assert filled(at(1, 0.8, conditions=counted(150.0, None))) == 1.5
    assert filled(at(1, 0.8, conditions=counted(None))) == 1
    assert filled(at(1, 0.8, conditions={"prompt_tokens": None})) == 1


def test_without_a_known_cache_a_working_set_is_as_large_as_the_run_took_it():
    load, held = {"kind": "working-set", "value": 4}, {"prefixes": 10, "held_tokens": 100, "kv_tokens": None}
    assert filled(cell("vllm", {**load, "working_set": held}, conditions=counted(150.0))) == 4
    assert filled(cell("vllm", load)) is None  # as runs from before it was kept
    assert filled(at(0, 0.8)) is None


def test_the_knee_is_where_the_counted_tokens_say():
    """With the template each set is twice as large as planned."""
    sets = [at(size, rate, conditions=counted(150.0)) for size, rate in ((0.5, 0.8), (1, 0.8), (2, 0.0))]
    assert knee(*sets).interval == (2, 4)


def test_the_sentence_of_a_knee_says_where_and_in_how_many_repeats():
    cells = [at(0.5, 0.8), at(1, 0.8), at(2, 0.0), at(0.5, 0.8, 1), at(2, 0.8, 1)]
    assert said(*cells) == (
        "vllm: the hit rate falls through half of 80% at 1.41 × the KV cache "
        "(between 1 and 2, 2 repeats, seen in 1)"
    )
    assert said(at(0, 0.3), at(0.5, 0.8), at(8, 0.7)).endswith(
        "vllm: 30% hits where no prefix is used twice, so not all hits are of the prefixes"
    )


def test_hit_rates_below_the_whole_and_large_working_sets_are_not_rounded_away():
    text = said(at(0.5, 0.9996), at(1000, 0.999))
    assert "above half of 99.96% up to 1000 × the KV cache" in text
