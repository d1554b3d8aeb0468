"""Which backend carries more at equal speed per user, from sweeps whose truth is known."""

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace

from harness.model import Validity
from harness.report.findings.per_user_words import asked_speed_lines, no_shared_speed, per_user_lines
from harness.report.tables.per_user import per_user_tables
from harness.report.text.screen import screen
from harness.report.text.table import markdown
from harness.stats.runs import Shift, exponential
from harness.stats.serial import independent_share
from harness.verdicts import Rules
from harness.verdicts.per_user import speed_levels
from harness.verdicts.speed_curves import curves
from tests.factories.documents import changed
from tests.factories.summaries import UNSTEADY, cell, summary

RULES = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50", "output_tokens_per_s"))
LOADS = (1, 4, 16, 64)
NOISE = (1.0, 1.004, 0.997)


def sweep(label, each_ms=0.25, alone_ms=10.0, loads=LOADS, noise=NOISE, kind="concurrency", **more):
    """A server whose TPOT is alone_ms + each_ms for each request in flight: its curve is straight."""
    return [
        point(label, load, repeat, (alone_ms + each_ms * load) * slow, load, kind=kind, **more)
        for repeat, slow in enumerate(noise)
        for load in loads
    ]


def point(label, load, repeat, tpot_ms, in_flight, kind="concurrency", **more):
    rate = 1000 * in_flight / tpot_ms
    begun = 100 * repeat + (1 if (label > "m") == bool(repeat % 2) else 0)  # a b, b a, a b
    given = {
        "state": "saturated",
        "output_tokens_per_s": rate,
        "tpot_ms": {"mean": tpot_ms, "p50": tpot_ms, "p90": tpot_ms, "p95": None, "p99": None},
        "started_unix_ns": begun,
        **more,
    }
    return cell(label, {"kind": kind, "value": load}, repeat, **given)


def within(*limits_ms, share="p50"):
    """The `slo` of a cell that kept these limits of the TPOT."""
    limit = {"metric": "tpot_ms", "share": share, "within": 1, "met": True}
    limits = [limit | {"limit_ms": limit_ms} for limit_ms in limits_ms]
    return {"limits": limits, "met": True, "good": 1, "requests": 1, "attainment": 1.0}


def levels(*sweeps):
    return speed_levels([run for mine in sweeps for run in mine], RULES)


def lines(*sweeps):
    cells = [run for mine in sweeps for run in mine]
    return list(per_user_lines(replace(summary(*cells), per_user=speed_levels(cells, RULES))))


def test_a_server_whose_requests_cost_a_third_less_carries_half_as_much_again():
    found = levels(sweep("vllm", 0.25), sweep("sglang", 0.375))
    assert [level.tokens_per_s_per_user for level in found] == [50, 60, 80]
    assert {level.per for level in found} == {"machine"}
    for level in found:
        (pair,) = level.pairs
        assert (pair.a, pair.b, pair.verdict) == ("vllm", "sglang", "more")
        assert pair.ratio.estimate == pytest.approx(1.5, rel=1e-3)
        assert pair.ratio.low < 1.5 < pair.ratio.high
        speed = level.tokens_per_s_per_user
        assert level.figures[0].tokens_per_s == pytest.approx((1000 - 10 * speed) / 0.25, rel=0.02)
        assert level.figures[0].interval.low < level.figures[0].tokens_per_s
        assert level.figures[0].interval.estimate == pytest.approx(level.figures[0].tokens_per_s)
    assert [[load.value for load in level.figures[0].loads] for level in found] == [
        [16, 64],
        [16, 64],
        [4, 16],
    ]


def test_the_line_names_the_speed_the_better_one_and_the_interval():
    first, *_ = lines(sweep("sglang", 0.375), sweep("vllm", 0.25))
    start = "at 50 tokens/s per user: vllm carries 1.5 times the output tokens/s of sglang ("
    assert first.startswith(start)
    low, high = map(float, first.removeprefix(start).rstrip(")").split(" to "))
    assert low < 1.5 < high


def test_the_pairs_of_the_best_backend_come_first():
    first, *_ = lines(*(sweep(f"e{number}", 0.25 * 1.3 ** (3 - number)) for number in range(4)))
    assert [part.partition(" carries ")[0].rpartition(" ")[2] for part in first.split("; ")[:3]] == ["e3"] * 3


def test_equal_servers_are_never_called_different():
    for level in levels(sweep("vllm"), sweep("sglang", noise=(1.003, 0.998, 1.001))):
        assert [pair.verdict for pair in level.pairs] in (["same"], ["undecided"])


def test_servers_on_the_same_points_are_the_same_at_a_speed_that_was_measured():
    """No interpolation is left at 71.43 tokens/s per user, the speed at 16 in flight."""
    limit = within(14)
    quiet = (1.0, 1.0, 1.0)
    (level,) = levels(sweep("vllm", noise=quiet, slo=limit), sweep("sglang", noise=quiet, slo=limit))
    assert level.tokens_per_s_per_user == pytest.approx(71.43, abs=0.01)
    assert [pair.verdict for pair in level.pairs] == ["same"]


@pytest.mark.parametrize(("middle", "verdict"), [(1.0, "same"), (1.08, "more"), (1 / 1.08, "fewer")])
def test_verdicts_of_all_speeds_are_one_family(middle, verdict):
    """Rates alone vary at the speeds of 4 and 16 in flight, by 1.7%: p is 0.03 to 0.04 at one of them."""
    rates, quiet = [middle * (1 + part) for part in (-0.017, 0.0, 0.017)], (1.0, 1.0, 1.0)
    for limits, expected in (((14,), verdict), ((14, 11), "undecided")):
        cells = sweep("vllm", noise=quiet, slo=within(*limits))
        varied = [
            changed(run, output_tokens_per_s=run.output_tokens_per_s * rates[run.repeat]) for run in cells
        ]
        found = levels(varied, sweep("sglang", noise=quiet, slo=within(*limits)))
        pairs = [pair for level in found for pair in level.pairs]
        assert [pair.verdict for pair in pairs] == [expected] * len(limits)
        assert {pair.why for pair in pairs} == {"" if expected == verdict else "more repeats would say more"}
        by_hand = exponential(Shift.of_mean(np.log(rates)).interval(0.95))
        assert tuple(pairs[0].ratio) == pytest.approx(tuple(by_hand))


def test_what_loads_leave_open_is_decided_by_loads_between_them():
    (pair, *_), *_ = (level.pairs for level in levels(sweep("vllm", 0.25), sweep("sglang", 0.26)))
    assert (pair.verdict, pair.why) == ("undecided", "more loads between those measured would say more")


def test_a_limit_of_the_median_tpot_is_the_speed_and_who_never_reaches_it_has_no_number():
    limit = within(12.5)
    cells = [*sweep("vllm", slo=limit), *sweep("sglang", alone_ms=20, slo=limit)]
    (level,) = speed_levels(cells, RULES)
    assert level.tokens_per_s_per_user == 80
    assert [figure.reach for figure in level.figures] == ["within", "never so fast"]
    assert level.figures[1].tokens_per_s is None
    assert level.pairs == ()
    shown = replace(summary(*cells), per_user=(level,))
    assert list(per_user_lines(shown)) == [], "the first screen says it"
    assert list(asked_speed_lines(shown)) == [
        "at 80 tokens/s per user: vllm 799 output tokens/s; sglang never reaches it"
    ]
    for text in (screen(shown, 100, False), markdown(shown)):
        assert "at 80 tokens/s per user: vllm 799 output tokens/s; sglang never reaches it" in text
    (table,) = per_user_tables(shown)
    assert table.rows[1] == ["sglang", "never"]


def test_a_limit_of_the_tail_is_no_speed():
    limit = within(12.5, share="p95")
    assert len(levels(sweep("vllm", slo=limit), sweep("sglang", slo=limit))) == 3


def test_curves_that_share_no_speed_are_not_compared():
    cells = [*sweep("vllm", alone_ms=5, each_ms=0.1), *sweep("sglang", alone_ms=50)]
    assert speed_levels(cells, RULES) == ()
    shown = summary(*cells, verdict_rules={"pairing": "starts"})
    assert list(no_shared_speed(shown)) == [
        "no two backends are equally fast per user at these loads, in tokens/s: "
        "sglang 15.2 to 19.8 and vllm 88 to 195"
    ]
    searched = [{"label": "vllm", "kind": "rate", "interval": [4, 4, 5], "searches": 1, "tested": []}]
    for shares_one_or_needs_none in (
        replace(shown, capacity=summary(capacity=searched).capacity),
        summary(*sweep("vllm"), *sweep("sglang")),
        summary(*cells, *sweep("tgi", alone_ms=45)),
    ):
        assert list(no_shared_speed(shares_one_or_needs_none)) == []


def test_speeds_that_hardly_change_with_the_load_are_not_compared():
    """The round number 50 is on both curves, between loads that differ by noise alone."""
    flat = {"alone_ms": 20, "each_ms": 0.001, "noise": (1.0, 0.999, 0.9995)}
    assert levels(sweep("vllm", **flat), sweep("sglang", **flat)) == ()
    (line,) = no_shared_speed(summary(*sweep("vllm", **flat), *sweep("sglang", **flat)))
    near = "the speeds per user that backends share are too near to each other to choose from, in tokens/s: "
    assert line == f"{near}vllm 49.9 to 50 and sglang 49.9 to 50"


def test_a_range_without_a_round_number_has_its_middle():
    """Speeds of 30.1 to 39.6 tokens/s: 30 and 40 are outside."""
    ends = {"alone_ms": 25, "each_ms": 8.2 / 63, "loads": (1, 8, 64), "noise": (1.0, 1.001, 0.999)}
    (level,) = levels(sweep("vllm", **ends), sweep("sglang", **ends))
    assert level.tokens_per_s_per_user == 35


def test_a_backend_apart_from_all_others_does_not_choose_their_speeds():
    near = [sweep("vllm"), sweep("sglang", 0.3), sweep("lmdeploy", 0.35)]
    assert [level.tokens_per_s_per_user for level in levels(*near)] == [50, 60, 80]
    found = levels(*near, sweep("transformers", alone_ms=200))
    assert [level.tokens_per_s_per_user for level in found] == [50, 60, 80]
    assert {level.figures[3].reach for level in found} == {"never so fast"}


def test_a_single_load_has_no_curve():
    assert levels(sweep("vllm", loads=(4,)), sweep("sglang", loads=(4,))) == ()
    assert curves(sweep("vllm", loads=(4,)), "concurrency") == []


def test_a_speed_that_one_repeat_lacks_is_on_no_curve():
    (curve,) = curves(sweep("vllm", noise=(1.0, 1.2)), "concurrency")
    fast, slow = (mine[0][0] for mine in curve.points.values())
    assert curve.range[1] == slow < fast
    assert [curve.at(speed).keys() for speed in (slow, fast)] == [{0, 1}, set()]
    lowest = min(mine[-1][0] for mine in curve.points.values())
    reached = [curve.reach(speed) for speed in (slow, fast, fast + 1, lowest, lowest - 1)]
    part = "not in every repeat"
    assert reached == ["within", part, "never so fast", part, "faster at every load"]


def test_a_curve_has_the_repeats_that_all_of_its_loads_have():
    cells = [run for run in sweep("vllm") if (run.load.value, run.repeat) != (16, 2)]
    (curve,) = curves(cells, "concurrency")
    assert curve.points.keys() == {0, 1}
    assert {run.load.value for run in curve.cells} == set(LOADS)
    apart = [run for run in cells if (run.load.value == 16) == (run.repeat == 1)]
    assert curves(apart, "concurrency") == [], "no repeat has two loads"


@pytest.mark.parametrize(("backends", "has_curves"), [(50, True), (51, False)])
def test_backends_that_no_verdict_compares_have_no_curves(backends, has_curves):
    cells = [run for n in range(backends) for run in sweep(f"e{n}", loads=(1, 64), noise=(1.0,))]
    assert len(curves(cells, "concurrency")) == (backends if has_curves else 0)


def test_a_single_backend_has_nothing_to_compare():
    assert levels(sweep("vllm")) == ()


def test_two_loads_are_enough():
    found = levels(sweep("vllm", 0.1, loads=(1, 64)), sweep("sglang", 0.4, loads=(1, 64)))
    assert found
    assert all(pair.ratio is not None for level in found for pair in level.pairs)


def test_few_repeats_have_figures_and_no_verdict():
    found = levels(sweep("vllm", noise=NOISE[:1]), sweep("sglang", noise=NOISE[:1]))
    (pair,) = found[0].pairs
    assert (pair.verdict, pair.why) == ("undecided", "1 repeat with both curves, 3 are needed")
    assert found[0].figures[0].tokens_per_s is not None
    assert found[0].figures[0].interval is None
    (pair,) = levels(sweep("vllm", noise=NOISE[:2]), sweep("sglang", noise=NOISE[:2]))[0].pairs
    assert (pair.verdict, pair.why) == ("undecided", "2 repeats with both curves, 3 are needed")
    assert lines(sweep("vllm", noise=NOISE[:1]), sweep("sglang", noise=NOISE[:1])) == []


def test_a_load_with_a_failed_run_is_not_on_the_curve():
    cells = sweep("vllm")
    spoiled = Validity.of([changed_reason("failed-requests")])
    last = [
        run if (run.load.value, run.repeat) != (64, 1) else replace(run, validity=spoiled) for run in cells
    ]
    (curve,) = curves(last, "concurrency")
    assert curve.range[0] == pytest.approx(1000 / 14, rel=0.01)  # at 16
    assert {cell.load.value for cell in curve.cells} == {1, 4, 16}


def changed_reason(code):
    return changed(UNSTEADY.reasons[0], code=code, verdict="INVALID")


@pytest.mark.parametrize(
    "more", [{"validity": UNSTEADY}, {"state": "unstable"}, {"state": None}, {"output_tokens_per_s": None}]
)
def test_a_load_without_evidence_is_not_on_the_curve(more):
    cells = [replace(run, **more) if run.load.value == 64 else run for run in sweep("vllm")]
    (curve,) = curves(cells, "concurrency")
    assert {cell.load.value for cell in curve.cells} == {1, 4, 16}


def test_streams_of_one_token_have_no_speed():
    single = {"mean": None, "p50": None, "p90": None, "p95": None, "p99": None}
    assert (
        levels(*([changed(run, tpot_ms=single) for run in sweep(name)] for name in ("vllm", "sglang"))) == ()
    )


def test_a_load_that_another_beats_in_both_is_not_on_the_curve():
    """The first request alone is slower than four: the engine batches better than it works on one."""
    odd = [point("vllm", 1, repeat, 12.0 * slow, 1) for repeat, slow in enumerate(NOISE)]
    cells = [*odd, *sweep("vllm", loads=(4, 16, 64))]
    (curve,) = curves(cells, "concurrency")
    assert {cell.load.value for cell in curve.cells} == {4, 16, 64}


def test_a_load_that_another_equals_in_one_figure_and_beats_in_the_other_is_not_on_the_curve():
    over = [point("vllm", 128, repeat, 2 * (10 + 0.25 * 64) * slow, 128) for repeat, slow in enumerate(NOISE)]
    (curve,) = curves([*sweep("vllm"), *over], "concurrency")
    assert {cell.load.value for cell in curve.cells} == set(LOADS)
    over = [point("vllm", 8, repeat, 14.0 * slow, 8) for repeat, slow in enumerate(NOISE)]
    (curve,) = curves([*sweep("vllm"), *over], "concurrency")
    assert {cell.load.value for cell in curve.cells} == set(LOADS), "as fast as 16, and half of its tokens"


def test_loads_that_more_users_make_slower_in_all_are_not_on_the_curve():
    over = [point("vllm", 256, repeat, 300.0 * slow, 256) for repeat, slow in enumerate(NOISE)]
    (curve,) = curves([*sweep("vllm"), *over], "concurrency")
    assert {cell.load.value for cell in curve.cells} == set(LOADS)


def test_rates_that_both_served_have_a_curve_too():
    """The load sets the rate, and the speed that users have at it is the server's."""
    found = levels(
        sweep("vllm", 0.25, kind="rate", state="under load"),
        sweep("sglang", 0.375, kind="rate", state="under load"),
    )
    assert [pair.verdict for level in found for pair in level.pairs] == ["more"] * 3
    assert {level.kind for level in found} == {"rate"}


def test_runs_one_after_the_other_are_not_comparable():
    early = [replace(run, started_unix_ns=run.repeat) for run in sweep("vllm", 0.25)]
    late = [replace(run, started_unix_ns=1000 + run.repeat) for run in sweep("sglang", 0.375)]
    found = levels(early, late)
    assert {pair.verdict for level in found for pair in level.pairs} == {"not comparable"}
    assert all(pair.ratio is None for level in found for pair in level.pairs)


def test_runs_one_after_the_other_at_a_load_are_not_comparable_though_loads_took_turns():
    def at(run, second):
        turn = 2 * LOADS.index(run.load.value) + second
        return replace(run, started_unix_ns=10 * turn + run.repeat)

    found = levels(
        [at(run, 0) for run in sweep("vllm", 0.25)], [at(run, 1) for run in sweep("sglang", 0.375)]
    )
    assert {pair.verdict for level in found for pair in level.pairs} == {"not comparable"}
    assert "drift is not ruled out" in found[0].pairs[0].why


def test_answers_of_unequal_length_are_not_comparable():
    found = levels(
        sweep("vllm", 0.25, conditions={"output_tokens_mean": 100.0}),
        sweep("sglang", 0.375, conditions={"output_tokens_mean": 140.0}),
    )
    pairs = [pair for level in found for pair in level.pairs]
    assert {pair.verdict for pair in pairs} == {"not comparable"}
    assert "tokens per answer" in pairs[0].why


def test_answers_that_are_a_little_longer_widen_the_floor():
    """1.06 times is beyond 2%, and not beyond 2% and answers 4.5% longer."""
    quiet = {"noise": (1.0, 1.0001, 0.9999), "loads": (1, 2, 4, 8, 16, 24, 32, 48, 64)}
    verdicts = []
    for mean in (100.0, 104.5):
        found = levels(
            sweep("vllm", 0.25, conditions={"output_tokens_mean": 100.0}, **quiet),
            sweep("sglang", 0.265, conditions={"output_tokens_mean": mean}, **quiet),
        )
        verdicts.append({pair.verdict for level in found for pair in level.pairs})
    assert "more" in verdicts[0]
    assert verdicts[1] == {"undecided"}


def test_the_largest_floor_of_any_load_counts():
    floors = {"vllm": {"c64": {"output_tokens_per_s": 0.6}}}
    cells = [*sweep("vllm", 0.25), *sweep("sglang", 0.375)]
    for floor_of_64, verdict in (({}, "more"), (floors, "undecided")):
        found = speed_levels(cells, dataclasses.replace(RULES, measured_floors=floor_of_64))
        assert {pair.verdict for level in found for pair in level.pairs} == {verdict}


def test_other_loads_of_each_are_not_comparable():
    found = levels(sweep("vllm", loads=(1, 8, 40)), sweep("sglang", loads=(2, 16, 60)))
    (first, *_) = found
    assert [(pair.verdict, pair.why) for pair in first.pairs] == [
        ("not comparable", "no load is on both curves")
    ]


def test_nine_backends_have_three_pairs_in_a_line_and_all_in_the_summary():
    many = [sweep(f"e{number}", 0.25 * 1.3**number) for number in range(9)]
    found = levels(*many)
    assert [len(level.figures) for level in found] == [9, 9, 9]
    assert len(found[0].pairs) == 36
    first = lines(*many)[0]
    assert first.count("carries") == 3
    assert first.endswith("33 more pairs in summary.json")


def test_equal_figures_of_a_file_with_few_digits_show_none_of_their_spread():
    """TPOTs of whole ms are the same in all repeats: by them 1.08 times is `same` at 70 tokens/s per user."""
    loads, quiet = (1, 2, 4, 8, 12, 16, 20, 24, 32, 64), (1.0, 1.0, 1.0)
    sweeps = [*sweep("vllm", 0.5, loads=loads, noise=quiet), *sweep("sglang", 0.54, loads=loads, noise=quiet)]
    whole = [changed(run, tpot_ms={"p50": float(round(run.tpot_ms.p50))}) for run in sweeps]
    printed = [changed(run, imported={"level": "summary"}) for run in whole]
    verdicts = [
        [pair.verdict for level in speed_levels(cells, RULES) for pair in level.pairs]
        for cells in (whole, printed)
    ]
    assert verdicts == [["more", "more", "same"], ["undecided"] * 3]


def test_the_rounding_error_of_a_speed_goes_with_the_slope_of_its_stretch():
    """TPOTs of 10, 20 and 40 whole ms, 100, 300 and 400 tokens/s: 40 per user is in the second stretch."""
    printed = {"imported": {"level": "summary"}}
    cells = [
        changed(point("vllm", load, 0, tpot_ms, load), output_tokens_per_s=rate, **printed)
        for load, tpot_ms, rate in ((1, 10.0, 100.0), (4, 20.0, 300.0), (16, 40.0, 400.0))
    ]
    (curve,) = curves(cells, "concurrency")
    slope = np.log(400 / 300) / np.log(50 / 25)
    of_speed, of_rate = slope * 40 / 1000, 1 / 100
    assert curve.rounded(40.0) == pytest.approx((of_speed**2 + of_rate**2) / 12)


def in_blocks(label, noise, blocks=4, **more):
    """Starts of some blocks each, whose rates alone vary; TPOT is 16 ms at the load in the middle."""
    return [
        changed(run, output_tokens_per_s=run.output_tokens_per_s * noise[run.repeat], start_number=start)
        for run in sweep(
            label, each_ms=2.0, noise=[1.0] * len(noise), loads=(1, 3, 5), slo=within(16), **more
        )
        for start in [run.repeat // blocks]
    ]


def test_the_unit_is_the_start_and_its_blocks_are_averaged():
    """As many blocks as one wants do not make up for a start: by hand, t over the three means."""
    noise = [1.5 * (1 + part) for start in (-0.02, 0.0, 0.02) for part in (start - 0.3, start + 0.3)]
    (level,) = levels(in_blocks("vllm", noise, 2), in_blocks("sglang", [1.0] * 6, 2))
    means = np.log(noise).reshape(3, 2).mean(axis=1)
    (pair,) = level.pairs
    assert tuple(pair.ratio) == pytest.approx(tuple(exponential(Shift.of_mean(means).interval(0.95))))
    assert pair.verdict == "more"
    interval = level.figures[0].interval
    rate = 1000 * 3 / 16
    assert tuple(interval) == pytest.approx(
        [rate * end for end in exponential(Shift.of_mean(means).interval())]
    )


def test_two_starts_are_too_few_however_many_blocks_they_have():
    (level,) = levels(in_blocks("vllm", [1.5] * 16, 8), in_blocks("sglang", [1.0] * 16, 8))
    (pair,) = level.pairs
    assert (pair.verdict, pair.why) == ("undecided", "2 starts with both curves, 3 are needed")


@pytest.mark.parametrize("alike", [False, True])
def test_blocks_of_one_start_count_for_as_many_as_are_independent(alike):
    """Servers that were running have one start: the question is about it, and the unit is the block."""
    turns = [0.01, -0.01, -0.01, 0.01, -0.01, 0.01] * 4
    noise = [1.5 * (1 + part) for part in (sorted(turns) if alike else turns)]
    running = {"launch": "attach", "blocks": len(noise)}
    (level,) = levels(in_blocks("vllm", noise, **running), in_blocks("sglang", [1.0] * len(noise), **running))
    (pair,) = level.pairs
    if alike:
        assert pair.ratio is None
        worth = "24 blocks are worth 0.12 independent ones, 8 are needed"
        assert (pair.verdict, pair.why) == ("undecided", worth)
    else:
        assert pair.verdict == "more"
        wider = Shift.of_mean(np.log(noise)).of_fewer(independent_share(np.log(noise).tolist()))
        assert tuple(pair.ratio) == pytest.approx(tuple(exponential(wider.interval(0.95))))


@pytest.mark.parametrize(
    ("code", "blocks", "kept"),
    [
        ("client-busy", (1, 2, 5, 9), True),
        ("client-busy", (1, 2, 5, 6, 9), False),
        ("failed-requests", (1,), False),
    ],
)
def test_blocks_that_the_client_spoiled_are_gaps_up_to_a_third(code, blocks, kept):
    spoiled = Validity.of([changed_reason(code)])
    cells = [
        replace(run, validity=spoiled) if run.load.value == 5 and run.repeat in blocks else run
        for run in in_blocks("vllm", [1.0] * 12)
    ]
    (curve,) = curves(cells, "concurrency")
    assert [load.value for load in curve.loads] == ([1, 3, 5] if kept else [1, 3])
    assert all(not run.invalid for run in curve.cells)


def test_gpus_share_the_tokens():
    gpus = {"vllm": (0,), "sglang": (0, 1)}
    cells = [
        changed(run, gpu={"engine_gpus": gpus[name], "devices": []})
        for name in gpus
        for run in sweep(name, 0.3)
    ]
    level, *_ = speed_levels(cells, RULES)
    assert level.per == "GPU"
    alone, shared = (figure.tokens_per_s for figure in level.figures)
    assert alone == pytest.approx(2 * shared)


def test_a_backend_of_which_every_run_is_invalid_does_not_hide_the_gpus_of_the_others():
    known = {"engine_gpus": (0,), "devices": []}
    cells = [changed(run, gpu=known) for name in ("vllm", "sglang") for run in sweep(name)]
    spoiled = Validity.of([changed_reason("engine-died")])
    level, *_ = speed_levels([*cells, *sweep("lmdeploy", validity=spoiled)], RULES)
    assert level.per == "GPU"
    level, *_ = speed_levels([*cells, *sweep("lmdeploy")], RULES)
    assert level.per == "machine", "those of a backend that was measured are not known"


def test_figures_of_a_file_that_are_next_to_nothing_end_no_run():
    tiny = [
        changed(run, output_tokens_per_s=1e-300 * run.output_tokens_per_s, imported={"level": "summary"})
        for run in sweep("vllm")
    ]
    first, *_ = levels(tiny, sweep("sglang"))
    assert first.figures[0].tokens_per_s == pytest.approx(1e-300 * first.figures[1].tokens_per_s)


def test_the_table_has_a_column_for_each_speed():
    cells = [*sweep("vllm", 0.25), *sweep("sglang", 0.375)]
    (table,) = per_user_tables(replace(summary(*cells), per_user=speed_levels(cells, RULES)))
    assert table.head == ("backend", "50 per user", "60 per user", "80 per user")
    assert [row[0] for row in table.rows] == ["vllm", "sglang"]
    assert "per machine" in table.title
    assert table.title.endswith("95% intervals")
    once = [*sweep("vllm", noise=NOISE[:1]), *sweep("sglang", noise=NOISE[:1])]
    shown = summary(*once, verdict_rules={"confidence": 0.99})
    (table,) = per_user_tables(replace(shown, per_user=speed_levels(once, RULES)))
    assert table.title.endswith("interpolated between loads")
    beyond = [*sweep("vllm", slo=within(100)), *sweep("sglang", alone_ms=90, noise=(1.0, 1.2, 1.0))]
    (table,) = per_user_tables(replace(summary(*beyond), per_user=speed_levels(beyond, RULES)))
    assert [row[1] for row in table.rows] == ["always faster", "some repeats"]


def test_a_look_decides_at_its_own_level():
    """Noise of 0.4% lets 1.16 times be found at 5%, and not at a share of it."""
    loads = (1, 2, 4, 8, 16, 24, 32, 48, 64)
    other = sweep("sglang", 0.29, loads=loads, noise=(0.997, 1.004, 1.0))
    cells = [*sweep("vllm", 0.25, loads=loads), *other]
    verdicts = []
    for looks in ((3,), tuple(range(3, 203))):
        rules = dataclasses.replace(RULES, looks=looks, last_look=3)
        verdicts.append([pair.verdict for level in speed_levels(cells, rules) for pair in level.pairs])
    assert "more" in verdicts[0]
    assert set(verdicts[1]) == {"undecided"}
    shown = replace(summary(*cells, verdict_rules={"confidence": 0.99}), per_user=speed_levels(cells, RULES))
    assert per_user_tables(shown)[0].title.endswith("95% intervals, those of ratios 99%")


def with_levels(*sweeps):
    cells = [run for mine in sweeps for run in mine]
    return replace(summary(*cells), per_user=speed_levels(cells, RULES))


def suspect(code, **more):
    return Validity.of([changed(changed_reason(code), verdict="SUSPECT", **more)])


def test_figures_in_doubt_are_named_with_the_rules_that_their_loads_broke():
    """60 tokens/s per user are read between 16 and 64 in flight, 80 between 4 and 16."""

    def at(load, validity):
        return [
            replace(run, validity=validity) if run.load.value == load and run.repeat == 1 else run
            for run in sweep("vllm")
        ]

    busy, of_ttft = suspect("contended"), suspect("itl-merged", metrics=("ttft_ms",))
    found = list(per_user_lines(with_levels(at(64, busy), sweep("sglang", 0.375))))
    assert [line.partition("; in doubt: ")[2] for line in found] == ["vllm (contended)"] * 2 + [""]
    both = with_levels(sweep("vllm", validity=busy), sweep("sglang", 0.375, validity=busy))
    assert all(line.endswith("; in doubt: vllm and sglang (contended)") for line in per_user_lines(both))
    assert not any("doubt" in line for line in per_user_lines(with_levels(at(64, of_ttft), sweep("sglang"))))
    many = with_levels(*(sweep(f"e{n}", 0.25 + n / 100, validity=busy) for n in range(4)))
    assert all(line.endswith("; in doubt: all 4 backends (contended)") for line in per_user_lines(many))


def test_a_speed_that_was_asked_for_is_an_answer_and_says_what_each_carries():
    limit = within(14)
    asked = {"slo": limit, "validity": suspect("contended")}
    shown = with_levels(
        sweep("sglang", 0.375, **asked), sweep("vllm", **asked), sweep("tgi", 0.01, slo=limit)
    )
    (line,) = asked_speed_lines(shown)
    start = (
        "at 71.4 tokens/s per user: vllm 1141 and sglang 761 output tokens/s; tgi is faster at every load; "
    )
    assert line.startswith(start)
    assert "vllm carries 1.5 times the output tokens/s of sglang (" in line
    assert line.endswith("; in doubt: sglang and vllm (contended)")
    one = with_levels(sweep("vllm", slo=limit))
    assert list(asked_speed_lines(one)) == ["at 71.4 tokens/s per user: vllm 1141 output tokens/s"]
