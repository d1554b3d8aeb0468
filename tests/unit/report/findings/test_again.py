"""The command that is printed as the next step is the one of the run, with what closes its questions."""

import shlex
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from harness.model.change import words
from harness.model.comparison import Stopping
from harness.report.findings.again import command, expected_s, taken, united
from harness.report.findings.conclude import conclude
from harness.report.findings.next_steps import reason_and_time
from tests.factories.documents import changed
from tests.factories.summaries import cell, summary, verdict
from tests.unit.report.findings.test_next_steps import compared, interleaved

RUN = ("bench", "run", "--scenario", "chat", "--backends", "a,b")


def begun(*more, duration_s=None, resumed=(), stopping=None, order=(), backends="ab"):
    """What a manifest has of the command."""
    load = {} if duration_s is None else {"duration_s": duration_s}
    return SimpleNamespace(
        command=(*RUN, *more),
        scenario=SimpleNamespace(load=load),
        resumed_utc=resumed,
        backends=dict.fromkeys(backends),
        stopping=stopping,
        order=order,
    )


def ended(budget_s, spent_s):
    """A run of `--repeats auto` that its budget ended."""
    rule = {"rule": "group-sequential", "alpha_per_look": 0.02}
    found = {"reason": "budget", "budget_s": budget_s, "spent_s": spent_s}
    return Stopping(looks=(3, 5, 10), repeats=0, **found, **rule)


@pytest.mark.parametrize(
    ("given", "change", "line"),
    [
        (
            ("--repeats", "2", "--json"),
            {"--repeats": "auto", "--max-repeats": 10},
            "--json --repeats auto --max-repeats 10",
        ),
        (("--requests=24", "-v"), {"--requests": 100}, "-v --requests 100"),
        (("--set", "load.requests=24"), {"--requests": 100}, "--requests 100"),
        (
            ("--set=load.warmup_requests=2", "--set", "load.think_time_s=1"),
            {"--set load.warmup_requests": 19},
            "--set load.think_time_s=1 --set load.warmup_requests=19",
        ),
        # What --repeats N refuses: the run was limited while it was `auto`.
        (
            ("--max-repeats", "3", "--budget", "2h", "--set", "verdict.min_repeats=3"),
            {"--repeats": 6},
            "--repeats 6",
        ),
        (
            ("--engine-set", "context_tokens=64", "--engine-set=dtype=float32"),
            {"--engine-set context_tokens": 196},
            "--engine-set dtype=float32 --engine-set context_tokens=196",
        ),
        (("--concurrency", "1,4"), {"--concurrency": (1.0, 4.0, 8.0)}, "--concurrency 1,4,8"),
        (("--budget", "90s"), {"--repeats": "auto", "--budget": 180}, "--repeats auto --budget 180s"),
        (("--trace", "a b; rm"), {}, "--trace 'a b; rm'"),
    ],
)
def test_a_changed_flag_replaces_the_one_that_was_given(given, change, line):
    assert command(begun(*given), change) == f"{shlex.join(RUN)} {line}"


@pytest.mark.parametrize("typed", [(), ("bench", "tune", "a"), ("rm", "-r"), (*RUN, "--out", "a\x1b[2J")])
def test_without_a_command_that_can_be_run_the_flags_are_named(typed):
    manifest = SimpleNamespace(command=typed)
    assert command(manifest, {"--repeats": 6}) == "the same command with `--repeats 6`"
    assert command(None, {}) == "the same command"


def test_changes_are_one_command():
    made = summary(cell("a"), cell("a", {"kind": "concurrency", "value": 8}))
    higher, speeds = {"--concurrency": (16.0, 32.0)}, {"--concurrency": (4.0, 8.0, 24.0)}
    assert united([higher], made, None) == {
        "--concurrency": (16, 32)
    }  # what is measured already need not be again
    assert united([higher, speeds], made, None) == {"--concurrency": (4, 8, 16, 24, 32)}
    more = [{"--requests": count} for count in (100, 120, 90)]
    assert words(united(more, made, None)) == ["--requests", "120"]


def test_more_requests_get_the_time_that_they_need():
    """A duration would cut the new cell as short as the old one was."""
    made = summary(changed(cell("a"), makespan_s=16.0, requests={"ok": 32}))
    wanted = [{"--requests": 128}]
    assert united(wanted, made, begun(duration_s=20.0)) == {"--requests": 128, "--duration": 96}
    assert united(wanted, made, begun(duration_s=200.0)) == {"--requests": 128}
    assert united(wanted, made, begun()) == {"--requests": 128}


def test_the_next_seed_is_another_one():
    made, manifest = summary(cell("a")), begun("--seed", "7")
    manifest.seeds = SimpleNamespace(run=7)
    changed_seed = united([{"--seed": None}], made, manifest)
    assert command(manifest, changed_seed) == f"{shlex.join(RUN)} --seed 8"
    unknown = united([{"--seed": None}], made, None)
    assert command(None, unknown) == "the same command with `--seed N`"


def test_more_loads_get_the_budget_that_they_need():
    """The budget of two loads would end five after a repeat."""
    cells = (cell("a"), cell("a", {"kind": "concurrency", "value": 8}))
    made, wider = replace(summary(*cells), stopping=ended(60, 50)), {"--concurrency": (1, 4, 8, 16, 32)}
    assert united([wider], made, None)["--budget"] == 150
    assert united([wider, {"--repeats": "auto", "--budget": 120}], made, None)["--budget"] == 300
    assert "--budget" not in united([{"--concurrency": (16, 32)}], made, None)
    assert "--budget" not in united([wider], summary(*cells), None)


def test_the_time_is_that_of_the_cells_and_of_what_lies_between_them():
    """Two cells of 10 s with 20 s between them: 20 s each."""
    cells = [
        changed(cell(label), makespan_s=10.0, started_unix_ns=int(begin * 1e9), requests={"ok": 50})
        for label, begin in (("a", 100), ("b", 130))
    ]
    made = summary(*cells)
    assert expected_s(made, begun(), {}) == pytest.approx(40)
    assert expected_s(made, begun(), {"--repeats": 3}) == pytest.approx(120)
    assert expected_s(made, begun(), {"--repeats": "auto"}) == pytest.approx(400)
    assert expected_s(made, begun(), {"--concurrency": (4.0, 8.0)}) == pytest.approx(80)
    assert expected_s(made, begun(), {"--requests": 100}) == pytest.approx(60)
    assert expected_s(made, begun(resumed=("2026-11-30",)), {}) is None
    assert expected_s(made, None, {}) is None
    limited = {"--repeats": "auto", "--budget": 90}
    assert expected_s(made, begun(), limited) == 90
    before = replace(made, stopping=ended(30, 25))
    assert expected_s(before, begun(), {"--repeats": "auto"}) == 30
    assert expected_s(before, begun(), {"--repeats": 3}) == pytest.approx(120)


def test_a_backend_against_itself_gets_a_number_of_repeats():
    """`--aa` refuses `--repeats auto`."""
    made = compared(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    (step,) = conclude(replace(made, noise=(None,)), begun("--aa")).next_steps
    assert step.do == f"{shlex.join(RUN)} --aa --repeats 6"


def test_one_step_says_all_that_a_new_run_would_close_and_its_time():
    short = verdict("SUSPECT", "too-short", "24", "100", "measure longer", change={"--requests": 100})
    measured = interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9))
    cells = [changed(each, validity=short, makespan_s=16.0) for each in measured]
    (step,) = conclude(compared(*cells), begun("--requests", "32")).next_steps
    assert step.why == "6 of 6 cells are SUSPECT, too-short; 1 of 1 pair is undecided"
    assert step.do == f"{shlex.join(RUN)} --repeats auto --requests 100 --max-repeats 10"
    assert reason_and_time(step) == f"{step.why} (takes 5 min to 17 min)"


def test_other_loads_are_a_step_of_their_own():
    """At 1 and 4 users a pair is undecided, the cells are too short, and the limit is not reached."""
    short = verdict("SUSPECT", "too-short", "24", "100", "measure longer", change={"--requests": 100})
    measured = [
        changed(
            each,
            cell=f"{number}-{users}",
            load={"kind": "concurrency", "value": users},
            validity=short,
            output_tokens_per_s=10.0 * users,
        )
        for users in (1, 4)
        for number, each in enumerate(interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    ]
    given = ("--requests", "32", "--repeats", "3", "--concurrency", "1,4")
    first, second = conclude(compared(*measured), begun(*given)).next_steps
    assert "undecided" in first.why
    assert "too-short" in first.why
    more = "--repeats auto --requests 100 --max-repeats 10"
    assert first.do == f"{shlex.join(RUN)} --concurrency 1,4 {more}"
    assert second.why == "the limit was not reached"
    assert second.do == f"{shlex.join(RUN)} --repeats 3 --concurrency 8,16 --requests 100"


@pytest.mark.parametrize(
    ("spent_s", "budget"),
    [
        (20, 72),  # a first verdict needs three repeats of 20 s, and some room
        (57, 206),  # the only repeat took longer than it was expected to
        (5, 60),
    ],
)
def test_a_budget_that_ended_a_run_after_one_repeat_is_larger_the_next_time(spent_s, budget):
    """`bench run --repeats auto --budget 30s` printed itself as the next step."""
    made = replace(compared(*interleaved((10.0,), (11.5,))), stopping=ended(30, spent_s))
    (step,) = conclude(made, begun("--repeats", "auto", "--budget", "30s")).next_steps
    assert step.why == "one repeat cannot tell a difference from noise"
    assert step.do == f"{shlex.join(RUN)} --repeats auto --budget {budget}s"


@pytest.mark.parametrize(
    ("backends", "state", "looks", "missing"),
    [
        ("a", "complete", None, True),
        ("a", "interrupted", None, False),
        ("ab", "complete", None, False),
        ("a", "complete", ended(90, 80), False),
    ],
)
def test_a_run_whose_only_backend_ended_is_to_be_resumed(backends, state, looks, missing):
    """Of several, the runs of the others are over by then. A rule may end a run before what was planned."""
    made = summary(cell("a"), state=state)
    manifest = begun(stopping=looks, order=(made.cells[0].cell, "007-a-c4-r6"), backends=backends)
    first, *_ = conclude(made, manifest).next_steps
    assert (first.why == "1 of 2 cells is missing (mend the cause first)") == missing
    assert (first.do == f"bench resume {made.run}") == (missing or state == "interrupted")


def test_bench_tune_is_advised_what_it_takes():
    made = compared(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    of_tune = begun()
    of_tune.command = ("bench", "tune", "a", "--scenario", "chat", "--budget", "10m")
    for change, added in (
        ({"--repeats": "auto"}, "--repeats 10"),
        ({"--repeats": "auto", "--max-repeats": 20, "--budget": 60}, "--repeats 20"),
        ({"--requests": 100, "--repeats": 6}, "--repeats 6 --set load.requests=100"),
        ({"--engine-set context_tokens": 512}, "--engine-set context_tokens=512"),
    ):
        assert command(of_tune, change) == f"the same command with `{added}`"
        assert expected_s(made, of_tune, change) is None
    asked = {"--workers": 2, "--seed": None, "--engine-set context_tokens": 512}
    assert taken(asked, made, of_tune).keys() == asked.keys() - {"--workers"}
    steps = [step.do for step in conclude(made, of_tune).next_steps]
    assert steps
    assert not any("--concurrency" in step or "auto" in step for step in steps)
