"""What the report holds of a cell's records."""

from dataclasses import replace

import numpy as np

from harness.metrics.pooled import MOST_VALUES
from harness.records.layout import Outcome
from harness.report.samples import take
from tests.factories.recorded import records


def test_that_a_user_hung_up_is_no_error():
    made = records({"texts": [1]}, *({"outcome": outcome} for outcome in (Outcome.RESET, Outcome.ABANDONED)))
    assert take(replace(made, errors=["", "reset", "the user hung up"])).errors == {"reset": 1}


def test_the_gaps_of_a_long_cell_are_thinned_and_keep_their_ends():
    """A report holds those of every cell at once: of 64 cells with a million gaps, half a gigabyte."""
    stamps = np.cumsum(np.arange(1, 2 * MOST_VALUES + 2))
    gaps = take(records({"texts": stamps.tolist()})).latencies["itl_ms"]
    assert len(gaps) == MOST_VALUES
    assert (gaps[0], gaps[-1]) == (2, 2 * MOST_VALUES + 1)
    assert np.median(gaps) == np.float64(MOST_VALUES + 1)
