"""The load that questions of an accuracy are put under, and how much of it is in flight before the first."""

from types import SimpleNamespace

import pytest

from harness.model import LoadPoint
from harness.run.measure.agreement_load import under_load
from harness.run.measure.workloads import FILL, Workloads, between_questions, filling
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
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


@pytest.mark.parametrize("listed", [[1, 40], [40, 1]])
def test_questions_are_put_under_the_highest_load_wherever_it_is_listed(listed):
    prepared = prepare(
        RunOptions("fixed-length", "truth", overrides={"load.concurrency": listed}, accuracy=20)
    )
    made = Workloads(prepared.scenario, 1, 0, None, between=between_questions(prepared))
    engine = SimpleNamespace(definition=prepared.backends[0].ref.definition, served_name="m")
    load = under_load(prepared, made.between, engine)
    assert (load.point, load.fill) == (LoadPoint("concurrency", 40), 40)
    assert load.schedule(100).concurrency == 40
    # Requests of the load before and between 20 + 58 questions, which are put in up to three parts.
    assert len(made.between.requests) == 3 * 40 + 78 // 2 + 3
