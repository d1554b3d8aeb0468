"""The study of verdicts at equal speed per user has to be able to fail, and the code as it is passes it."""

from contextlib import nullcontext

import pytest

from tests.bench.per_user_study import PLANTS, ROWS, study

LOADS = (1, 4, 16, 64, 256)
TIMES = 60


def tally(row, plant="", loads=LOADS):
    chosen = next(known for known in ROWS if known.name == row)
    with PLANTS[plant]() if plant else nullcontext():
        return study(chosen, 0.01, 3, TIMES, loads)


@pytest.mark.parametrize(
    ("plant", "row"), [("straight", "crossing, even and late"), ("power-law", "crossing, corner and early")]
)
def test_one_shape_between_loads_makes_false_verdicts(plant, row):
    assert tally(row, plant).false > 0.05 * TIMES
    found = tally(row)
    assert found.false == 0
    assert sum(found.held) >= 0.95 * len(found.held)


@pytest.mark.parametrize(("unit", "count", "least"), [("starts", 3, 0.9), ("blocks", 40, 0.6)])
def test_engines_that_are_up_together_are_judged_as_well(unit, count, least):
    equal, apart = ("2 equal, early", 0.1, 30), ("carries 1.5 times, late", 0.01, 15)
    for name, variation, times in (equal, apart):
        row = next(known for known in ROWS if known.name == name)
        found = study(row, variation, count, times, LOADS, unit)
        assert found.false == 0
        assert sum(found.held) >= 0.9 * len(found.held)
    assert found.apart["more"] > least * found.apart.total()


def test_what_carries_half_as_much_again_is_found():
    found = tally("carries 1.5 times, late")
    assert found.false == 0
    assert found.apart["more"] > 0.9 * found.apart.total()
    assert found.apart["fewer"] == 0


def test_more_loads_find_more():
    near = tally("carries 1.2 times, early", loads=(1, 2, 4, 8, 16, 32, 64, 128, 256))
    far = tally("carries 1.2 times, early")
    assert near.false == far.false == 0
    assert near.apart["more"] > 1.5 * far.apart["more"]
