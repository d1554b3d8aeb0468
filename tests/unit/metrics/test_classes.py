"""Requests by class, of latencies that can be worked out on paper: victims, kinds, turns and depth."""

from functools import cache

import pytest

from harness.metrics import classes
from harness.metrics.view import CellView, RequestView
from harness.records.layout import Outcome, Phase
from harness.verdicts import Rules, compare
from tests.factories.documents import changed
from tests.factories.recorded import facts, records, requested, summarise_cell


def loss(*rows):
    """Each row: its kind, E2E in ms (None: it failed), and its phase."""
    made = [
        {"texts": [1, took] if took else [], "outcome": Outcome.OK if took else Outcome.TIMEOUT}
        | ({"phase": phase[0]} if phase else {})
        for _, took, *phase in rows
    ]
    return classes.victim_loss(RequestView(records(*made)), requested(*((kind, {}) for kind, *_ in rows)))


def at(kind, sent, took):
    """A request of this kind: when it was sent, and its E2E in ms."""
    return kind, {"intended": sent, "texts": [sent + 1, sent + took]}


def loss_of(*rows):
    view = RequestView(records(*(row for _, row in rows)))
    return classes.victim_loss(view, requested(*((kind, {}) for kind, _ in rows)))


def test_a_victim_loses_what_it_takes_longer_next_to_heavy_requests():
    """Alone 100 and 200 ms, next to another 300 and 450; how long that takes is no matter."""
    alone, beside = (
        (at("alone", 0, 100), at("alone", 300, 200)),
        (at("beside", 700, 300), at("beside", 900, 450)),
    )
    found, why = loss_of(*alone, at("heavy", 600, 9000), *beside)
    assert (found, why) == (pytest.approx(375 / 150), "")


def test_a_victim_that_is_faster_next_to_others_loses_less_than_nothing():
    assert loss(("alone", 200), ("beside", 100))[0] == pytest.approx(0.5)


def test_a_victim_is_not_alone_while_a_heavy_request_is_in_flight():
    """The heavy one takes from 1000 to 5000: the third to be alone leaves with its end, the second before."""
    before, heavy, beside = at("alone", 0, 100), at("heavy", 1000, 4000), at("beside", 1500, 600)
    waiting, after = at("alone", 4500, 900), at("alone", 5000, 200)
    assert loss_of(before, heavy, beside, waiting, after) == (pytest.approx(600 / 150), "")
    assert loss_of(at("alone", 900, 100), heavy, beside)[0] == pytest.approx(6), "it ended as the other began"
    assert loss_of(heavy, beside, waiting) == (
        None,
        "heavy requests were in flight whenever a victim was to be alone",
    )


def test_the_warm_up_is_no_victim():
    assert loss(("alone", 100), ("alone", 900, Phase.WARMUP), ("beside", 300))[0] == pytest.approx(3)


def test_gaps_of_a_kind_have_no_upper_bound():
    rows = [{"intended": 0, "texts": list(range(10, 70, 10)), "prompt": 100}] * 10
    asked = requested(*[("short", {}), ("long", {})] * 5)
    found, _ = classes.by_class("by_kind", RequestView(records(*rows)), asked)
    assert (found["short"].itl_ms.p50, found["short"].itl_ms.p50_upper) == (10, None)
    assert found["short"].ttft_ms.p50_upper == 10


@pytest.mark.parametrize("failed", ["alone", "beside"])
def test_a_victim_that_failed_leaves_no_loss(failed):
    rows = [("alone", 100), ("beside", 300), (failed, None)]
    assert loss(*rows) == (None, "1 of 3 victims never got there")


@pytest.mark.parametrize("early", ["alone", "beside"])
def test_victims_of_the_warm_up_alone_leave_no_loss(early):
    rows = [(kind, 100, Phase.WARMUP if kind == early else Phase.MEASURE) for kind in ("alone", "beside")]
    assert loss(*rows) == (None, "no victim was measured")


def test_without_both_kinds_of_victims_there_is_no_probe():
    for kinds in (("alone", "heavy"), ("beside", "heavy"), ("", "")):
        assert loss(*((kind, 100) for kind in kinds)) == (None, "no victim probe")
    view = RequestView(records({"texts": [5]}))
    assert classes.victim_loss(view, None) == (None, "no victim probe")


SIX = [{"intended": 0, "texts": [10 * i, 20 * i], "prompt": 100, "cached": 10 * i} for i in range(1, 7)]


def test_each_kind_has_the_latencies_of_its_own_requests():
    """Odd ones are short, first tokens after 10, 30 and 50 ms; of the even ones one failed."""
    rows = [*SIX[:5], {"outcome": Outcome.HTTP_ERROR}]
    asked = requested(*((("short", "long")[i % 2], {}) for i in range(6)))
    found, _ = classes.by_class("by_kind", RequestView(records(*rows)), asked)
    assert list(found) == ["long", "short"]
    assert (found["short"].requests, found["short"].ok) == (3, 3)
    assert (found["long"].requests, found["long"].ok) == (3, 2)
    assert found["short"].ttft_ms.mean == pytest.approx(30)
    assert found["short"].e2e_ms.mean == pytest.approx(60)
    assert found["short"].cached_share == pytest.approx((10 + 30 + 50) / 300)
    assert found["long"].ttft_ms.mean == pytest.approx(30)  # of 20 and 40


def test_each_kind_has_the_tokens_that_came_together():
    rows = [{"intended": 0, "texts": [10, 20], "tokens": tokens} for tokens in (6, 2, 8, 2)]
    asked = requested(*[("code", {}), ("prose", {})] * 2)
    found, _ = classes.by_class("by_kind", RequestView(records(*rows)), asked)
    assert (found["code"].tokens_per_event, found["prose"].tokens_per_event) == (3.5, 1)


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("by_kind.long", requested(*((("short", "long")[i % 2], {}) for i in range(12)))),
        ("by_turn.2", requested(*(("", {"session": i // 2, "turn": i % 2}) for i in range(12)))),
        ("by_depth.256", requested(*(("", {"tool_ns": 0, "kept": 100 + i % 2 * 99}) for i in range(12)))),
    ],
)
def test_a_figure_of_a_class_that_failed_requests_made_infinite_says_so(key, asked):
    """Four of the six requests of one class failed. Figures that it is too small for have no reason."""
    lost = (1, 3, 5, 7)
    rows = [
        {"outcome": Outcome.TIMEOUT} if i in lost else {"texts": [10, 20 + i], "prompt": 1} for i in range(12)
    ]
    found = classes.compute(CellView(records(*rows), facts(), asked))
    never = dict.fromkeys(("p50", "p50_upper"), "4 of 6 requests never got there")
    expected = {
        f"{key}.{name}.{of}": why for name in ("ttft_ms", "tpot_ms", "e2e_ms") for of, why in never.items()
    }
    assert {path: why for path, why in found.nulls.items() if path != "victim_loss"} == expected


@cache
def summary_of(kinds, lost):
    rows = [
        {
            "sent": 200 * i,
            **({"outcome": Outcome.TIMEOUT} if i in lost else {"texts": [200 * i + 1, 200 * i + 100]}),
        }
        for i in range(len(kinds))
    ]
    return summarise_cell(records(*rows), facts(), requested(*((kind, {}) for kind in kinds)))


def cell_of(label, repeat, kinds, lost=()):
    """A cell whose requests of these kinds take 100 ms; those at `lost` failed."""
    return changed(
        summary_of(kinds, lost),
        label=label, repeat=repeat, cell=f"{label}{repeat}", validity={"verdict": "VALID", "reasons": []},
        state="under load", workload_sha256=f"{repeat:064d}",
        started_unix_ns=10**18 + repeat * 10**10 + ord(label),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "kinds", "lost"),
    [
        ("by_kind.long.e2e_ms.p50", ("short", "long") * 6, (1, 3, 5)),
        ("by_kind.long.e2e_ms.mean", ("short", "short", "long"), (2,)),
        ("victim_loss", ("alone", "beside", "alone", "beside"), (1,)),
    ],
)
def test_a_run_whose_class_failed_is_a_failed_run(metric, kinds, lost):
    """Two runs of five lost requests of the class that the verdict is about."""
    cells = [cell_of(label, repeat, kinds, lost if label == "b" and repeat in (1, 3) else ())
             for label in "ab" for repeat in range(5)]  # fmt: skip
    (one,) = compare(cells, Rules(metric, (metric,))).comparison
    assert (one.verdict, one.failed) == ("not comparable", (0, 2))
    assert one.why == "b: 2 of 5 failed: its remaining runs would flatter it"


def test_one_kind_alone_is_no_class():
    view = RequestView(records(*SIX))
    assert classes.by_class("by_kind", view, requested(*[("chat", {})] * 6))[0] is None
    assert classes.by_class("by_kind", view, None)[0] is None


def test_kinds_that_are_lengths_come_by_their_length():
    kinds = ("1k", "512", "10 s", "256", "2 s", "long")
    found, _ = classes.by_class(
        "by_kind",
        RequestView(records(*[{"texts": [1, 2]}] * len(kinds))),
        requested(*((kind, {}) for kind in kinds)),
    )
    assert list(found) == ["long", "2 s", "10 s", "256", "512", "1k"]


def test_turns_are_counted_from_one():
    asked = requested(*(("", {"session": i // 2, "turn": i % 2}) for i in range(8)))
    warm = {"texts": [900], "prompt": 100, "cached": 0, "phase": Phase.WARMUP}
    found, _ = classes.by_class("by_turn", RequestView(records(*SIX, warm, warm)), asked)
    assert {turn: (stats.requests, stats.ok) for turn, stats in found.items()} == {"1": (3, 3), "2": (3, 3)}
    assert {turn: stats.ttft_ms.mean for turn, stats in found.items()} == pytest.approx({"1": 30, "2": 40})
    assert {turn: stats.cached_share for turn, stats in found.items()} == pytest.approx({"1": 0.3, "2": 0.4})
    view = RequestView(records(*SIX))
    for asked in (requested(*[("", {})] * 6), None):
        assert classes.by_class("by_turn", view, asked)[0] is None


def test_depth_is_the_prompt_up_to_a_power_of_two():
    """Kept and new tokens together: 128 is the least class, 129 is in the next one."""
    lengths = [(0, 5), (100, 28), (100, 29), (500, 523), (1000, 24), (1000, 25)]
    asked = requested(*(("", {"tool_ns": 0, "kept": kept, "content_tokens": new}) for kept, new in lengths))
    found, _ = classes.by_class("by_depth", RequestView(records(*SIX)), asked)
    assert {depth: stats.requests for depth, stats in found.items()} == {"128": 2, "256": 1, "1k": 2, "2k": 1}
    assert found["128"].ttft_ms.mean == pytest.approx(15)
    view = RequestView(records(*SIX))
    for asked in (requested(*[("", {})] * 6), None):
        assert classes.by_class("by_depth", view, asked)[0] is None
