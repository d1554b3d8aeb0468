"""Charts of a run of many cells, from its records."""

import pytest

from harness.report.charts import charts
from harness.report.samples import take
from tests.factories.runs import EIGHT, Shape, make_run


@pytest.mark.long
def test_every_chart_of_a_large_run_lies_inside_its_axes(tmp_path):
    folder = make_run(tmp_path, Shape(EIGHT[::2], concurrency=(1, 8), rates=(4,), repeats=2, requests=12))
    samples = {name: take(folder.read_cell(name)[0]) for name in folder.cells()}
    made = list(charts(folder.read_summary(), samples))
    assert {chart.family for chart in made} == {"distribution", "load", "trade-off"}
    assert len({chart.name for chart in made}) == len(made)
    for chart in made:
        for line in chart.lines:
            places = [(chart.x.place(point.x), chart.y.place(point.y)) for point in line.points]
            assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places)
