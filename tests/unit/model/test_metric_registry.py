"""The declarations of metrics: whole, in words, computed, and followed by all that tells of them."""

import subprocess
import sys
from pathlib import Path

from harness.metrics import latency
from harness.metrics.families import figures_of
from harness.model import METRICS, SLO_METRICS, VERDICT_METRICS, distorted_by, family
from harness.model.measures import charted, measure
from harness.report.findings.grid import COLUMNS
from harness.spec.scenario.verdict import check_slo
from harness.store import tables
from harness.summary import view_of
from tests.factories.recorded import facts, records

ROOT = Path(__file__).resolve().parents[3]


def names(of):
    return {metric.name for metric in family(of)}


def test_a_metric_says_what_it_is_and_is_a_column_of_the_database():
    for name, metric in METRICS.items():
        assert metric.short, name
        assert metric.title[0].isupper(), name
        assert metric.about[0].isupper() or metric.about.startswith("("), name
        assert metric.about.endswith("."), name
        assert not metric.ideal or METRICS[metric.ideal].family == metric.family, name
    columns = {path for _kind, path in tables.PLACES.values()}
    assert {path for metric in METRICS.values() for path in metric.paths} - columns == set()


def test_every_metric_is_computed():
    cell = view_of(records({"texts": [10, 20], "thoughts": 1}), facts(), None)
    assert METRICS.keys() <= figures_of(cell)[0].keys()
    of_requests = {metric.name for metric in family("latency") if metric.of_stamps}
    assert set(latency.values_ms(cell)) == of_requests


def test_what_a_limit_and_a_verdict_can_be_about():
    check_slo({name: {"p95": 1.0} for name in SLO_METRICS}, "slo")
    assert "itl_ms" not in SLO_METRICS
    assert VERDICT_METRICS["ttft_ms.p99"] == "lower"
    assert VERDICT_METRICS["requests_per_s"] == "higher"
    assert "prefix_cache_ideal" not in VERDICT_METRICS


def test_longer_answers_distort_rates_but_a_first_token_only_where_requests_wait():
    alone = distorted_by("output-length")
    assert names("rate") < set(alone)
    assert {*distorted_by("output-length", "queued-output-length")} - {*alone} == {
        "ttft_ms",
        "ttft_service_ms",
        "ttft_reasoning_ms",
    }
    assert distorted_by("tokens-per-event") == ("itl_ms",)


def test_columns_and_charts_are_of_known_values():
    paths = {path for metric in METRICS.values() for path in metric.paths}
    assert {column.path for column in COLUMNS if column.path} <= paths
    drawn = charted(lambda charts: (*charts.load, *charts.rate, *charts.papers))
    assert {one.path for one in drawn} <= paths
    stems = [metric.charts.stem for metric in METRICS.values() if metric.charts]
    assert len(stems) == len(set(stems))


def test_headings_name_the_statistic_and_differ():
    headings = [measure(one.path).heading for one in charted(lambda charts: charts.load)]
    assert len(headings) == len(set(headings))
    assert "Inter-token latency p99" in headings


def test_a_title_is_written_nowhere_else():
    sources = {path: path.read_text("utf-8") for path in (ROOT / "harness").rglob("*.py")}
    for metric in family("latency"):
        places = [path.name for path, source in sources.items() if f'"{metric.title}' in source]
        assert places == ["latencies.py"]


def test_a_scenario_is_checked_without_numpy():
    code = "import sys, harness.spec.scenario; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_no_two_figures_that_a_verdict_may_be_about_have_one_name():
    assert len({measure(metric).name for metric in VERDICT_METRICS}) == len(VERDICT_METRICS)
