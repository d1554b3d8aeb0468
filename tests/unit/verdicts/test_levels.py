"""Blocks within starts: what an interval is over, what each level spreads, and what decides soonest."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from harness.verdicts import Rules, compare
from harness.verdicts.baseline import compare_runs
from harness.verdicts.comparison import NO_SAMPLES, rows_of
from harness.verdicts.prospects import Costs, levels
from harness.verdicts.ratio import estimate
from harness.verdicts.sequential import find_by_looks, take_look
from tests.factories.documents import changed
from tests.factories.summaries import cell, verdict
from tests.unit.verdicts.test_baseline import run
from tests.unit.verdicts.test_pairs import NOISE
from tests.unit.verdicts.test_pairs import cells as runs_of

BLOCKS, STARTS = 8, 4
SPOILED = verdict("INVALID", "merged-events", "46%", "10%", "")
RULES = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50",), pairing="blocks", blocks=BLOCKS)


def cells(label, p50, of_start=(0, 0, 0, 0), within=0.001, *, seed, starts=STARTS, **changes):
    """Blocks of each start, whose speed is off by `of_start` per cent."""
    drawn = np.random.default_rng(seed).normal(0, within, starts * BLOCKS)
    return [
        cell(
            label,
            repeat=repeat,
            p50=p50 * (1 + of_start[repeat // BLOCKS] / 100) * float(np.exp(drawn[repeat])),
            workload_sha256=f"w{repeat}",
            started_unix_ns=10**9 * (2 * repeat + (label == "b")),
            start_number=repeat // BLOCKS,
            **changes,
        )
        for repeat in range(starts * BLOCKS)
    ]


def judged(a, b, rules=RULES):
    (one,) = compare([*a, *b], rules).comparison
    return one


def test_an_interval_is_over_starts_however_many_blocks_they_have():
    """Starts that differ by 5% are four values; 32 blocks as values would call one slower."""
    one = judged(cells("a", 103, (-5, 5, -4, 6), seed=1), cells("b", 100, seed=2))
    assert one.verdict == "not enough runs"
    assert one.runs == (4, 4)
    assert one.measured == (32, 32)
    low, middle, high = one.ratio
    assert middle == pytest.approx(1.035, abs=0.005)
    assert low < 0.97
    assert high > 1.1
    assert "over 4 starts with 32 pairs of blocks" in one.why
    assert one.why.endswith("very many starts would be needed")


def test_starts_alike_decide():
    one = judged(cells("a", 105, seed=1), cells("b", 100, seed=2))
    assert one.verdict == "slower"


def test_one_start_is_no_verdict_of_engines_that_bench_starts():
    one = judged(cells("a", 120, seed=1, starts=1), cells("b", 100, seed=2, starts=1))
    assert one.verdict == "not enough runs"
    assert one.why == "1 start each, 3 are needed"


def test_blocks_of_running_servers_are_about_this_start():
    given = {"launch": "attach", "starts": 2}
    one = judged(cells("a", 120, seed=1, **given), cells("b", 100, seed=2, **given))
    assert one.verdict == "slower"
    assert one.runs == (16, 16)
    assert "over 16 pairs of blocks of this start" in one.why


def test_blocks_that_are_all_invalid_are_counted_as_blocks():
    """`0 runs and 1 block, 3 are needed` was said."""
    of_a, *_ = cells("a", 120, seed=1, launch="attach", starts=1)
    spoiled = [
        changed(one, validity=SPOILED) for one in cells("b", 100, seed=2, launch="attach", starts=1)[:2]
    ]
    why = judged([of_a], spoiled).why
    assert why.startswith("1 and 0 blocks, 3 are needed; 2 of b INVALID")


def of_sort(name, p50, sort, repeats):
    """Runs of a start each, blocks in starts of four, or blocks of a server that bench did not start."""
    launch = "attach" if sort == "blocks" else "process"
    made = runs_of("vllm", p50, noise=np.resize(NOISE, repeats), repeats=repeats, launch=launch)
    if sort == "runs":
        return run(name, made)
    made = [changed(one, start_number=one.repeat // 4 if sort == "starts" else 0) for one in made]
    return run(name, made, pairing="blocks", blocks=4)


NEW, OLD = "of the new one", "of the baseline"


@pytest.mark.parametrize(
    ("old", "new", "verdict", "words"),
    [
        ("runs", "blocks", "not enough runs", "8 blocks are worth 6.6 independent ones, 8 are needed"),
        ("blocks", "starts", "not enough runs", f"2 starts {NEW} and 8 blocks {OLD}, 3 are needed"),
        ("runs", "starts", "not enough runs", f"2 starts {NEW} and 8 runs {OLD}, 3 are needed"),
    ],
)
def test_verdicts_between_unlike_sessions_are_alike_in_both_orders(old, new, verdict, words):
    runs = of_sort("old", 100, old, 8), of_sort("new", 110, new, 8)
    (found, *_), (turned, *_) = (
        compare_runs(both, force=True).pairs[0].findings for both in (runs, tuple(reversed(runs)))
    )
    assert found.verdict == turned.verdict == verdict
    assert found.why == words
    assert found.runs == tuple(reversed(turned.runs))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("runs", "blocks", "over 20 pairs of a run and a block of this start"),
        ("blocks", "runs", "over 20 pairs of a run and a block of this start"),
        ("runs", "starts", "over 5 starts of the new one and 20 runs of the baseline"),
        ("starts", "runs", "over 20 runs of the new one and 5 starts of the baseline"),
        ("starts", "starts", "over 5 starts with 20 pairs of blocks"),
    ],
)
def test_each_side_is_counted_in_its_own_unit(old, new, words):
    (found, *_) = (
        compare_runs([of_sort("old", 100, old, 20), of_sort("new", 110, new, 20)], force=True)
        .pairs[0]
        .findings
    )
    assert found.verdict == "slower"
    assert f"{words}, beyond" in found.why


def test_blocks_of_a_running_server_are_no_verdict_against_starts():
    """Without partners, nothing shows how much they hang together."""
    for old, new in (("blocks", "starts"), ("starts", "blocks")):
        runs = [of_sort("old", 100, old, 20), of_sort("new", 110, new, 20)]
        (found, *_) = compare_runs(runs, force=True).pairs[0].findings
        assert found.why == "blocks of one start are compared in pairs, and none has a partner"


def test_blocks_that_hang_together_widen_the_intervals_of_a_difference_and_of_one_server_alike():
    """Against a server that always takes 100 ms, all three are about the same 16 values."""
    given = {"launch": "attach", "starts": 2, "within": 0.0}
    swing = 1 + 0.01 * np.sin(np.arange(16) / 0.9)
    a = [changed(made, ttft_ms={"p50": 100 * swing[made.repeat]}) for made in cells("a", 0, seed=1, **given)]
    found = compare([*a, *cells("b", 100, seed=1, **given)], RULES)
    (one,) = found.comparison
    (own,) = (known for known in found.estimates if (known.label, known.metric) == ("a", "ttft_ms.p50"))
    assert one.runs == (16, 16)
    assert [1 + end / 100 for end in one.difference] == pytest.approx(list(one.ratio), abs=1e-3)
    assert [end / 100 for end in own.interval] == pytest.approx(list(one.ratio), abs=1e-3)


def test_slow_blocks_in_a_row_widen_the_interval_of_a_percentile_of_all_requests():
    """Eight slow blocks of sixteen: after eight fast ones they are two values, in turn with them sixteen."""
    fast = 100 * np.exp(np.random.default_rng(5).normal(0, 0.2, 16))

    def width(slow):
        blocks = [
            changed(made, ttft_ms={"p95": None})
            for made in cells("a", 100, seed=1, starts=2, launch="attach")
        ]
        samples = {
            made.cell: {"ttft_ms": np.sort(fast * (1.5 if slow(number) else 1))}
            for number, made in enumerate(blocks)
        }
        (row,) = rows_of(blocks, samples)[blocks[0].point]
        found = estimate(row, "ttft_ms.p95")
        assert (found.method, found.runs) == ("pooled", 16)
        return found.interval[2] / found.interval[0]

    assert np.log(width(lambda number: number >= 8)) > 3 * np.log(width(lambda number: number % 2))


def test_noise_that_outlasts_the_blocks_is_no_verdict_and_names_the_length_that_would_do():
    """Sixteen blocks of 1 s, of which eight in a row are 4% off, are two values."""
    given = {"launch": "attach", "client": {"wall_s": 1.0}, "starts": 2}
    one = judged(cells("a", 110, (-4, 4), seed=1, **given), cells("b", 100, seed=2, **given))
    assert one.verdict == "not enough runs"
    assert one.why.startswith("16 blocks are worth 0.08 independent ones, 8 are needed: more blocks would do")
    assert "noise may last 199 s, blocks of 497 s (--requests, 497 times as many)" in one.why


def test_blocks_too_short_for_a_percentile_need_more_requests_and_not_more_blocks():
    rules = replace(RULES, primary="ttft_ms.p95", metrics=("ttft_ms.p95",), looks=(16, 32), last_look=16)
    rules = replace(rules, between_repeats={"a": "keep", "b": "keep"})
    random = np.random.default_rng(5)
    measured, samples = [], {}
    for label, p50 in (("a", 60), ("b", 100)):
        for made in cells(label, p50, seed=p50, launch="attach"):
            measured.append(changed(made, ttft_ms={"p95": None}))
            samples[made.cell] = {"ttft_ms": np.sort(p50 * np.exp(random.normal(0, 0.2, 16)))}
    rows = rows_of(measured, samples)
    (one,) = find_by_looks(rows, rules)  # without the estimates of each
    assert (one.verdict, one.method) == ("not enough runs", "pooled")
    assert one.why == "each block needs a percentile of its own: 59 requests or more (--requests)"
    assert take_look(rows, rules).hopeless == 1


def test_an_interval_of_few_independent_blocks_over_many_comparisons_can_be_written_and_read():
    """Speeds that drift over a start leave one degree of freedom, and its t is enormous."""
    drift = np.linspace(0.5, 2, BLOCKS)
    given = {"launch": "attach", "starts": 1, "seed": 1}
    drifting = [changed(made, ttft_ms={"p50": 100 * drift[made.repeat]}) for made in cells("a", 100, **given)]
    one = judged(drifting, cells("b", 100, **given), replace(RULES, alpha=1e-5))
    assert one.smallest_detectable is None
    written = msgspec.json.decode(msgspec.json.encode(one), type=type(one))
    assert written == one
    assert 0 < one.family_ratio.low < one.family_ratio.high


def test_independent_blocks_give_a_verdict():
    """That neighbours of 28 blocks are a little alike by chance is no reason to wait for more."""
    given = {"launch": "attach", "starts": 4, "within": 0.02}
    decided = 0
    for seed in range(20):
        a, b = cells("a", 120, seed=2 * seed, **given), cells("b", 100, seed=2 * seed + 1, **given)
        (found,) = find_by_looks(rows_of([*a[:28], *b[:28]], NO_SAMPLES), RULES)  # without the ranks
        decided += found.verdict == "slower"
    assert decided >= 19


def test_the_levels_are_told_apart():
    given = {"client": {"wall_s": 2.0}, "start": {"load_s": 9.0, "first_answer_s": 1.0, "provide_s": 99.0}}
    noise = {"of_start": (-2, 2, -2, 2), "within": 0.03}
    one = judged(cells("a", 105, seed=3, **noise, **given), cells("b", 100, seed=4, within=0.03, **given))
    assert one.levels.within == pytest.approx(0.03 * 2**0.5, rel=0.3)
    assert one.levels.between == pytest.approx(0.02, rel=0.5)


def test_a_dear_start_takes_more_blocks_and_starts_that_differ_take_fewer():
    drawn = np.random.default_rng(5)

    def found(between, start_s):
        blocks = [drawn.normal(drawn.normal(0, between), 0.03, 400) for _ in range(400)]
        return levels(blocks, Costs(4.0, start_s), room=0.03, alpha=0.01)

    cheap, dear, unlike = found(0.0, 2.0), found(0.0, 200.0), found(0.02, 2.0)
    assert dear.blocks > cheap.blocks
    assert dear.starts < cheap.starts
    assert unlike.starts > cheap.starts
    assert cheap.seconds == cheap.starts * (2.0 + 4.0 * cheap.blocks)


def test_where_starts_are_few_they_take_more_blocks():
    drawn = np.random.default_rng(5)
    blocks = [drawn.normal(0, 0.03, 400) for _ in range(40)]
    free, bound = (levels(blocks, Costs(4.0, 2.0), 0.03, 0.01, most) for most in (50, 4))
    assert bound.starts <= 4 < free.starts
    assert bound.blocks > free.blocks
    assert levels(blocks, Costs(4.0, 2.0), 0.003, 0.01, 4).blocks is None


def test_levels_need_two_starts():
    assert levels([[0.1, 0.2]], Costs(1, 1), 0.03, 0.05) is None


# Blocks of each start are 0.02 / √2 above and below its mean: their standard deviation is 0.02.
UP = 0.02 / 2**0.5


def test_the_plan_on_paper():
    """Room of 0.025 at 5%. Starts alike, so that an error is 0.02 / √blocks.

    Two blocks of 3 starts reach 4.303 × 0.01414 / √3 = 0.0351, of 4 starts 3.182 × 0.01414 / 2 = 0.0225.
    Four of 3 starts reach 4.303 × 0.01 / √3 = 0.0248: 3 × (10 + 4) s, less than 4 × (10 + 2) s.
    """
    alike = [[-UP, UP], [UP, -UP]]
    found = levels(alike, Costs(1.0, 10.0), room=0.025, alpha=0.05)
    assert (found.within, found.between) == (pytest.approx(0.02), 0)
    assert (found.blocks, found.starts, found.seconds) == (4, 3, 42)
    cheap_start = levels(alike, Costs(1.0, 1.0), room=0.025, alpha=0.05)
    assert (cheap_start.blocks, cheap_start.starts, cheap_start.seconds) == (2, 4, 12)
    # Four blocks of 3 starts do not reach 0.024. Six do, in 3 × (11 + 6) s, less than 4 × (11 + 2) s.
    narrow = levels(alike, Costs(1.0, 11.0), room=0.024, alpha=0.05)
    assert (narrow.blocks, narrow.starts, narrow.seconds) == (6, 3, 51)


def test_the_spread_between_starts_is_what_blocks_do_not_explain():
    """Means of 0 and 0.04 vary by 0.0008, of which two blocks explain 0.0004 / 2."""
    found = levels([[-UP, UP], [0.04 - UP, 0.04 + UP]], Costs(1, 1), room=0.5, alpha=0.05)
    assert found.between**2 == pytest.approx(0.0006)
    assert found.within**2 == pytest.approx(0.0004)


def test_starts_of_unlike_length_count_by_their_blocks_and_one_block_alone_does_not():
    """Variances of 0.0004 and 0.0001; three and two blocks explain 0.00025 × (1 / 3 + 1 / 2) / 2."""
    half = 0.01 / 2**0.5
    blocks = [[-0.02, 0.0, 0.02], [0.04 - half, 0.04 + half], [9.0]]
    found = levels(blocks, Costs(1, 1), room=0.5, alpha=0.05)
    assert found.within**2 == pytest.approx(0.00025)
    assert found.between**2 == pytest.approx(0.0008 - 0.00025 * 5 / 12)


def test_where_no_plan_decides_the_spread_is_told_alone():
    found = levels([[-UP, UP], [UP, -UP]], Costs(1, 1), room=0.0, alpha=0.05)
    assert (found.blocks, found.starts, found.seconds) == (None, None, None)
    assert found.within == pytest.approx(0.02)
    assert levels([[-UP, UP], [0.1]], Costs(1, 1), room=0.5, alpha=0.05) is None
