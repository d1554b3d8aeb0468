"""Charts as data: what they show, before anything is drawn."""

import re
from importlib import resources
from typing import get_args

import numpy as np
import pytest

from harness.model import LoadPoint
from harness.model.load import LoadKind
from harness.model.measures import measure
from harness.report.charts import axes, charts
from harness.report.charts.distribution import _curve
from harness.report.charts.model import Point
from harness.report.charts.pareto import front
from harness.report.charts.values import RANGE, Value
from harness.report.html.figures import figure
from harness.report.samples import DISTRIBUTED, Samples
from tests.factories.summaries import cell, summary, verdict

ONE, FOUR = ({"kind": "concurrency", "value": value} for value in (1, 4))


def made(*cells, **changes):
    return {chart.name: chart for chart in charts(summary(*cells, **changes), {})}


def main(chart):
    return {line.label: line for line in chart.lines if line.role == "main"}


def test_each_figure_against_the_load():
    found = made(cell(p50=10.0, load=ONE), cell(p50=12.0, load=ONE, repeat=1), cell(p50=30.0, load=FOUR))
    chart = found["ttft-load-concurrency"]
    first, second = main(chart)["llamacpp"].points
    assert (first.x, first.y, first.low, first.high) == (1.0, 11.0, 10.0, 12.0)
    assert (second.x, second.y, second.low) == (4.0, 30.0, None)
    assert chart.description == "TTFT p50, ms. llamacpp: 11.0 at 1, 30.0 at 4."
    assert chart.drawn == "median of the repeats with their range"
    assert first.text == "11.0 (10.0 to 12.0) ms"
    assert [text for _, text in chart.x.ticks] == ["1", "4"]


def test_calls_are_drawn_against_the_depth_of_their_context():
    depths = {
        name: {"ttft_ms": {"p50": p50}, "tpot_ms": {"p50": 7.0}}
        for name, p50 in (("1k", 90.0), ("512", 40.0))
    }
    found = made(
        cell(p50=10.0, load=ONE, by_depth=depths), cell(p50=12.0, load=ONE, repeat=1, by_depth=depths)
    )
    chart = found["ttft-depth-c1"]
    assert [(point.x, point.y, point.key) for point in main(chart)["llamacpp"].points] == [
        (512.0, 40.0, "512"),
        (1024.0, 90.0, "1k"),
    ]
    assert [text for _, text in chart.x.ticks] == ["512", "1k"]
    assert chart.drawn == "median of the repeats with their range"
    assert "tpot-depth-c1" in found
    single = made(cell(p50=10.0, load=ONE, by_depth={"1k": depths["1k"]}))
    assert "ttft-depth-c1" not in single


def test_intervals_over_runs_are_taken_where_there_are_enough():
    estimate = {"label": "llamacpp", "load": ONE, "metric": "ttft_ms.p50", "interval": [8.0, 11.0, 14.0]}
    estimate["method"] = "runs"
    cells = [cell(p50=10.0 + repeat, load=ONE, repeat=repeat) for repeat in range(3)]
    (few,) = main(made(*cells, estimates=[{**estimate, "runs": 2}])["ttft-load-concurrency"])[
        "llamacpp"
    ].points
    assert (few.low, few.high) == (10.0, 12.0)
    chart = made(*cells, estimates=[{**estimate, "runs": 3}])["ttft-load-concurrency"]
    (enough,) = main(chart)["llamacpp"].points
    assert (enough.low, enough.x, enough.high) == (8.0, 11.0, 14.0)
    assert chart.drawn == "geometric mean of the runs with its 95% interval"


def test_an_interval_over_pooled_requests_is_not_called_one_over_runs():
    pooled = {"label": "a", "load": ONE, "metric": "itl_ms.p99", "interval": [8.0, 11.0, 14.0], "runs": 3}
    over_runs = {**pooled, "label": "b", "method": "runs"}
    cells = [
        cell(label, load=ONE, repeat=repeat, itl_ms={"p50": 10.0, "p99": 11.0})
        for label in "ab"
        for repeat in range(3)
    ]
    name = "itl-p99-load-concurrency"
    chart = made(*cells, estimates=[{**pooled, "method": "pooled"}, over_runs])[name]
    assert [(point.low, point.x, point.high) for point in main(chart)["a"].points] == [(8.0, 11.0, 14.0)]
    assert chart.drawn == (
        "geometric mean of the runs with its 95% interval or "
        "requests of all repeats together, with a 95% interval"
    )


def test_repeats_that_are_not_all_above_zero_show_their_range():
    """Of a repeat without a good answer: the interval around the mean would go below zero."""
    goodput = {"label": "llamacpp", "load": ONE, "metric": "goodput_requests_per_s", "runs": 3}
    cells = [
        cell(load=ONE, repeat=repeat, goodput_requests_per_s=rate)
        for repeat, rate in enumerate((0.0, 0.01, 0.033))
    ]
    chart = made(*cells, estimates=[{**goodput, "interval": [-0.024, 0.014, 0.052], "method": "runs"}])[
        "goodput-load-concurrency"
    ]
    (point,) = main(chart)["llamacpp"].points
    assert (point.low, point.x, point.high) == (0.0, 0.01, 0.033)
    assert chart.drawn == "median of the repeats with their range"


def test_nothing_known_is_no_chart():
    found = made(cell(prefix_cache_hit_rate=None))
    assert "cache-load-concurrency" not in found
    assert "goodput-load-concurrency" not in found
    assert "cost-load-concurrency" in made(cell(cost_per_million_output_tokens=0.4))


def test_invalid_cells_are_in_no_chart():
    bad = verdict("INVALID", "client-busy", "97%", "90%", "")
    assert made(cell(validity=bad)) == {}


def test_one_load_point_puts_the_backends_below_each_other():
    chart = made(cell("a", p50=10.0), cell("b", p50=20.0))["ttft-load-concurrency"]
    assert chart.sideways
    assert [text for _, text in chart.y.ticks] == ["a", "b"]
    assert [point.x for line in chart.lines for point in line.points] == [10.0, 20.0]


def test_the_cache_is_shown_beside_the_ideal():
    chart = made(cell(load=ONE), cell(load=FOUR))["cache-load-concurrency"]
    (ideal,) = [line for line in chart.lines if line.role == "ideal"]
    assert [point.y for point in ideal.points] == [94.0, 94.0]
    assert (chart.y.low, chart.y.high) == (0, 100)
    assert chart.description.endswith("; ideal: 94.0 at 1, 94.0 at 4.")
    assert "Dotted: the ideal." in figure(chart)


def test_throughput_against_latency_joins_what_nothing_beats():
    points = [Point(10, 100), Point(20, 90), Point(30, 200), Point(5, 50), Point(30, 150)]
    assert [(point.x, point.y) for point in front(points)] == [(5, 50), (10, 100), (30, 200)]
    chart = made(cell(p50=10.0, load=ONE), cell(p50=30.0, load=FOUR, output_tokens_per_s=300.0))[
        "pareto-ttft-p50-concurrency"
    ]
    assert [point.text for point in main(chart)["llamacpp"].points] == [
        "c1: 118 tokens/s at TTFT p50 10.0 ms",
        "c4: 300 tokens/s at TTFT p50 30.0 ms",
    ]


def test_speed_of_all_against_speed_of_each_user_has_intervals_on_both_axes():
    cells = [
        cell(p50=10.0 + 10 * repeat, load=load, repeat=repeat, output_tokens_per_s=100.0 + 20 * repeat)
        for load in (ONE, FOUR)
        for repeat in range(2)
    ]
    chart = made(*cells)["pareto-per-user-concurrency"]
    first, _ = main(chart)["llamacpp"].points
    assert (first.x, first.y) == (pytest.approx(1000 / 15), 110.0)
    assert first.across == (50.0, 100.0)  # 20 and 10 ms per token
    assert (first.low, first.high) == (100.0, 120.0)
    assert chart.y.title == "tokens/s per machine"
    assert first.text == "c1: 110 (100 to 120) tokens/s per machine at 66.7 (50.0 to 100) per user"


def test_a_speed_without_end_is_in_no_chart():
    """A file may state that its tokens took no time."""
    cells = [cell("a", load=load, p50=p50) for load, p50 in ((ONE, 10.0), (FOUR, 0.0))]
    (point,) = main(made(*cells)["pareto-per-user-concurrency"])["a"].points
    assert point.x == 100


def test_it_is_per_gpu_where_every_engines_gpus_are_known():
    gpus = {"engine_gpus": [0, 1], "devices": []}
    one = {**gpus, "engine_gpus": [0]}
    chart = made(cell("a", gpu=gpus), cell("b", gpu=one), cell("c", gpu=one))
    a, b, _ = (line.points[0].y for line in main(chart["pareto-per-user-concurrency"]).values())
    assert chart["pareto-per-user-concurrency"].y.title == "tokens/s per GPU"
    assert (a, b) == (pytest.approx(59.2), pytest.approx(118.4))
    mixed = made(cell("a", gpu=gpus), cell("b"), cell("c"))["pareto-per-user-concurrency"]
    assert mixed.y.title == "tokens/s per machine"
    bad = verdict("INVALID", "engine-died", "exit code 1", "none", "")
    twice = [cell("a", gpu=one, load=load) for load in (ONE, FOUR)]
    died = made(*twice, cell("b", gpu=one, load=ONE), cell("b", gpu=one, load=FOUR, validity=bad))
    assert died["pareto-per-user-concurrency"].y.title == "tokens/s per GPU"


def test_two_backends_at_one_load_have_no_trade_off():
    """Two points on two axes say less than the table."""
    assert not [name for name in made(cell("a"), cell("b")) if name.startswith("pareto")]
    assert "pareto-ttft-p50-concurrency" in made(*map(cell, "abc"))
    assert "pareto-ttft-p50-concurrency" in made(cell("a", load=ONE), cell("a", load=FOUR))


def test_more_is_better_on_both_axes_of_thefront():
    points = [Point(10, 100), Point(20, 90), Point(5, 95), Point(30, 50)]
    assert [(point.x, point.y) for point in front(points, right=True)] == [(30, 50), (20, 90), (10, 100)]


def test_loads_that_a_server_did_not_keep_up_with_are_in_no_trade_off():
    found = made(
        cell("a", load=ONE, state="saturated"), cell("a", load=FOUR, state="unstable"),
        cell("b", load=ONE, state="under load"), cell("b", load=FOUR, state=None),
        cell("a", load=FOUR, repeat=1, state="saturated"),
    )  # fmt: skip
    for name in ("pareto-per-user-concurrency", "pareto-ttft-p50-concurrency"):
        assert {label: len(line.points) for label, line in main(found[name]).items()} == {"a": 1, "b": 1}


def test_requests_that_never_got_there_keep_the_curve_below_100():
    points = _curve(np.sort(np.array([30.0, 10.0, np.inf, 20.0])))
    assert (points[0].x, points[0].y) == (10.0, 0.0)
    assert (points[-1].x, points[-1].y) == (30.0, 75.0)
    assert {point.key: point.text for point in points}["p50"] == "20.0 ms"


@pytest.mark.parametrize(
    ("p50", "median"), [(20.5, "median 20.5 ms"), (None, "median n/a")], ids=["known", "never got there"]
)
def test_the_text_of_a_distribution_has_the_median_of_the_table(p50, median):
    """Half of the requests never got there, or the table's median lies between two of them."""
    stats = {"mean": 20.0, "p50": p50, "p90": None, "p95": None, "p99": None}
    found = cell(ttft_ms=stats)
    times = np.array([20.0, 21.0, np.inf, np.inf] if p50 is None else [20.0, 21.0])
    nothing = np.zeros(0, np.int32)
    samples = {found.cell: Samples(dict.fromkeys(DISTRIBUTED, times), nothing, nothing, (), {})}
    drawn = {chart.name: chart for chart in charts(summary(found), samples)}
    assert drawn["ttft-cdf-c4"].description.endswith(f"llamacpp: {median}.")


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    points = _curve(np.arange(1.0, 100_001.0))
    assert len(points) < 120
    assert (points[0].x, points[-1].x, points[-1].y) == (1.0, 100_000.0, 100.0)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 0.7, ["0", "0.2", "0.4", "0.6"]),
        (0, 43, ["0", "10", "20", "30", "40"]),
        (0, 1000, ["0", "200", "400", "600", "800", "1000"]),
    ],
)
def test_ticks_are_round(low, high, texts):
    assert [text for _, text in axes.steps(low, high)] == texts


def test_a_wide_range_is_logarithmic_and_written_out():
    axis = axes.fitted("ms", [2.0, 900.0])
    assert axis.log
    assert [text for _, text in axis.ticks] == ["2", "5", "10", "20", "50", "100", "200", "500", "1000"]
    assert [text for _, text in axes.fitted("ms", [40_000.0, 1_500_000.0]).ticks][-3:] == [
        "500000",
        "1000000",
        "2000000",
    ]
    assert not axes.fitted("ms", [2.0, 40.0]).log
    assert axes.fitted("ms", [0.0]).high > 0


def test_an_axis_says_that_it_is_logarithmic():
    assert axes.fitted("TTFT, ms", [2.0, 900.0]).words == "TTFT, ms, log scale"
    assert axes.loads("concurrency", [1, 2, 4, 8]).words == "concurrency, log scale"
    assert axes.loads("concurrency", [1, 2]).words == "concurrency"


@pytest.mark.parametrize(
    ("values", "ends"), [((-12.0, 40.0), (-13.44, 44.8)), ((-12.0, -4.0), (-13.44, 0.0))]
)
def test_an_axis_reaches_to_a_value_below_zero(values, ends):
    axis = axes.fitted("TTFT that an image adds, ms", values)
    assert (axis.low, axis.high) == pytest.approx(ends)
    assert 0 < axis.place(values[0]) < axis.place(values[1]) < 1
    assert "0" in [text for _, text in axis.ticks]


def test_the_tick_of_a_load_has_its_name():
    axis = axes.loads("requests/s", [0.125, 1_234.5678])
    assert [text for _, text in axis.ticks] == ["0.125", "1234.5678"]


def test_the_script_of_the_page_repeats_no_number_of_the_axes():
    """It gets them: `axisRules`. What it takes of them is there, and no axis is drawn by another number."""
    script = (resources.files("harness.report.html") / "page.js").read_text(encoding="utf-8")
    assert set(re.findall(r"\baxisRules\.(\w+)", script)) == set(axes.RULES)
    drawing = script[script.index("const fitted =") : script.index("// Value to pixel")]
    assert set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", drawing)) <= {"0", "1", "10", "0.999", "1e", "9"}


def test_the_script_of_the_page_knows_every_load_that_a_point_is_read_by():
    script = (resources.files("harness.report.html") / "page.js").read_text(encoding="utf-8")
    (known,) = re.findall(r"/(\^\[\w+\]\[\\d\.\]\+\$)/\.test\(key\) \? `at ", script)
    for kind in set(get_args(LoadKind)) - {"unknown"}:
        assert re.search(known, LoadPoint(kind, 0.5).label), kind


@pytest.mark.parametrize(("gpus", "owner"), [([], "machine"), ([0, 1], "GPU")])
def test_throughput_against_the_speed_of_each_user_names_its_owner(gpus, owner):
    gpu = {"engine_gpus": gpus}
    found = made(*(cell("a", load=load, gpu=gpu, state="saturated") for load in (ONE, FOUR)))
    assert (
        found["pareto-per-user-concurrency"].title
        == f"Tokens/s per {owner} against tokens/s per user, closed loop"
    )


def test_speed_stands_against_the_share_of_right_answers():
    marks = {"a": "1" * 540 + "0" * 60, "b": "1" * 480 + "0" * 120}
    backends = {
        label: {
            "unloaded": {"marks": text, "accuracy": [0.88, text.count("1") / 600, 0.92]},
            "saturated": {"marks": text},
        }
        for label, text in marks.items()
    }
    lost = {"a": "a", "b": "b", "under_load": False, "compared": 600, "lost": 60, "gained": 0}
    lost |= {"change": [-0.13, -0.1, -0.07], "p_value": 1e-9, "level": 0.03, "verdict": "loses"}
    cells = cell("a", output_tokens_per_s=100.0), cell("b", output_tokens_per_s=160.0)
    chart = made(*cells, agreement={"backends": backends, "accuracy": [lost]})["speed-accuracy"]
    (first,), (second,) = (line.points for line in main(chart).values())
    assert (first.x, first.y, first.low, first.high) == (100.0, 90.0, 88.0, pytest.approx(92.0))
    assert (second.x, second.y) == (160.0, 80.0)
    assert "loses 7.0 to 13.0 points (60 lost, 0 gained of 600) against a" in second.text
    assert chart.right
    assert "speed-accuracy" not in made(*cells)
    assert chart.drawn == "share of right answers with its 95% interval"
    more = [cell(label, output_tokens_per_s=150.0, repeat=1) for label in "ab"]
    chart = made(*cells, *more, agreement={"backends": backends, "accuracy": [lost]})["speed-accuracy"]
    assert chart.drawn.endswith("; output: median of the repeats with their range")


def test_the_knee_lies_on_the_curve_of_the_hits_with_its_interval():
    def at(size, rate):
        held = {"prefixes": 10, "held_tokens": 100, "kv_tokens": 1000, "in_flight": 1, "rest_s": 0}
        held |= {"kv_tokens": round(1000 / size) if size else 1000}
        load = {"kind": "working-set", "value": size, "working_set": held}
        return cell(load=load, prefix_cache_hit_rate=rate)

    cells = at(0, 0.0), at(0.5, 0.8), at(2, 0.0)
    given = {
        "label": "llamacpp", "value": 1.0, "interval": [0.5, 2.0], "repeats": 1, "crossed": 1,
        "largest": 2.0, "fits": 0.8, "ideal": 0.9, "unrelated": 0.0,
    }  # fmt: skip
    chart = made(*cells, knees=[given])["cache-load-working-set"]
    (curve,) = [line for line in chart.lines if line.role == "main"]
    assert [(point.x, point.y) for point in curve.points] == [(0.5, 80), (2.0, 0)], "the control is no size"
    (knee,) = [line for line in chart.lines if line.role == "knee"]
    (point,) = knee.points
    assert (point.x, point.y, point.across) == (1.0, 40, (0.5, 2.0))
    assert "falls through half of 80% at 1 ×" in chart.description


def test_values_of_a_share_below_the_whole_are_no_hundred():
    hits = measure("prefix_cache_hit_rate")
    assert Value(99.97, 99.96, 99.98, RANGE).text(hits) == "99.97 (99.96 to 99.98)%"
    assert Value(100.0, 100.0, 100.0, RANGE).text(hits) == "100%"
    assert Value(250.0, 240.0, 260.0, RANGE).text(measure("ttft_ms.p50")) == "250 (240 to 260) ms"


def test_no_chart_of_many_backends_is_drawn_for_papers(monkeypatch):
    monkeypatch.setattr("harness.report.charts.MOST_ON_PAPER", 3)
    few, many = (made(*(cell(f"b{number}", ONE) for number in range(count))) for count in (3, 4))
    assert few["ttft-load-concurrency"].paper
    assert many.keys() == few.keys()
    assert not any(chart.paper for chart in many.values())


def test_names_are_made_short_once_for_all_points_of_a_chart(monkeypatch):
    """For each of a thousand backends a thousand names would be compared."""
    asked = []
    monkeypatch.setattr(
        "harness.report.charts.pareto.short_names",
        lambda labels, limit: asked.append(labels) or {label: label[:limit] for label in labels},
    )
    names = made(*(cell(f"b{number}", ONE) for number in range(9)))
    assert 1 <= len(asked) <= sum(name.startswith("pareto") for name in names)


LIMITED = {"attainment": 1.0, "limits": [{"metric": "ttft_ms", "share": "p95", "limit_ms": 100.0}]}


def test_a_percentile_that_the_scenario_limits_is_drawn_with_its_limit():
    """Of the percentiles that charts have by themselves none is a p95, the usual one of a limit."""

    def at(load, p95):
        return cell(load=load, ttft_ms={"p50": 10.0, "p90": 20.0, "p95": p95}, slo=LIMITED)

    chart = made(at(ONE, 40.0), at(FOUR, 90.0))["ttft-p95-load-concurrency"]
    assert [(point.x, point.y) for point in main(chart)["llamacpp"].points] == [(1.0, 40.0), (4.0, 90.0)]
    (limit,) = (line for line in chart.lines if line.label == "limit")
    assert [(point.x, point.y) for point in limit.points] == [(chart.x.low, 100.0), (chart.x.high, 100.0)]
    assert chart.y.high > 100.0
    assert chart.paper
    assert "Dotted: the limit." in figure(chart)
    assert "ttft-p95-load-concurrency" not in made(cell(load=ONE), cell(load=FOUR))
    median = made(at(ONE, 40.0), at(FOUR, 90.0))["ttft-load-concurrency"]
    assert [line.label for line in median.lines] == ["llamacpp"]
