"""The lines of `bench compare` that name what is compared."""

from harness.model.baseline import ComparedRun
from harness.report.blocks.comparison import compared
from harness.report.findings.against import run_words
from harness.report.text.markdown_text import markdown
from harness.report.text.terminal_text import terminal
from harness.verdicts.baseline import compare_runs
from tests.unit.verdicts.test_baseline import BASE, run
from tests.unit.verdicts.test_pairs import cells


def test_a_run_of_another_tool_is_said_to_be_imported_once():
    run = ComparedRun(
        name="a",
        run="a",
        created_utc="2026-11-29T05:02:21+00:00",
        hostname=None,
        scenario="imported",
        state="complete",
        simulated=False,
        imported=("imported from aiperf 0.13.0 (records); client not verified",),
    )
    assert run_words(run) == (
        "a 2026-11-29T05:02:21+00:00 complete imported from aiperf 0.13.0 (records); client not verified"
    )


def test_a_reason_against_the_whole_comparison_is_named_below_its_differences_alone():
    """Each load point named it again."""
    document = compare_runs([BASE, run("new", cells("vllm", 100), host__gpus=["A100"])])
    (pair,) = document.pairs
    text = terminal(compared(document), 110, False)
    assert pair.refused
    assert "all:" not in text
    assert text.count(pair.refused) == 2  # what differs, and what is refused for it


def test_how_to_read_the_tables_stands_below_the_last_of_them():
    document = compare_runs([BASE, run("new", cells("vllm", 100), cells("tgi", 150))])
    assert len(document.pairs) == 2
    for text in (terminal(compared(document), 110, False), markdown(compared(document))):
        assert text.count("marks the primary metric") == 1
        assert text.rindex("E2E p50") < text.index("marks the primary metric")


def test_markdown_says_what_the_terminal_says():
    """It had no reason why nothing was decided, nor that --force compares, nor that no load is shared."""
    refused = compare_runs([BASE, run("new", cells("vllm", 100), host__gpus=["A100"])])
    few = compare_runs([BASE, run("new", cells("vllm", 100)[:1])])
    apart = compare_runs([BASE, run("new", cells("vllm", 100, load={"kind": "concurrency", "value": 64}))])
    for document, words in (
        (refused, "--force compares all the same"),
        (few, "all: 1 run each, 3 are needed"),
        (apart, "no load point in common"),
    ):
        assert words in terminal(compared(document), 200, False)
        assert words in markdown(compared(document))
