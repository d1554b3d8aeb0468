"""What the report holds of a cell's records."""

from dataclasses import replace

from harness.records.layout import Outcome
from harness.report.samples import take
from tests.factories.recorded import records


def test_that_a_user_hung_up_is_no_error():
    made = records({"texts": [1]}, *({"outcome": outcome} for outcome in (Outcome.RESET, Outcome.ABANDONED)))
    assert take(replace(made, errors=["", "reset", "the user hung up"])).errors == {"reset": 1}
