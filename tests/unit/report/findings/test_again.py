"""The command that is printed as the next step is the one of the run, with what closes its questions."""

import shlex
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from harness.model import UNSET
from harness.model.change import words
from harness.model.comparison import Stopping
from harness.report.findings.again import auto_repeats, command, expected_s, taken, united
from harness.report.findings.conclude import conclude
from harness.report.findings.next_steps import reason_and_time
from tests.factories.documents import changed
from tests.factories.summaries import cell, summary, verdict
from tests.unit.report.findings.test_next_steps import compared, interleaved

PLANNED = cell("a").requests.planned
RUN = ("bench", "run", "--scenario", "chat", "--backends", "a,b")


def begun(*more, duration_s=None, resumed=(), stopping=None, order=(), backends="ab", verdict=UNSET):
    """What a manifest has of the command."""
    load = {} if duration_s is None else {"duration_s": duration_s}
    return SimpleNamespace(
        command=(*RUN, *more),
        scenario=SimpleNamespace(load=load, verdict=verdict),
        created_utc="1970-01-01T00:01:00+00:00",
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
    # What is measured already need not be again, and four times the users get as many waves.
    assert united([higher], made, None) == {"--concurrency": (16, 32), "--requests": 4 * PLANNED}
    assert united([higher, {"--requests": 100}], made, None)["--requests"] == 400
    by_time = summary(*(changed(each, requests={"unsent": 5}) for each in made.cells))
    assert "--requests" not in united([higher], by_time, None)
    assert united([higher, speeds], made, None) == {"--concurrency": (4, 8, 16, 24, 32)}
    more = [{"--requests": count} for count in (100, 120, 90)]
    assert words(united(more, made, None)) == ["--requests", "120"]


@pytest.mark.parametrize(
    ("unsent", "duration_s", "change", "seconds"),
    [
        (0, None, {"--requests": 200}, 40.0),
        (0, 20.0, {"--requests": 400}, 20.0),  # the time is over first
        (0, 20.0, {"--requests": 400, "--duration": 90}, 80.0),
        (0, 20.0, {"--duration": 90}, 10.0),  # it has no more requests
        (0, None, {"--duration": 5}, 5.0),
        (7, 12.0, {"--duration": 42}, 40.0),
        (7, 12.0, {}, 10.0),
        (7, 12.0, {"--duration": 90, "--requests": 100}, 20.0),
        (7, None, {}, 10.0),  # it was interrupted
    ],
)
def test_a_load_lasts_until_its_requests_or_its_time_are_over(unsent, duration_s, change, seconds):
    """50 answers in 10 s, of a load that was begun when the run was."""
    counts = {"ok": 50, "planned": 50 + unsent, "unsent": unsent}
    made = summary(changed(cell("a"), makespan_s=10.0, requests=counts, started_unix_ns=60_000_000_000))
    assert expected_s(made, begun(duration_s=duration_s, backends="a"), change) == pytest.approx(seconds)


def test_the_warm_up_takes_as_long_again():
    """48 s of an agent's calls were expected to take 53 s, and 27 s of warm-up came before them."""
    client = {"wall_s": 38.0}
    made = summary(changed(cell("a"), makespan_s=11.0, started_unix_ns=60_000_000_000, client=client,
                           requests={"ok": 5, "planned": 30, "unsent": 25}))  # fmt: skip
    assert expected_s(made, begun(duration_s=10.0, backends="a"), {"--duration": 48}) == pytest.approx(76)
    first, second = (
        changed(cell("a", {"kind": "concurrency", "value": users}), makespan_s=11.0, client=client,
                started_unix_ns=begin * 1_000_000_000)
        for users, begin in ((1, 60), (2, 100))
    )  # fmt: skip
    assert expected_s(summary(first, second), begun(backends="a"), {}) == pytest.approx(80)


def test_a_single_cell_has_its_start_in_the_time_of_the_run():
    """An engine of 40 s to start was expected to be measured in 10 s."""
    made = summary(changed(cell("a"), makespan_s=10.0, started_unix_ns=100_000_000_000))
    assert expected_s(made, begun(backends="a"), {}) == pytest.approx(50)


def test_a_load_takes_as_long_as_the_nearest_that_was_measured():
    """A working set of 0 crashed the report."""

    def at(value, seconds, begin, kind="concurrency"):
        load = {"kind": kind, "value": value}
        return changed(cell("a", load), makespan_s=seconds, started_unix_ns=int(begin * 1e9))

    made, run = summary(at(1, 80.0, 100), at(16, 5.0, 180)), begun(backends="a")
    assert expected_s(made, run, {"--concurrency": (32.0, 64.0)}) == pytest.approx(10)
    assert expected_s(made, run, {"--concurrency": (2.0, 16.0)}) == pytest.approx(85)
    assert expected_s(made, run, {}) == pytest.approx(85)
    sets = summary(*(at(value, 5.0, 100 + 5 * value, "working-set") for value in (0, 1)))
    assert expected_s(sets, run, {}) == pytest.approx(10)


def test_auto_repeats_are_those_of_the_scenario_and_of_running_servers():
    """A scenario of its own that asked for 12 repeats at least was advised 10 at the most, which is refused,
    and running servers 10 blocks at the most of the 40 that they may have.
    """
    made = compared(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    assert auto_repeats(made, None) == auto_repeats(made, begun()) == (3, 10)
    many = begun(verdict=SimpleNamespace(min_repeats=12, max_repeats=30))
    assert auto_repeats(made, many) == (12, 30)
    (step,) = conclude(made, many).next_steps
    assert step.do.endswith("--repeats auto --max-repeats 30")
    assert auto_repeats(replace(made, stopping=ended(30, 25)), many) == (3, 10)
    rules = replace(made.verdict_rules, pairing="blocks", between_repeats={"a": "keep", "b": "keep"})
    servers = replace(made, verdict_rules=rules)
    assert auto_repeats(servers, begun()) == (10, 40)
    restarted = replace(rules, between_repeats={"a": "restart", "b": "restart"})
    assert auto_repeats(replace(made, verdict_rules=restarted), begun()) == (3, 10)


def test_blocks_that_are_too_alike_are_to_be_more():
    """The verdict said `more blocks would do`, and the step that more would hardly help."""
    made = compared(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    alike = "3 blocks are worth 1.7 independent ones, 8 are needed: more blocks would do"
    pairs = [replace(entry, why=alike, lacks=alike, runs_needed=None) for entry in made.comparison]
    rules = replace(made.verdict_rules, pairing="blocks", between_repeats={"a": "keep", "b": "keep"})
    (step,) = conclude(replace(made, comparison=pairs, verdict_rules=rules), begun()).next_steps
    assert step.why == "1 of 1 pair is undecided"
    assert step.do.endswith("--repeats auto --max-repeats 40")


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
    """Two cells of 10 s with 20 s between them: 30 s each, as the first one has a start too."""
    cells = [
        changed(cell(label), makespan_s=10.0, started_unix_ns=int(begin * 1e9), requests={"ok": 50})
        for label, begin in (("a", 100), ("b", 130))
    ]
    made = summary(*cells)
    assert expected_s(made, begun(), {}) == pytest.approx(60)
    assert expected_s(made, begun(), {"--repeats": 3}) == pytest.approx(180)
    assert expected_s(made, begun(), {"--repeats": "auto"}) == pytest.approx(600)
    assert expected_s(made, begun(), {"--concurrency": (4.0, 8.0)}) == pytest.approx(120)
    assert expected_s(made, begun(), {"--requests": 100}) == pytest.approx(80)
    assert expected_s(made, begun(resumed=("2026-11-30",)), {}) is None
    assert expected_s(made, None, {}) is None
    limited = {"--repeats": "auto", "--budget": 90}
    assert expected_s(made, begun(), limited) == 90
    before = replace(made, stopping=ended(30, 25))
    assert expected_s(before, begun(), {"--repeats": "auto"}) == 30
    assert expected_s(before, begun(), {"--repeats": 3}) == pytest.approx(180)


def test_a_backend_against_itself_gets_a_number_of_repeats():
    """`--aa` refuses `--repeats auto`."""
    made = compared(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    (step,) = conclude(replace(made, noise=(None,)), begun("--aa")).next_steps
    assert step.do == f"{shlex.join(RUN)} --aa --repeats 6"


@pytest.mark.parametrize(("needed", "most"), [(8, 10), (18, 18)])
def test_a_pair_gets_as_many_repeats_as_would_decide_it(needed, most):
    """Below `about 18 runs would decide` stood `--max-repeats 10`."""
    made = compared(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    pairs = [replace(entry, runs_needed=needed) for entry in made.comparison]
    (step,) = conclude(replace(made, comparison=pairs), begun()).next_steps
    assert step.do == f"{shlex.join(RUN)} --repeats auto --max-repeats {most}"


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
    assert second.do == f"{shlex.join(RUN)} --repeats 3 --concurrency 8,16 --requests 400"


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
