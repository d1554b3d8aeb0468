"""How engines that were up together are told of in words."""

from harness.model import Levels
from harness.report.findings.stopping import level_words, pairing_lines
from harness.report.text.table import markdown, terminal
from tests.factories.summaries import cell, summary

RULES = {"confidence": 0.95, "alpha": 0.05, "min_runs": 3}


def lines(kind, *cells):
    return list(pairing_lines(summary(*cells, verdict_rules={**RULES, "pairing": kind})))


def test_engines_that_took_turns_need_no_words():
    assert lines("starts", cell("a")) == []


def test_cores_and_seats_are_named():
    both = cell("a", start_number=0, cores=[0, 1]), cell("b", start_number=0, cores=[2, 3])
    assert lines("blocks", *both) == [
        "pairing by blocks: all engines were up and loaded in turns; "
        "cores 0,1 and 2,3, swapped between starts"
    ]
    assert "loaded at the same moments" in lines("duet", *both)[0]


def test_the_gpus_of_engines_that_swap_them_are_named():
    both = [
        cell(label, start_number=0, cores=[2 * at, 2 * at + 1], gpu={"engine_gpus": [at], "devices": []})
        for at, label in enumerate("ab")
    ]
    assert lines("blocks", *both)[0].endswith("cores 0,1 and 2,3 and GPUs 0 and 1, swapped between starts")


def test_the_table_has_them_among_the_first_lines_only():
    both = cell("a", start_number=0, cores=[0, 1]), cell("b", start_number=0, cores=[2, 3])
    of_blocks = summary(*both, verdict_rules={**RULES, "pairing": "blocks"})
    for text in (terminal(of_blocks, 110, False), markdown(of_blocks)):
        assert text.count("pairing by blocks") == 1


def test_of_running_servers_it_is_this_start():
    (line,) = lines("blocks", *(cell(label, start_number=0, launch="attach") for label in "ab"))
    assert (
        line == "pairing by blocks: the servers were loaded in turns; a verdict is about this start of each"
    )


def test_an_engine_whose_partner_was_not_measured_was_loaded_alone():
    """The line said that the servers were loaded at the same moments."""
    assert lines("duet", cell("b", start_number=0, launch="attach")) == [
        "pairing by duet: b was loaded alone, since no other was measured"
    ]
    assert lines("duet") == []


def test_the_levels_say_what_decides_soonest():
    found = Levels(within=0.032, between=0.009, blocks=6, starts=5, seconds=300)
    assert level_words(found) == (
        "blocks differ by 3.2%, starts by 0.9% more: "
        "6 blocks in each of 5 starts decide soonest, in 5 min (--blocks 6)"
    )
    none = Levels(within=0.3, between=0.2, blocks=None, starts=None, seconds=None)
    assert level_words(none).endswith("no number of blocks in the starts that are allowed would decide")
