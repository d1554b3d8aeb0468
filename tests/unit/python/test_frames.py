"""DataFrames of a run: the rows of `bench query`, in seconds. Its conclusion: that of the report."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import llm_servebench as sb
from harness.metrics.latency import by_arrival, values_ms
from harness.metrics.view import CellView
from harness.model import METRICS, CellResult, Energy, Gpu
from harness.python import frames
from harness.report.samples import tpot_ms_by_seq
from harness.store import tables
from harness.store.database import database
from tests.factories.documents import changed, made

PAGE = Path(__file__).resolve().parents[3] / "docs" / "python.md"
VIEWS = ("cells", "verdicts", "requests", "events", "telemetry")


@pytest.fixture(scope="module")
def run(whole_run):
    return sb.load(whole_run.path)


@pytest.fixture(scope="module")
def shown(run):
    """The frames, which no test changes."""
    return {view: getattr(run, view)() for view in VIEWS}


@pytest.fixture(scope="module")
def sql(whole_run):
    """Columns and rows of a query."""
    with database([whole_run], tpot_ms_by_seq) as (connected, faults):
        assert faults == []

        def rows_of(text: str) -> tuple[list[str], list[tuple]]:
            result = connected.execute(text)
            return [column[0] for column in result.description], result.fetchall()

        yield rows_of


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ("ttft_ms_p50", ("ttft_p50", 1e3)),
        ("ttft_service_ms_mean", ("ttft_service_mean", 1e3)),
        ("window_s", ("window", 1.0)),
        ("sent_ns", ("sent", 1e9)),
        ("output_tokens_per_s", ("output_tokens_per_s", 1.0)),
        ("http_status", ("http_status", 1.0)),
        ("text_events", ("text_events", 1.0)),
        ("joules_per_output_token", ("joules_per_output_token", 1.0)),
    ],
)
def test_a_time_loses_its_unit_and_nothing_else_does(column, named):
    assert frames.in_seconds(column) == named


@pytest.mark.parametrize("view", VIEWS)
def test_a_frame_has_the_rows_and_columns_of_the_query_in_its_order(shown, sql, view):
    names, rows = sql(f"select * from {view}")
    frame = shown[view]
    expected = [frames.in_seconds(name)[0].replace("started_unix", "started") for name in names]
    assert list(frame.columns) == expected
    assert len(set(expected)) == len(expected)
    assert len(frame) == len(rows)
    for name, column, values in zip(names, expected, zip(*rows, strict=True), strict=False):
        if column in ("started", "metric") or name.startswith("difference"):
            continue  # below
        scale = frames.in_seconds(name)[1]
        found = [None if pd.isna(value) else value for value in frame[column]]
        assert found == [
            None if value is None else pytest.approx(value / scale) if scale != 1.0 else value
            for value in values
        ]


def test_cells_say_what_was_measured_where_and_when(shown, whole_run):
    cells = shown["cells"]
    first, stored = cells.iloc[0], whole_run.read_summary().cells[0]
    assert (first.scenario, first.model, first.hardware) == (
        "shared-prefix",
        "smollm2-135m-instruct",
        "Generated CPU, 2 cores",
    )
    assert (first.weights, first.quantisation, first.launch) == ("gguf-q4_1", "Q4_1", "process")
    assert set(cells.variant.dropna()) == {"eager"}
    assert first.ttft_p50 == pytest.approx(stored.ttft_ms.p50 / 1e3)
    assert first.started == pd.Timestamp(stored.started_unix_ns, unit="ns", tz="UTC")


def test_requests_are_in_seconds_and_what_is_not_known_is_missing(shown, whole_run):
    requests = shown["requests"]
    name = next(cell for cell in whole_run.cells() if "-tgi-" in cell)
    records, _facts = whole_run.read_cell(name)
    mine = requests[requests.cell == name]
    assert mine.sent.tolist() == pytest.approx((records.requests["sent_ns"] / 1e9).tolist())
    failed = mine[mine.outcome == "http_error"]
    assert len(failed) == 1
    assert failed.first_text.isna().all()
    assert failed.output_tokens.isna().all()
    assert str(requests.output_tokens.dtype) == "Int64"


@pytest.mark.parametrize("metric", ["ttft_ms", "e2e_ms", "tpot_ms"])
def test_latencies_of_requests_are_those_that_the_figures_of_their_cell_are_made_of(whole_run, sql, metric):
    for found in whole_run.read_summary().cells:
        records, facts = whole_run.read_cell(found.cell)
        values = values_ms(CellView(by_arrival(records), facts))[metric]
        of_cell = f"from requests where cell = '{found.cell}' and {metric} is not null order by {metric}"
        _names, rows = sql(f"select {metric} {of_cell}")
        assert [value for (value,) in rows] == sorted(values[np.isfinite(values)].tolist())
        assert len(rows) > 0
        assert np.isinf(values).sum() == found.requests.failed


def test_events_come_in_the_order_of_the_cells_and_of_their_arrival(shown, whole_run):
    events = shown["events"]
    assert list(dict.fromkeys(events.cell)) == whole_run.cells()
    stamps = events.groupby(["cell", "seq"]).stamp
    assert all(times.is_monotonic_increasing for _request, times in stamps)


def test_a_verdict_names_a_column_of_the_cells_and_differs_in_its_unit(shown, whole_run):
    verdicts, stored = shown["verdicts"], whole_run.read_summary().comparison
    assert set(verdicts.metric) <= set(shown["cells"].columns)
    about = (stored[0].load, stored[0].a, stored[0].b)
    by_metric = {one.metric: one for one in stored if (one.load, one.a, one.b) == about}
    here = (verdicts.load_value == about[0].value) & (verdicts.a == about[1]) & (verdicts.b == about[2])
    first = verdicts[here].set_index("metric")
    assert first.verdict["ttft_p50"] == by_metric["ttft_ms.p50"].verdict
    assert first.difference["ttft_p50"] == pytest.approx(by_metric["ttft_ms.p50"].difference.estimate / 1e3)
    rate = by_metric["output_tokens_per_s"]
    assert first.difference["output_tokens_per_s"] == pytest.approx(rate.difference.estimate)
    assert first.ratio["ttft_p50"] == pytest.approx(by_metric["ttft_ms.p50"].ratio.estimate)
    assert "is_primary" in first


def test_long_probes_of_a_search_are_apart_from_short_ones(whole_run):
    """Repeats of both kinds lie at one load, and a long probe is many times as long."""
    stored, manifest = whole_run.read_summary(), whole_run.read_manifest()
    places = list(tables.CELLS)

    def long(**keys):
        rows = tables.cell_rows("run", stored, changed(manifest, **keys))
        return {(row[places.index("repeat")], row[places.index("long_probe")]) for row in rows}

    assert long() == {(0, None), (1, None), (2, None)}
    assert long(find_capacity=True, repeats=2) == {(0, False), (1, False), (2, True)}


def test_a_frame_without_rows_has_its_columns_and_types(shown):
    for full, empty in (
        (shown["cells"], frames.of_rows(tables.CELLS, [])),
        (shown["verdicts"], frames.of_verdicts(tables.VERDICTS, [])),
    ):
        assert list(empty.columns) == list(full.columns)
        assert empty.dtypes.tolist() == full.dtypes.tolist()
    telemetry = shown["telemetry"]
    assert telemetry.empty
    assert telemetry.dtypes.to_dict() == {
        **dict.fromkeys(("run", "cell", "series"), pd.StringDtype()),
        **dict.fromkeys(("at", "value"), "float64"),
    }


def test_the_conclusion_is_that_of_the_report(run):
    found = {(order.load.label, order.metric) for order in run.conclusion().orders}
    assert found == {(one.load.label, one.metric) for one in run.summary.comparison}
    assert found


def test_every_call_makes_a_frame_of_its_own(run):
    cells = run.cells()
    cells["validity"] = "changed"
    assert "changed" not in set(run.cells().validity)


def test_the_page_lists_every_column(shown):
    listed = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))
    figures = {frames.in_seconds(path.replace(".", "_"))[0] for one in METRICS.values() for path in one.paths}
    for view in VIEWS:
        assert set(shown[view].columns) - figures <= listed


def test_a_column_of_the_cells_is_a_place_in_a_cell(run):
    """A misspelt place would be a column that is always null."""
    cell = run.summary.cells[0]
    missing = []
    for _kind, place in tables.PLACES.values():
        head, _, rest = place.partition(".")
        held = getattr(cell, head, None)
        if head not in cell.__struct_fields__ or (rest and held is not None and not hasattr(held, rest)):
            missing.append(place)
    assert missing == []


def test_the_gpus_of_an_engine_are_columns(whole_run):
    stored, manifest = whole_run.read_summary(), whole_run.read_manifest()
    gpu = made(Gpu, utilisation_pct={"mean": 71, "max": 99}, memory_used_bytes={"mean": 5, "max": 7})
    cell = made(CellResult, gpu=gpu, energy=made(Energy, gpu_w=310.5))
    (row,) = tables.cell_rows("run", changed(stored, cells=[cell]), manifest)
    found = dict(zip(tables.CELLS, row, strict=True))
    assert (found["gpu_power_w"], found["gpu_utilisation_pct"], found["gpu_memory_used_bytes"]) == (
        310.5,
        71,
        7,
    )
