"""Medians of two samples, and times as shares of what is usual for a kind, worked out by hand."""

import numpy as np
import pytest

from harness.metrics.view import RequestView
from harness.validity.medians import chance_apart, of_like_kind, several_kinds
from harness.validity.rule import Evidence
from tests.factories.recorded import facts, records, requested

HUNDRED = np.arange(100.0)  # the values 3.5 standard errors around its median of 49.5 are 32 and 67


def test_chance_leaves_two_medians_as_far_apart_as_the_errors_that_face_each_other():
    skewed = np.where(HUNDRED > 49, 49 + 10 * (HUNDRED - 49), HUNDRED)  # a median of 54
    assert chance_apart(10 * HUNDRED, HUNDRED) == pytest.approx(np.hypot(175, 17.5))
    assert chance_apart(skewed, HUNDRED) == pytest.approx(np.hypot(54 - 32, 17.5))
    assert chance_apart(HUNDRED, skewed) == pytest.approx(np.hypot(17.5, 229 - 54))


def test_few_values_bound_their_median_by_their_ends():
    few = np.array([1.0, 5.0, 7.0])
    assert chance_apart(few, few) == pytest.approx(np.hypot(4, 2))


def end_ms(part):
    return part.requests["end_ns"] / 1e6


def of_kinds(*rows):
    """Shares of both parts, and the least usual ms. Each row: the kind, the part and the ms of a request."""
    made = records(*({"texts": [ms]} for *_, ms in rows))
    made.requests["end_ns"] = [int(1e6 * ms) for *_, ms in rows]
    view = RequestView(made)
    cell = Evidence(view, facts(), requested=requested(*((kind, {}) for kind, *_ in rows)))
    own = np.array([part for _, part, _ in rows]) == 0
    shares, usual_ms = of_like_kind(cell, [view.without_events(mask) for mask in (own, ~own)], end_ms)
    return several_kinds(cell), *(share.tolist() for share in shares), usual_ms


def test_each_time_is_a_share_of_what_is_usual_for_its_kind():
    """Medians of 15 and 30 ms for short ones and of 100 and 300 ms for long ones: usual are 22.5 and 200."""
    rows = [("short", 0, 10), ("short", 0, 20), ("long", 0, 100), ("short", 1, 30), ("long", 1, 300)]
    several, here, there, usual_ms = of_kinds(*rows)
    assert several
    assert sorted(here) == pytest.approx([10 / 22.5, 0.5, 20 / 22.5])
    assert sorted(there) == pytest.approx([30 / 22.5, 1.5])
    assert usual_ms == 22.5


def test_a_kind_that_one_part_alone_answered_or_that_takes_no_time_tells_nothing():
    rows = [("short", 0, 10), ("short", 1, 30), ("long", 0, 700), ("none", 0, 0), ("none", 1, 5)]
    assert of_kinds(*rows) == (True, [0.5], [1.5], 20)
    assert of_kinds(("short", 0, 10)) == (False, [], [], 1)
