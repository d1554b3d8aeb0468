"""How many repeats are planned, which of them a step measures, and when a run stops."""

from argparse import ArgumentTypeError
from dataclasses import replace
from unittest.mock import patch

import pytest

from harness.cli.flags.argument_types import repeats
from harness.errors import SpecError
from harness.model import Levels, LoadPoint, Manifest, Summary
from harness.plan import make_plan
from harness.report.findings.stopping import one_start, stopping_lines
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.run.stopping import Costs, Stopping, step
from harness.spec.scenario import Load
from harness.verdicts.sequential import LookResult
from tests.factories.documents import changed, made

C2, C4 = LoadPoint("concurrency", 2), LoadPoint("concurrency", 4)
LABELS = ("a", "b", "c")
PLAN = make_plan(LABELS, Load(requests=8, concurrency=(2, 4)), 5)
TWO = RunOptions("fixed-length", "vllm,sglang", launch="simulate")


def names(blocks):
    return [cell.name for block in blocks for cell in block.cells]


def test_a_step_keeps_the_order_and_measures_what_is_needed():
    assert names(step(PLAN, LABELS, range(5), None)) == names(PLAN)
    needed = {("a", C4), ("c", C4)}
    assert names(step(PLAN, LABELS, range(3, 5), needed)) == [
        *("019-a-c4-r3", "021-c-c4-r3"),
        *("025-c-c4-r4", "027-a-c4-r4"),
    ]


def test_costs_are_of_what_was_measured():
    costs = Costs()
    first, other = PLAN[0], PLAN[1]
    assert costs.of([first], 1.0) is None
    costs.add([first], 30.0, dict.fromkeys(first.cells, 10.0))
    assert costs.of([first], 1.0) == 31.0
    assert costs.of([replace(first, cells=first.cells[:1])], 1.0) == 21.0
    assert costs.of([other], 1.0) is None


class Written:
    def __init__(self, looks, spent_s=0.0):
        self.document = made(Manifest, stopping={"looks": looks, "spent_s": spent_s})

    def write(self, **changes):
        self.document = changed(self.document, **changes)


class Said:
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


class Undecided:
    def __init__(self, a, b, load, levels=None):
        self.a, self.b, self.load, self.levels = a, b, load, levels


def walked(options, stands):
    """Repeats that were measured, cells of the last step, the manifest, what was said."""
    prepared = prepare(options)
    manifest, ui = Written(prepared.looks), Said()
    stopping = Stopping(prepared, manifest, ui)
    answers, steps = iter(stands), []
    for blocks in stopping.steps(lambda plan: list(plan), lambda: next(answers)):
        steps.append(blocks)
        for block in blocks:
            stopping.costs.add([block], 10.0 * len(block.cells), dict.fromkeys(block.cells, 10.0))
    return steps, manifest.document.stopping, ui.notes


OPEN = LookResult(1, 0, (Undecided("vllm", "sglang", C4),), 0)
DONE = LookResult(2, 0, (), 0)
AT = {"load.concurrency": [2, 4]}


def test_a_run_stops_once_all_is_decided():
    steps, told, said = walked(replace(TWO, overrides=AT), [DONE])
    assert [len(names(step)) for step in steps] == [4, 8]
    assert (told.repeats, told.reason) == (3, "decided")
    assert said == ["after 3 repeats: decided 2 of 2 pairs"]


def test_a_run_goes_on_with_what_is_open_to_the_last_look():
    steps, told, said = walked(replace(TWO, overrides=AT), [OPEN] * 5)
    assert [len(names(step)) for step in steps] == [4, 8, 2, 2, 4, 6]
    assert {cell.load for step in steps[2:] for block in step for cell in block.cells} == {C4}
    assert (told.repeats, told.reason) == (10, "max-repeats")
    # 7 repeats of 2 engines, 10 s a cell and 2 s between engines.
    assert said[0] == "after 3 repeats: decided 1 of 2 pairs, about 3 min left at most"
    assert len(said) == 5


def test_later_starts_have_the_blocks_that_decide_soonest():
    levels = Levels(within=0.01, between=0.02, blocks=2, starts=5, seconds=60.0)
    still = LookResult(0, 0, (Undecided("vllm", "sglang", C2, levels),), 0)
    paired = replace(TWO, overrides={"load.concurrency": [2]}, pairing="blocks", blocks=4)
    with patch("os.sched_getaffinity", lambda _: {0, 1}):
        steps, told, said = walked(paired, [still, DONE])
    assert [len(names(step)) for step in steps] == [8, 16, 4]
    assert {block.repeat for block in steps[2]} == {12, 13}
    assert told.blocks == (4, 4, 4, 2)
    assert "2 blocks a start from now on" in said[0]


def test_pairs_without_a_figure_end_a_run_with_another_reason():
    assert walked(replace(TWO, overrides=AT), [LookResult(1, 0, (), 1)])[1].reason == "no-figure"


def test_pairs_that_are_given_up_end_a_run_with_another_reason():
    assert walked(replace(TWO, overrides=AT), [LookResult(1, 0, (), 0, 1)])[1].reason == "unlikely"


# By the costs: 88 s to the first look (8 cells, 4 pauses), then 24 s a repeat of the one load that is open.
@pytest.mark.parametrize(
    ("budget_s", "steps", "repeats"), [(87.0, 1, 0), (89.0, 6, 10), (60.0, 1, 0), (23.0, 1, 0)]
)
def test_no_step_is_begun_that_the_budget_has_no_room_for(budget_s, steps, repeats):
    """Each step is judged by what is spent when it would begin, which here is next to nothing."""
    done, told, _ = walked(replace(TWO, overrides=AT, budget_s=budget_s), [OPEN] * 5)
    assert (len(done), told.repeats) == (steps, repeats)
    assert told.reason == ("budget" if steps == 1 else "max-repeats")


def test_what_was_spent_before_a_resume_counts():
    prepared = prepare(replace(TWO, overrides=AT, budget_s=100.0))
    manifest = Written(prepared.looks, spent_s=90.0)
    stopping = Stopping(prepared, manifest, Said())
    steps = stopping.steps(lambda plan: list(plan), lambda: OPEN)
    for block in next(steps):
        stopping.costs.add([block], 20.0, dict.fromkeys(block.cells, 10.0))
    assert list(steps) == []
    assert manifest.document.stopping.reason == "budget"


def test_the_time_of_a_step_that_was_cut_short_is_spent():
    """A resumed run got it again, up to that of a whole step."""
    prepared = prepare(replace(TWO, overrides=AT, budget_s=100.0))
    manifest = Written(prepared.looks, spent_s=20.0)
    with patch("harness.run.stopping.time.monotonic", side_effect=(1000.0, 1050.0)):
        stopping = Stopping(prepared, manifest, Said())
        block = next(stopping.steps(lambda plan: list(plan), lambda: OPEN))[0]
        stopping.count([block], 50.0, {})
    assert manifest.document.stopping.spent_s == 70.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backends": "vllm", "repeats": "auto"}, "auto needs two backends"),
        ({"repeats": "auto", "aa": True}, "--aa needs a number of repeats"),
        ({"repeats": 5, "budget_s": 60.0}, "only applies to --repeats auto"),
        ({"repeats": 5, "overrides": {"verdict.max_repeats": 8}}, "only applies to --repeats auto"),
        (
            {"repeats": 5, "overrides": {"verdict.min_repeats": 4}},
            "min_repeats: only applies to --repeats auto",
        ),
        ({"overrides": {"verdict.max_repeats": 2}}, "must be at least min_repeats"),
        ({"overrides": {"verdict.min_repeats": 2}}, "at least 3 repeats"),
        ({"budget_s": 0.0}, "must be above 0"),
        ({"overrides": {"verdict.between_repeats": "keep"}}, "drift would look like a difference"),
        (
            {"backends": "openai=http://127.0.0.1:1", "overrides": {"verdict.between_repeats": "restart"}},
            "^--between-repeats: .* cannot restart it",
        ),
        (
            {"scenario": "cold-start", "backends": "openai=http://127.0.0.1:1"},
            "^cold-start:verdict.between_repeats: bench did not start openai and cannot restart it",
        ),
    ],
)
def test_what_cannot_be_is_refused(changes, words):
    with pytest.raises(SpecError, match=words):
        prepare(
            replace(
                TWO, **{"launch": "auto" if "=" in str(changes.get("backends")) else "simulate"} | changes
            )
        )


def test_defaults_by_what_is_compared():
    assert prepare(TWO).looks == (3, 4, 5, 7, 10)
    assert (prepare(TWO).repeats, len(prepare(TWO).plan)) == (10, 20)
    assert prepare(replace(TWO, repeats=4)).looks == ()
    assert prepare(replace(TWO, overrides={"verdict.repeats": 5})).repeats == 5
    one = prepare(replace(TWO, backends="vllm"))
    assert (one.repeats, one.looks, one.backends[0].between) == (1, (), "restart")
    assert (prepare(replace(TWO, backends="vllm", aa=True)).repeats) == 5


def test_an_engine_that_is_kept_has_one_life():
    kept = prepare(replace(TWO, backends="vllm", repeats=3, overrides={"verdict.between_repeats": "keep"}))
    (block,) = kept.plan
    assert [cell.repeat for cell in block.cells] == [0, 0, 1, 1, 2, 2]
    assert [backend.between for backend in kept.backends] == ["keep"]
    attached = replace(TWO, backends="vllm=http://127.0.0.1:1,sglang=http://127.0.0.1:2", launch="auto")
    assert [backend.between for backend in prepare(attached).backends] == ["keep", "keep"]


def test_repeats_are_auto_or_a_number():
    assert (repeats("auto"), repeats("7")) == ("auto", 7)
    with pytest.raises(ArgumentTypeError, match="neither auto nor"):
        repeats("many")


STOPPED = {"looks": [3, 4], "alpha_per_look": 0.025, "repeats": 4, "budget_s": 90.0, "spent_s": 80.0}
LEFT = {
    "verdict_rules": {"primary": "ttft_ms.p50"},
    "comparison": [{"metric": "ttft_ms.p50", "primary": True, "verdict": "not enough runs"}],
}


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("decided", "stopped after 4 repeats: no pair is left that more repeats could decide; looks planned"),
        ("max-repeats", "1 of 1 pair not decided with the most repeats allowed (--max-repeats)"),
        ("budget", "1 of 1 pair not decided, and more repeats would exceed the budget of 90 s; looks"),
        ("no-figure", "for want of a figure that more repeats would not bring"),
        ("unlikely", "1 of 1 pair not decided, and the repeats allowed would hardly decide them"),
        (None, "the run did not come to its end"),
    ],
)
def test_why_a_run_stopped(reason, words):
    stopping = {**STOPPED, "rule": "group-sequential", "reason": reason}
    (line,) = stopping_lines(made(Summary, LEFT, stopping=stopping))
    assert words in line
    assert line.endswith("looks planned after 3 and 4 repeats, each at 2.5%")


def test_a_fixed_number_and_older_summaries_say_nothing():
    assert list(stopping_lines(made(Summary))) == []
    assert list(one_start(made(Summary))) == []
