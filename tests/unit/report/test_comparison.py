"""The lines of `bench compare` that name what is compared."""

from harness.model.baseline import ComparedRun
from harness.report.blocks.comparison import compared
from harness.report.findings.against import run_words
from harness.report.text.markdown_text import markdown
from harness.report.text.terminal_text import terminal
from harness.verdicts.baseline import compare_runs
from tests.factories.documents import changed
from tests.factories.summaries import UNSTEADY, verdict
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
        (refused, "(forbids a comparison)"),
        (few, "all: 1 run each, 3 are needed"),
        (apart, "no load point in common"),
    ):
        assert words in terminal(compared(document), 200, False)
        assert words in markdown(compared(document))


BUSY = verdict("SUSPECT", "contended", "1.9 of 2 cores", "10%", "")
ODD_GAPS = verdict("SUSPECT", "itl-merged", "2%", "1%", "", ["itl_ms"])
EIGHT = {"kind": "concurrency", "value": 8}
NEXT_DAY = {"created_utc": "2026-11-21T08:00:00+00:00"}


def in_doubt(*runs):
    document = compare_runs(runs)
    lines = [line for line in terminal(compared(document), 400, False).splitlines() if "in doubt: " in line]
    assert len(lines) == markdown(compared(document)).count("**in doubt:**")
    return "".join(lines).removeprefix("in doubt: ")


def test_what_is_in_doubt_is_one_line_whatever_the_figures():
    busy = run("new", cells("vllm", 100, validity=BUSY), cells("tgi", 150), **NEXT_DAY)
    assert in_doubt(BASE, busy) == "vllm in the run of 2026-11-21: 5 of 5 repeats SUSPECT: contended"
    assert not in_doubt(BASE, run("new", cells("vllm", 100), **NEXT_DAY))
    alone = run("alone", cells("vllm", 100, validity=BUSY), cells("tgi", 150))
    assert in_doubt(alone) == "vllm: 5 of 5 repeats SUSPECT: contended"


def test_backends_and_runs_in_the_same_doubt_share_a_part():
    old, new = (
        run(name, cells("vllm", 100, validity=BUSY), **at) for name, at in (("a", {}), ("b", NEXT_DAY))
    )
    assert (
        in_doubt(old, new)
        == "the run of 2026-11-21 and the run of 2026-11-20: each 5 of 5 repeats SUSPECT: contended"
    )


def test_a_doubt_names_its_loads_where_others_are_in_none():
    """And how many repeats broke a rule that not all of them did."""
    doubtful = [*cells("vllm", 100, validity=BUSY)[:2], *cells("vllm", 100)[2:]]
    doubtful[2] = changed(doubtful[2], validity=UNSTEADY)
    new = run("new", doubtful, cells("vllm", 100, load=EIGHT), **NEXT_DAY)
    assert in_doubt(run("base", cells("vllm", 100), cells("vllm", 100, load=EIGHT)), new) == (
        "the run of 2026-11-21: 3 of 5 repeats at 4 users SUSPECT: "
        "contended (2 repeats), not-steady (1 repeat)"
    )


def test_a_doubt_about_what_is_not_compared_is_none():
    assert not in_doubt(run("alone", cells("vllm", 100, validity=ODD_GAPS), cells("tgi", 150)))
    other = run("new", cells("vllm", 100, validity=BUSY), cells("tgi", 150), host__gpus=["A100"])
    assert not in_doubt(BASE, other)
