"""`bench report --as TOOL`: the figures of the table, and the true reason where there is none."""

from harness.metrics.peers import TOOLS, Figure, View
from harness.report.tables.peer_figures import pairs
from harness.report.text.peers import as_json, terminal
from harness.report.view import groups
from tests.factories.summaries import cell, summary, verdict

POOLED = {
    "label": "vllm",
    "load": {"kind": "concurrency", "value": 4},
    "metric": "ttft_ms.p90",
    "interval": [70.0, 80.0, 95.0],
    "runs": 2,
    "method": "pooled",
}
FIGURES = (
    Figure("TTFT", "p50", "ms", "ttft_ms.p50", 20.0),
    Figure("TTFT", "p90", "ms", "ttft_ms.p90", 55.0),
    Figure("TTFT", "p99", "ms", "ttft_ms.p99", 66.0),
    Figure("output", "", "tok/s", "output_tokens_per_s", 100.0),
)


def run():
    short = {"ttft_ms": {"mean": 20.0, "p50": 20.0}, "output_tokens_per_s": None}
    why = {
        "ttft_ms.p90": "24 samples; p90 needs 29",
        "ttft_ms.p99": "24 samples; p99 needs 299",
        "output_tokens_per_s": "the server reports no token counts",
    }
    cells = [cell("vllm", repeat=repeat, **short, null_reasons=why) for repeat in (0, 1)]
    made = summary(*cells, estimates=[POOLED])
    views = {one.cell: View(FIGURES, {}) for one in cells}
    return made, views


def printed():
    made, views = run()
    (row,) = groups(made)[0].rows
    return {pair.title: pair for pair in pairs(row, views)}, terminal(made, TOOLS["vllm"], views, 200)


def test_a_figure_that_the_table_pools_is_pooled_here_and_differs_for_no_reason_of_the_tool():
    found, text = printed()
    assert (found["TTFT p90"].here, found["TTFT p90"].pooled, found["TTFT p90"].differs) == (
        80.0,
        True,
        False,
    )
    assert "pooled here, TTFT p90: over the requests of all repeats" in text
    assert "Nothing differs by more than 1%." in text


def test_what_no_records_show_is_a_line_of_its_own_for_all_cells():
    made, views = run()
    line = "vllm sends the first requests all at once."
    text = terminal(made, TOOLS["vllm"], {name: View(FIGURES, {}, (line,)) for name in views}, 200)
    assert text.splitlines().count(line) == 1


def test_a_simulated_run_says_so():
    """The figures have the names of engines that were not measured."""
    one = cell("vllm", simulated=True)
    made, views = summary(one), {one.cell: View(FIGURES, {})}
    assert terminal(made, TOOLS["vllm"], views, 200).startswith("SIMULATED: no inference engine was measured")
    assert as_json(made, TOOLS["vllm"], views)["simulated"] is True
    assert "SIMULATED" not in printed()[1]


def test_of_a_run_without_a_valid_cell_nothing_is_compared():
    invalid = verdict("INVALID", "failed-requests", "40 of 400", "1%", "")
    text = terminal(summary(cell("vllm", validity=invalid)), TOOLS["vllm"], {}, 80)
    assert text.endswith("nothing valid was measured\n\nNo figure is known of both: nothing was compared.\n")


def test_answers_without_text_are_not_called_invalid():
    """Vectors, for one: no other tool's definition is of them."""
    text = terminal(summary(vectors := cell("vllm")), TOOLS["vllm"], {vectors.cell: View((), {})}, 80)
    assert "no answer has text, whose times are compared\n\nNo figure is known of both" in text
    assert "nothing valid" not in text


def test_a_long_name_is_cut_to_what_the_figures_leave():
    named = cell("http://some-gateway.example.internal:8000/v1")
    views = {named.cell: View((*FIGURES, Figure("E2E of an answer", "p99", "ms", "e2e_ms.p99", 66.0)), {})}
    text = terminal(summary(named), TOOLS["vllm"], views, 60)
    assert max(map(len, text.splitlines())) <= 60
    assert "http://some-gateway.example.inter…\n" in text


def test_each_figure_that_only_the_tool_has_comes_with_its_own_reason():
    _, text = printed()
    assert "n/a here, TTFT p99: 24 samples; p99 needs 299; vllm prints it all the same." in text
    assert "n/a here, output: the server reports no token counts; vllm prints it all the same." in text
    assert "p90 needs" not in text


def test_json_marks_what_is_pooled_and_gives_the_reason_of_each_null():
    made, views = run()
    (row,) = as_json(made, TOOLS["vllm"], views)["cells"]
    found = {
        figure["name"]: (figure["here"], figure["pooled"], figure["null_reason"]) for figure in row["figures"]
    }
    assert found == {
        "TTFT p50, ms": (20.0, False, None),
        "TTFT p90, ms": (80.0, True, None),
        "TTFT p99, ms": (None, False, "24 samples; p99 needs 299"),
        "output, tok/s": (None, False, "the server reports no token counts"),
    }
