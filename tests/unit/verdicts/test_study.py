"""The study of error rates has to be able to fail: every bug that it can put in makes false verdicts."""

from contextlib import ExitStack

import pytest

from tests.bench.verdict_study import PLANTS, ROWS, study


@pytest.mark.parametrize(
    ("plant", "row", "variation", "repeats"),
    [
        ("survivors", "2 equal, slow", 0.01, 5),
        ("only-steady", "2, 2% apart, slow", 0.01, 10),
        ("one-pair-families", "5 equal, pairs", 0.1, 5),
        ("wide-same", "2, 5%", 0.1, 5),
        ("pairing", "2 equal", 0.1, 5),
        ("edge", "2, 2%", 0.01, 5),
    ],
)
def test_a_bug_that_is_put_in_makes_false_verdicts(plant, row, variation, repeats):
    chosen = next(known for known in ROWS if known.name.startswith(row))
    times = 20
    with ExitStack() as planted:
        for patch in PLANTS[plant]():
            planted.enter_context(patch)
        tally = study(chosen, variation, repeats, times)
    assert max(tally.false_primary, tally.false_others) > 0.1 * times


def test_without_a_bug_it_counts_hardly_any():
    chosen = next(known for known in ROWS if known.name.startswith("5 equal, pairs"))
    times = 20
    tally = study(chosen, 0.1, 5, times)
    assert max(tally.false_primary, tally.false_others) <= 0.1 * times
