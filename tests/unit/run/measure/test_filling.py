"""How many requests of the load are in flight before the first question of an accuracy."""

import pytest

from harness.model import LoadPoint
from harness.run.measure.workloads import FILL, filling
from harness.spec.scenario import Load


@pytest.mark.parametrize(
    ("load", "point", "count"),
    [
        (Load(requests=8, concurrency=(1, 6)), LoadPoint("concurrency", 6), 6),
        (Load(requests=8, concurrency=(2,), working_set=(0.5, 8)), LoadPoint("working-set", 8), 2),
        (Load(requests=8, rate=(3,)), LoadPoint("rate", 3), FILL),
    ],
)
def test_as_many_as_the_load_keeps_in_flight(load, point, count):
    assert filling(load, point) == count
