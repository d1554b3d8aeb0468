"""What the pictures show, read from their SVG: text is text there."""

import subprocess
import sys
import warnings
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from harness.records.layout import UNKNOWN, Outcome, Phase, Records
from harness.records.series import Samples, Telemetry
from harness.report import plots
from harness.report.charts import charts
from harness.report.charts.point_labels import Box
from harness.report.plots import timeline
from harness.report.plots.style import Look, canvas
from harness.report.plots.timeline import lanes_of
from harness.report.samples import take
from tests.factories.documents import changed
from tests.factories.recorded import records
from tests.factories.runs import EIGHT, TWO, Engine, Shape, make_run
from tests.factories.summaries import cell, summary, verdict

pytestmark = pytest.mark.xdist_group("test_plots")  # matplotlib takes a second to begin

REAL = plots.Caption("shared-prefix", "SmolLM2", "2× H200", simulated=False)


def samples_of(folder):
    return {name: take(folder.read_cell(name)[0]) for name in folder.cells()}


def charts_of(folder):
    return charts(folder.read_summary(), samples_of(folder))


def drawn(folder, caption=REAL, changes=lambda found: found, *, wanted, timelines=False):
    """By name: charts whose name begins as `wanted` says, and with `timelines` those too."""

    def recorded(name):
        return folder.read_cell(name)[0], folder.read_telemetry(name)

    found, samples = changes(folder.read_summary()), samples_of(folder)
    chosen = [chart for chart in charts(found, samples) if chart.name.startswith(wanted)]
    place = folder.path / "plots"
    place.mkdir(exist_ok=True)
    pictures = {}
    for drawing in plots.draw(found, chosen, samples if timelines else {}, recorded, caption):
        pictures[drawing.picture.name] = drawing.picture
        (place / f"{drawing.picture.name}.png").write_bytes(drawing.png)
        (place / f"{drawing.picture.name}.svg").write_bytes(drawing.svg)
    return pictures


def size_of(svg):
    root = ElementTree.fromstring(svg)
    return root.get("width"), root.get("height")


def texts(path):
    return texts_of(path.read_bytes())


def texts_of(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")]


NAMES = (
    "ttft-cdf-c1",
    "ttft-cdf-c4",
    "itl-cdf-c1",
    "itl-cdf-c4",
    "ttft-load-concurrency",
    "ttft-p90-load-concurrency",
    "throughput-load-concurrency",
    "cache-load-concurrency",
    "pareto-per-user-concurrency",
    "pareto-ttft-p50-concurrency",
)
TIMELINES = ("timeline-001-llamacpp-c4-r0", "timeline-003-llamacpp@no-prefix-cache-c4-r0")
ONE_OF_A_KIND = (
    "ttft-cdf-c4",
    "ttft-load-concurrency",
    "cache-load-concurrency",
    "pareto-ttft-p50-concurrency",
)


@pytest.fixture(
    scope="module", params=[ONE_OF_A_KIND, pytest.param(NAMES, marks=pytest.mark.long)], ids=["some", "every"]
)
def names(request):
    """Charts that are drawn: each takes a while."""
    return request.param


@pytest.fixture(scope="module")
def two(tmp_path_factory, names):
    folder = make_run(tmp_path_factory.mktemp("two"))
    return folder, drawn(folder, wanted=names, timelines=True)


def test_every_picture_is_there_as_png_and_svg(two, names):
    folder, pictures = two
    assert {chart.name for chart in charts_of(folder) if chart.paper} == set(NAMES)
    assert set(pictures) == {*names, *TIMELINES}
    on_disk = {path.name for path in (folder.path / "plots").iterdir()}
    assert on_disk == {f"{name}.{ending}" for name in pictures for ending in ("png", "svg")}


def test_titles_say_scenario_model_machine_and_axes_their_units(two):
    folder, pictures = two
    for name, picture in pictures.items():
        found = texts(folder.path / "plots" / f"{name}.svg")
        assert picture.title in found
        assert "shared-prefix · SmolLM2 · 2× H200" in found
        assert "SIMULATED" not in found
    assert {"Time to first token, ms, log scale", "share of requests, %"} <= set(
        texts(folder.path / "plots" / "ttft-cdf-c4.svg")
    )
    assert {"TTFT p50, ms", "concurrency (closed loop), log scale", "1", "4"} <= set(
        texts(folder.path / "plots" / "ttft-load-concurrency.svg")
    )
    assert {"ideal", "cached share of prompt tokens, %"} <= set(
        texts(folder.path / "plots" / "cache-load-concurrency.svg")
    )


def test_a_simulated_run_says_so_in_every_picture(tmp_path):
    """Of each kind of picture one is drawn."""
    folder = make_run(tmp_path, Shape(TWO[:1], requests=8, concurrency=(2,)))
    caption = plots.Caption("s", "m", "h", simulated=True)
    pictures = drawn(folder, caption, wanted=("ttft-cdf", "throughput"))
    assert set(pictures) == {"ttft-cdf-c2", "throughput-load-concurrency"}
    drawings = [(folder.path / "plots" / f"{name}.svg").read_bytes() for name in pictures]
    rows = folder.read_cell(folder.cells()[0])[0]
    drawings.append(timeline.draw(folder.read_summary().cells[0], rows, caption).svg)
    for drawing in drawings:
        found = texts_of(drawing)
        assert "SIMULATED" in found
        assert "SIMULATED · s · m · h" in found


def test_a_picture_says_what_its_marks_and_bars_are():
    found = summary(*(cell("vllm", p50=20.0 + repeat, repeat=repeat) for repeat in range(2)))
    wanted = [chart for chart in charts(found, {}) if chart.name.startswith("ttft-load")]
    (drawing,) = plots.draw(found, wanted, {}, None, REAL)
    words = texts_of(drawing.svg)
    assert {"shared-prefix · SmolLM2 · 2× H200", "Median of the repeats with their range"} <= set(words)


def test_less_than_all_is_not_written_as_all_next_to_a_mark():
    found = summary(*(cell(name, prefix_cache_hit_rate=0.9997) for name in ("llamacpp", "vllm")))
    wanted = [chart for chart in charts(found, {}) if chart.name.startswith("cache-load")]
    (drawing,) = plots.draw(found, wanted, {}, None, REAL)
    assert texts_of(drawing.svg).count("99.97") == 2


@pytest.mark.long
def test_eight_backends_look_different_and_are_all_named(tmp_path):
    looks = [Look(index) for index in range(72)]
    assert len({look.color for look in looks[:8]}) == len({look.marker for look in looks[:8]}) == 8
    assert len({(look.color, look.marker) for look in looks}) == 72
    folder = make_run(tmp_path, Shape(EIGHT, concurrency=(1, 16), requests=12))
    drawn(folder, wanted=("ttft-cdf-c16", "ttft-load", "cache-load"))
    for name in ("ttft-cdf-c16", "ttft-load-concurrency"):
        assert {engine.label for engine in EIGHT} <= set(texts(folder.path / "plots" / f"{name}.svg"))
    # Two report no cached tokens: not drawn, rather than drawn at zero.
    assert not {"tgi", "ollama"} & set(texts(folder.path / "plots" / "cache-load-concurrency.svg"))


def test_a_picture_of_many_backends_is_higher_so_that_their_names_leave_room():
    loads = [{"kind": "concurrency", "value": value} for value in (1, 8)]
    found = summary(*(cell(f"backend-number-{number}", load) for number in range(60) for load in loads))
    wanted = [chart for chart in charts(found, {}) if chart.name == "ttft-load-concurrency"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (drawing,) = plots.draw(found, wanted, {}, None, REAL)
    assert {f"backend-number-{number}" for number in range(60)} <= set(texts_of(drawing.svg))
    width, height = (float(size.removesuffix("pt")) for size in size_of(drawing.svg))
    assert height > width


def test_labels_of_points_that_lie_together_do_not_cover_each_other():
    """And a front of one point, where no line is drawn, is not in the legend."""
    names = ("llamacpp", "openvino-genai", "vllm")
    found = summary(*(cell(name, p50=20 + at / 9, state="saturated") for at, name in enumerate(names)))
    wanted = [chart for chart in charts(found, {}) if chart.name.startswith("pareto-ttft")]
    (drawing,) = plots.draw(found, wanted, {}, None, REAL)
    svg = ElementTree.fromstring(drawing.svg)
    labels = [one for one in svg.iter() if one.text in names and "font-size: 8px" in one.get("style", "")]
    boxes = [_box(one) for one in labels]
    assert sorted(one.text for one in labels) == list(names)
    assert all(one.overlap(other) == 0 for one, other in combinations(boxes, 2))
    assert "not beaten in both" not in texts_of(drawing.svg)


def test_loads_that_lie_together_have_a_tick_each_and_texts_that_do_not_touch():
    loads = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256)
    found = summary(*(cell("vllm", {"kind": "rate", "value": value}, p50=20.0 + value) for value in loads))
    wanted = [chart for chart in charts(found, {}) if chart.name == "ttft-load-rate"]
    (drawing,) = plots.draw(found, wanted, {}, None, REAL)
    svg = ElementTree.fromstring(drawing.svg)
    ticks = [part for part in svg.iter() if part.get("id", "").startswith("xtick_")]
    texts = [one for tick in ticks for one in tick.iter() if one.tag.endswith("}text")]
    assert len(ticks) == len(loads)
    assert [one.text for one in texts] == [str(value) for value in loads if value != 128]


def _box(text):
    x, y, wide = float(text.get("x")), float(text.get("y")), 4.4 * len(text.text)
    anchor = text.get("style").partition("text-anchor: ")[2].partition(";")[0]
    left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
    return Box(left, y - 7, left + wide, y)


def test_a_caption_ends_inside_its_picture():
    whole = plots.Caption("structured-output", "Random weights of Llama 3.1 8B", "AMD EPYC 9654, " * 5, False)
    with canvas() as figure:
        shown = figure.text(0.0105, 0.9, whole.line, fontsize=8)
        ends = shown.get_window_extent(FigureCanvasAgg(figure).get_renderer()).x1
        assert whole.line.endswith("…")
        assert ends < figure.bbox.width


def test_one_load_point_puts_the_backends_side_by_side(tmp_path):
    folder = make_run(tmp_path, Shape(concurrency=(), rates=(4,), repeats=2, requests=40))
    pictures = drawn(folder, wanted=("throughput", "cache"))
    assert pictures["throughput-load-rate"].title == "Throughput, open loop, 4 requests/s"
    found = texts(folder.path / "plots" / "cache-load-rate.svg")
    assert {
        "llamacpp",
        "llamacpp@no-prefix-cache",
        "cached share of prompt tokens, % (dotted: ideal)",
    } <= set(found)


def test_the_same_folder_gives_the_same_bytes(tmp_path):
    folder = make_run(tmp_path, Shape(requests=8, concurrency=(2, 4)))
    drawn(folder, wanted=("ttft-cdf-c2", "pareto-ttft"))
    first = path_bytes(folder)
    assert len(first) == 4
    drawn(folder, wanted=("ttft-cdf-c2", "pareto-ttft"))
    assert first == path_bytes(folder)


def path_bytes(folder):
    return {path.name: path.read_bytes() for path in (folder.path / "plots").iterdir()}


def test_names_are_drawn_as_they_are(tmp_path):
    odd = Engine('a$x_1$<b>&"{', text="")
    folder = make_run(tmp_path, Shape((odd, TWO[0]), requests=8, concurrency=(2,)))
    drawn(folder, wanted="ttft-cdf")
    assert odd.label in texts(folder.path / "plots" / "ttft-cdf-c2.svg")


def test_a_name_that_the_font_lacks_is_no_failure(tmp_path):
    folder = make_run(tmp_path, Shape((Engine("模型"), TWO[0]), requests=8, concurrency=(2,)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn(folder, wanted="ttft-cdf")
    assert "模型" in texts(folder.path / "plots" / "ttft-cdf-c2.svg")


def test_invalid_cells_are_in_no_picture(tmp_path):
    folder = make_run(tmp_path, Shape(requests=8, concurrency=(2,)))
    bad = verdict("INVALID", "client-busy", "97%", "90%", "")

    def spoil(found):
        cells = [changed(cell, validity=bad) if cell.variant else cell for cell in found.cells]
        return changed(found, cells=cells)

    drawn(folder, changes=spoil, wanted=("ttft-cdf", "itl-cdf"))
    for name in ("ttft-cdf-c2", "itl-cdf-c2"):
        assert "llamacpp@no-prefix-cache" not in texts(folder.path / "plots" / f"{name}.svg")

    def spoil_all(found):
        return changed(found, cells=[changed(cell, validity=bad) for cell in found.cells])

    kinds = ("ttft", "itl", "throughput", "cache")
    assert any("load" in name for name in drawn(folder, wanted="throughput"))
    assert not any("cdf" in name or "load" in name for name in drawn(folder, changes=spoil_all, wanted=kinds))


def test_lanes_are_as_many_as_requests_were_in_flight():
    rows = records(
        {"intended": 0, "sent": 0, "texts": [5, 10]},
        {"intended": 1, "sent": 1, "texts": [5, 30]},
        {"intended": 12, "sent": 12, "texts": [14, 20]},
        {"intended": 13, "sent": 13, "texts": [14, 20]},
    ).requests
    assert lanes_of(rows).tolist() == [1, 2, 1, 3]


def test_a_request_that_is_due_when_one_ends_takes_its_lane():
    """Both times are readings of one moment, which may differ by nanoseconds."""
    rows = records(
        {"intended": 0, "sent": 0, "texts": [5, 10]}, {"intended": 10, "sent": 11, "texts": [15, 20]}
    ).requests
    rows["end_ns"][0] = rows["intended_ns"][1] + 13
    assert lanes_of(rows).tolist() == [1, 1]
    rows["end_ns"][0] = rows["intended_ns"][1] + 1_000_000
    assert lanes_of(rows).tolist() == [1, 2]


def test_a_timeline_names_what_there_was(tmp_path):
    rows = records(
        {"intended": 0, "sent": 40, "texts": [60, 90]},
        {"intended": 10, "sent": 10, "texts": [], "outcome": Outcome.TIMEOUT},
    )
    rows.requests["end_ns"][1] = 50_000_000
    drawing = timeline.draw(cell(), rows, REAL)
    assert drawing is not None
    assert drawing.picture.description.startswith("2 requests, 1 of them not answered, over 0.1 seconds")
    found = texts_of(drawing.svg)
    assert {
        "held back by the client",
        "waiting for the first token",
        "tokens arriving",
        "not answered",
    } <= set(found)
    assert not {"warm-up", "drain"} & set(found)


def test_a_timeline_shades_the_warm_up_and_the_drain(two):
    folder, _ = two
    assert {"warm-up", "drain"} <= set(texts(folder.path / "plots" / "timeline-001-llamacpp-c4-r0.svg"))


def a_ramp():
    """A warm-up request, two measured ones, and their cell."""
    rows = records(
        {"intended": 0, "sent": 0, "texts": [90], "phase": Phase.WARMUP},
        {"intended": 100, "sent": 100, "texts": [190]},
        {"intended": 300, "sent": 300, "texts": [500]},
    )
    return rows, cell(window_start_s=0.2, window_s=0.25, window_kind="steady")


def test_the_warm_up_of_a_timeline_ends_where_the_first_measured_request_is_sent():
    """The rates begin later: what is measured until then is a ramp."""
    rows, ramped = a_ramp()
    shaded = list(timeline._aside(rows.requests, ramped, 0.5))
    assert shaded == [
        (0.0, 0.1, "warm-up", "left"), (0.1, 0.2, "ramp", "left"), (0.45, 0.5, "drain", "right"),
    ]  # fmt: skip
    at_once = timeline._aside(rows.requests, changed(ramped, window_start_s=0.1, window_s=0.4), 0.5)
    assert [name for _start, _stop, name, _side in at_once] == ["warm-up"]


def test_names_of_stretches_that_would_cover_each_other_are_written_as_one():
    rows, ramped = a_ramp()
    alone, shared = (timeline.draw(ramped, rows, REAL, until_s=until_s) for until_s in (0.0, 4.0))
    assert {"warm-up", "ramp", "drain"} <= set(texts_of(alone.svg))
    assert "warm-up, ramp, drain" in texts_of(shared.svg)


INVALID = verdict("INVALID", "too-few-samples", "0", "30", "")


def test_a_timeline_is_of_an_invalid_cell_only_where_there_is_no_other():
    highest, lower = ({"kind": "concurrency", "value": value} for value in (32, 8))
    cells = [
        cell("a", highest, 0, validity=INVALID),
        cell("a", highest, 1),
        cell("b", highest, 0, validity=INVALID),
        cell("b", lower, 0),
        cell("c", lower, 0, validity=INVALID),
        cell("c", highest, 0, validity=INVALID),
    ]
    assert [(one.label, one.load.value, one.repeat) for one in timeline.chosen(cells)] == [
        ("a", 32, 1),
        ("b", 8, 0),
        ("c", 32, 0),
    ]
    assert len(timeline.chosen([cell(f"backend-{number}", lower, 0) for number in range(60)])) == 50


def test_a_timeline_of_an_invalid_cell_says_so_and_shades_its_warm_up():
    """With the warm-up alone there is no window."""
    rows = records({"intended": 0, "sent": 0, "texts": [60, 90], "phase": Phase.WARMUP})
    drawing = timeline.draw(cell(validity=INVALID, window_s=None), rows, REAL)
    assert drawing.picture.title == "Timeline of llamacpp, closed loop, concurrency 4 (INVALID)"
    assert {drawing.picture.title, "warm-up"} <= set(texts_of(drawing.svg))


def test_a_timeline_of_answers_without_text_has_no_tokens():
    rows = records({"intended": 0, "sent": 0, "texts": [90]}, {"intended": 10, "sent": 10, "texts": [60]})
    for name in ("first_text_ns", "last_text_ns", "output_tokens"):
        rows.requests[name] = UNKNOWN
    rows.requests["text_events"] = 0
    bare = Records(rows.requests, rows.events[:0], ["", ""], rows.finish_reasons, rows.errors)
    drawing = timeline.draw(cell(conditions={"api": "embeddings"}), bare, REAL)
    found = set(texts_of(drawing.svg))
    assert {"in the server", "seconds from the start of the cell"} <= found
    assert not {"waiting for the first token", "tokens arriving", "tokens/s"} & found
    assert drawing.picture.description == "2 requests, over 0.1 seconds."


def test_a_timeline_of_nothing_sent_is_none(tmp_path):
    rows = records({"intended": 0, "sent": None, "texts": [], "outcome": Outcome.DROPPED})
    assert timeline.draw(cell(), rows, REAL) is None


def test_the_table_does_not_wait_for_matplotlib():
    code = "import sys, harness.report.text.table; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def sampled(*values):
    """One sample every 10 ms from 10 ms before the first request."""
    return Samples(np.arange(len(values)) * 10_000_000 - 10_000_000, np.array(values, float))


@pytest.fixture
def watched():
    """Two requests, and what was sampled meanwhile on a machine with eight GPUs."""
    rows = records(
        {"intended": 0, "sent": 0, "texts": [20, 90]}, {"intended": 5, "sent": 5, "texts": [60, 90]}
    )
    count = 11
    telemetry = Telemetry(
        {
            "engine.running": sampled(*[2] * count),
            "engine.waiting": sampled(*[1] * count),
            "engine.kv_use": sampled(*[0.25] * count),
            "host.cpu_busy_s": sampled(*np.linspace(0, 0.2, count)),
            "server.cpu_s": sampled(*np.linspace(0, 0.1, count)),
            "client.cpu_s": sampled(*np.linspace(0, 0.01, count)),
            **{f"gpu.{index}.utilisation_pct": sampled(*[90] * count) for index in range(8)},
            **{f"gpu.{index}.power_w": sampled(*[300] * count) for index in range(8)},
        }
    )
    return rows, telemetry


def test_a_timeline_shows_what_was_sampled_over_the_same_axis(watched):
    rows, telemetry = watched
    few = timeline.draw(cell(gpu={"engine_gpus": [0, 1]}, host={"cpus": 2}), rows, REAL, telemetry)
    found = set(texts_of(few.svg))
    assert {
        "running",
        "waiting",
        "KV cache in use",
        "GPU 0 busy",
        "GPU 1 busy",
        "engine",
        "other work",
    } <= found
    assert "KV cache in use up to 25.0%" in few.picture.description
    assert "engine up to 1.00 cores" in few.picture.description
    assert "GPU 1 up to 300 W" in few.picture.description


@pytest.mark.long
def test_many_gpus_of_a_timeline_are_one_line_each_way(watched):
    rows, telemetry = watched
    machine = {"gpu": {"engine_gpus": list(range(8))}, "host": {"cpus": 2}}
    many = timeline.draw(cell(**machine), rows, REAL, telemetry)
    found = set(texts_of(many.svg))
    assert {"8 GPUs busy, mean", "8 GPUs, sum"} <= found
    assert "8 GPUs busy, mean up to 90.0%" in many.picture.description
    assert "8 GPUs, sum up to 2400 W" in many.picture.description
