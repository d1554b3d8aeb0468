"""The speeds per user at which backends are compared, in the chart of what each carries."""

from harness.report.charts import charts
from harness.report.html.figures import figure
from tests.unit.report.findings.test_missing_loads import swept
from tests.unit.verdicts.test_per_user import sweep, within


def per_user(shown):
    return next(chart for chart in charts(shown, {}) if chart.name == "pareto-per-user-concurrency")


def test_each_speed_has_a_line_up_and_one_has_a_name():
    shown = swept(sweep("vllm", 0.25), sweep("sglang", 0.375))
    chart = per_user(shown)
    lines = [line for line in chart.lines if line.role == "ideal"]
    assert [line.label for line in lines] == ["compared at this speed", "", ""]
    ends = [[(point.x, point.y) for point in line.points] for line in lines]
    assert ends == [[(speed, chart.y.low), (speed, chart.y.high)] for speed in (50, 60, 80)]
    assert all(chart.x.low <= speed <= chart.x.high for speed in (50, 60, 80))
    assert "Dotted: speeds at which backends are compared. " in str(figure(chart))


def test_a_speed_without_a_pair_has_none():
    limit = within(12.5)
    chart = per_user(swept(sweep("vllm", slo=limit), sweep("sglang", alone_ms=20, slo=limit)))
    assert not any(line.role == "ideal" for line in chart.lines)
    assert "Dotted" not in str(figure(chart))
