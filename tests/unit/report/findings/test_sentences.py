"""The sentences of a load point say of no backend what the table or the verdicts contradict."""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.model import as_json
from harness.model.measures import measure
from harness.report.findings.conclude import conclude
from harness.report.findings.conclusion import doubt, doubts, doubts_by_count, order, orders, speedup
from harness.report.findings.conclusion import under_load as courses
from harness.report.findings.goodput_words import limit_words
from harness.report.findings.sentences import by_metric, claims, pair_words, sentence, under_load
from harness.report.text.screen import screen
from harness.report.text.table import markdown, terminal
from harness.report.view import asked_words, groups
from tests.factories.documents import changed
from tests.factories.summaries import cell, summary, verdict

LOAD = {"kind": "concurrency", "value": 4}
RULES = {"primary": "ttft_ms.p50", "confidence": 0.95}
REQUESTS = {"planned": 32, "sent": 32, "ok": 32, "failed": 0, "dropped": 0, "warmup": 4, "outcomes": {}}
VERDICTS = ("faster", "slower", "same", "not enough runs", "not comparable")


def pair(a, b, word, ratio=(0.4, 0.5, 0.625), metric="ttft_ms.p50", better="lower"):
    return {
        "a": a,
        "b": b,
        "load": LOAD,
        "metric": metric,
        "better": better,
        "ratio": list(ratio) if ratio else None,
        "runs": [5, 5],
        "verdict": word,
        "why": "so it is",
        "primary": metric == RULES["primary"],
    }


def of_pairs(*pairs, p50=(10.0, 20.0, 30.0, 40.0), labels="abcd", **changes):
    cells = [cell(label, p50=value, **changes) for label, value in zip(labels, p50, strict=False)]
    return summary(*cells, comparison=list(pairs), verdict_rules=RULES)


def worded(*pairs, **changes):
    made = of_pairs(*pairs, **changes)
    return sentence(made, groups(made)[0])


@pytest.mark.parametrize(
    "found", [pair("a", "b", "faster"), pair("b", "a", "slower", (1.6, 2.0, 2.5))], ids=["a-b", "b-a"]
)
def test_it_says_who_has_the_best_median_and_by_how_much_it_is_better(found):
    assert (
        worded(found, labels="ab") == "Lowest median TTFT p50: a, 10.0 ms. Better than b by 2× (1.6 to 2.5)."
    )


def test_it_keeps_apart_what_was_decided_and_what_was_not():
    pairs = [
        pair("a", "b", "same"),
        pair("a", "c", "faster"),
        pair("a", "d", "not comparable"),
        pair("b", "c", "not enough runs"),
    ]
    assert worded(*pairs).endswith(
        "Better than c by 2× (1.6 to 2.5). The same as b within noise. Not comparable with d."
    )


def test_a_median_that_is_comparable_with_no_other_does_not_lead():
    """Answers whose first tokens came as one event had a TPOT of a tenth of the truth."""
    pairs = [
        pair("a", "b", "not comparable", None),
        pair("a", "c", "not comparable", None),
        pair("b", "c", "faster"),
    ]
    assert worded(*pairs, labels="abc") == (
        "Lowest comparable median TTFT p50: b, 20.0 ms. Better than c by 2× (1.6 to 2.5). "
        "Not comparable with a."
    )


def test_one_who_is_better_than_some_is_not_put_before_a_better_median_it_was_not_separated_from():
    """In a published run of nine engines the third median of four was reported as the leader."""
    pairs = [
        pair("a", "b", "not enough runs", (0.3, 1.9, 12.0)),
        pair("a", "c", "faster"),
        pair("b", "c", "not enough runs"),
    ]
    found = worded(*pairs, p50=(400.0, 78.0, 900.0), labels="abc")
    assert found == "Lowest median TTFT p50: b, 78.0 ms. Not separated from a and c after 1 repeat."


def test_a_verdict_against_the_order_of_the_medians_is_reported_with_its_estimator():
    found = worded(pair("b", "a", "faster"), labels="ab")
    assert found.startswith("Lowest median TTFT p50: a, 10.0 ms. Over the geometric mean of the repeats b is")


def test_a_best_median_in_doubt_is_marked_where_it_is_claimed():
    found = worded(
        pair("a", "b", "faster"),
        labels="ab",
        validity=verdict("SUSPECT", "too-short", "24 answers", "100", "--requests 100"),
    )
    assert found.startswith("Lowest median TTFT p50: a (in doubt), 10.0 ms.")


MERGED = verdict("SUSPECT", "itl-merged", "53%", "1%", "compare TPOT", metrics=["itl_ms"])


def test_a_doubt_about_gaps_marks_no_other_figure():
    pairs = [pair("a", "b", "faster"), pair("a", "b", "faster", metric="itl_ms.p50")]
    made = of_pairs(*pairs, labels="ab", validity=MERGED)
    (group,) = groups(made)
    assert sentence(made, group).startswith("Lowest median TTFT p50: a, 10.0 ms.")
    ttft, itl = orders(made, group)
    assert [place.doubt for place in ttft.places] == ["", ""]
    assert ttft.pairs[0].in_doubt == ()
    assert itl.places[0].doubt == "1 of 1 repeat SUSPECT: itl-merged (ITL alone)"
    assert itl.pairs[0].in_doubt == ("a", "b")
    assert ("in doubt", "a and b: 1 of 1 repeat SUSPECT: itl-merged (ITL alone)") in claims(made, group)
    assert [course.in_doubt for course in courses(made)] == [False, False]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (["itl_ms"], "itl-merged (ITL alone)"),
        (["itl_ms", "tpot_ms"], "itl-merged (ITL and TPOT alone)"),
        ([], "itl-merged"),
    ],
)
def test_a_rule_that_is_about_other_metrics_in_another_repeat_is_named_once(other, words):
    second = verdict("SUSPECT", "itl-merged", "53%", "1%", "compare TPOT", metrics=other)
    cells = [
        cell(label, repeat=repeat, validity=validity)
        for label in ("a", "b")
        for repeat, validity in enumerate((MERGED, second))
    ]
    (group,) = groups(summary(*cells))
    assert list(doubts(group)) == [f"a and b: 2 of 2 repeats SUSPECT: {words}"]
    assert list(doubts_by_count(group)) == list(doubts(group))


def test_a_rule_that_some_of_the_doubtful_repeats_broke_is_counted():
    """As a GPU that was throttled in one of three starts, on a machine that is never idle."""
    contended = verdict("SUSPECT", "contended", "1.9 of 2 cores", "10%", "stop what else runs")
    throttled = verdict(
        "SUSPECT", "gpu-throttled", "GPU 2: hardware thermal 100%", "5%", "look at its cooling"
    )
    both = replace(contended, reasons=(*contended.reasons, *throttled.reasons))
    validities = (contended, both, MERGED)
    cells = [cell("a", repeat=repeat, validity=validity) for repeat, validity in enumerate(validities)]
    (group,) = groups(summary(*cells))
    found = "contended (2 repeats), gpu-throttled (1 repeat), itl-merged (ITL alone, 1 repeat)"
    assert list(doubts(group)) == [f"a: 3 of 3 repeats SUSPECT: {found}"]


def test_a_rule_that_some_of_many_backends_broke_is_counted():
    contended = verdict("SUSPECT", "contended", "1.9 of 2 cores", "10%", "stop what else runs")
    idle = verdict("SUSPECT", "slot-idle", "6.8% idle", "2%", "add --workers")
    both = replace(contended, reasons=(*contended.reasons, *idle.reasons))
    cells = [
        cell(label, repeat=repeat, validity=both if label == "d" and repeat else contended)
        for label in "abcd"
        for repeat in range(2)
    ]
    (group,) = groups(summary(*cells))
    assert [*doubts_by_count(group)] == [
        "all 4 backends: 2 of 2 repeats SUSPECT: contended, slot-idle (1 repeat)"
    ]


@pytest.mark.parametrize(
    ("pairing", "unit"), [("starts", "repeats"), ("blocks", "blocks"), ("duet", "blocks")]
)
def test_engines_that_are_up_together_have_blocks_in_every_sentence(pairing, unit):
    cells = [cell(label, repeat=repeat, validity=MERGED) for label in "abc" for repeat in range(2)]
    pairs = [pair("a", other, "not enough runs") for other in "bc"]
    made = summary(*cells, comparison=pairs, verdict_rules={**RULES, "pairing": pairing})
    (group,) = groups(made)
    assert sentence(made, group).endswith(f"Not separated from b and c after 2 {unit}.")
    assert list(doubts(group)) == [f"a, b and c: 2 of 2 {unit} SUSPECT: itl-merged (ITL alone)"]
    assert f": a, b and c, 2 {unit} each; " in screen(made, 100, color=False).splitlines()[0]


def test_many_backends_are_counted_where_they_are_all():
    cells = [cell(label, repeat=repeat, validity=MERGED) for label in "abcde" for repeat in range(2)]
    pairs = [pair("a", other, "not enough runs") for other in "bcde"]
    made = summary(*cells, comparison=pairs, verdict_rules=RULES)
    (group,) = groups(made)
    assert sentence(made, group).endswith("Not separated from the other 4 after 2 repeats.")
    assert list(doubts(group)) == ["all 5 backends: 2 of 2 repeats SUSPECT: itl-merged (ITL alone)"]
    assert list(doubts_by_count(group)) == list(doubts(group))


def test_a_load_that_a_server_did_not_keep_up_with_is_named():
    """Of a single backend no verdict says so, and its cell may be VALID."""
    behind = {"state": "unstable", "state_why": "each second of sending adds 0.11 s to the answers"}
    made = summary(cell("a", **behind), cell("a", repeat=1, **behind), cell("a", repeat=2), cell("b"))
    words = "a did not keep up, each second of sending adds 0.11 s to the answers"
    found = dict(claims(made, groups(made)[0]))
    assert found["overload"] == f"{words}: latencies depend on how long was sent"
    assert f"overload  {words}" in screen(made, 200, color=False)
    made = summary(cell("a", **behind), cell("a", repeat=1))
    assert "overload" not in dict(claims(made, groups(made)[0]))


@pytest.mark.parametrize(("limited", "doubted"), [("itl_ms", True), ("ttft_ms", False)])
def test_goodput_is_as_doubtful_as_what_it_limits(limited, doubted):
    limit = {"metric": limited, "share": "p90", "limit_ms": 85.0, "within": 1.0, "met": True}
    made = of_pairs(labels="ab", validity=MERGED, slo={"met": True, "good": 32, "limits": [limit]})
    for row in groups(made)[0].rows:
        assert bool(doubt(row, "goodput_requests_per_s")) == doubted


@pytest.mark.parametrize(
    ("queue_ms", "parts"),
    [(221.0, "queue 221, engine 123"), (None, "engine 123")],
)
def test_of_one_backend_the_first_token_is_said_in_parts(queue_ms, parts):
    known = {"client_ms": 446.0, "queue_ms": queue_ms, "engine_ms": 123.0, "rest_ms": 102.0}
    made = summary(cell("a", ttft_parts=known))
    assert dict(claims(made, groups(made)[0]))["mean first token"] == f"446 ms ({parts}, outside 102)"
    for others in (summary(cell("a")), summary(cell("a", ttft_parts=known), cell("b", ttft_parts=known))):
        assert "mean first token" not in dict(claims(others, groups(others)[0]))


def test_of_one_backend_the_kinds_of_its_requests_are_on_the_first_screen():
    """They are what a mix of lengths asks about. Of several backends, the notes have them."""
    kinds = {name: {"ttft_ms": {"p50": ms}, "tpot_ms": {"p50": 10.0}} for name, ms in (("a", 9), ("b", 255))}
    made = summary(cell("x", by_kind=kinds))
    assert dict(claims(made, groups(made)[0]))["by kind"] == (
        "TTFT p50 a: 9.00 ms, b: 255 ms; TPOT p50 a: 10.0 ms, b: 10.0 ms"
    )
    depths = {"4k": kinds["a"], "8k": kinds["b"]}
    for others in (
        summary(cell("x")),
        summary(cell("x", by_kind=kinds), cell("y", by_kind=kinds)),
        summary(cell("x", by_kind=depths)),
        summary(cell("x", by_kind=kinds, adapters={"swaps": 3})),
    ):
        assert "by kind" not in dict(claims(others, groups(others)[0]))


def test_less_than_all_requests_is_never_a_hundred_per_cent():
    limit = {"metric": "ttft_ms", "share": "max", "limit_ms": 200.0, "within": 0.99964, "met": False}
    slo = {"limits": [limit], "attainment": 0.99964}
    made = summary(cell("a", slo=slo, goodput_requests_per_s=12.0))
    assert dict(claims(made, groups(made)[0]))["goodput"] == (
        "inside TTFT ≤ 200 ms: a 12.0 req/s, 99.96% of the requests; TTFT max: missed by a"
    )


@pytest.mark.parametrize(("limit_ms", "shown"), [(250.4, "250.4"), (50.0, "50"), (1000.25, "1000.25")])
def test_a_limit_is_as_it_was_given(limit_ms, shown):
    limit = {"metric": "ttft_ms", "share": "p95", "limit_ms": limit_ms, "within": 1.0, "met": True}
    made = summary(cell("a", slo={"limits": [limit], "attainment": 1.0}, goodput_requests_per_s=1.0))
    assert dict(claims(made, groups(made)[0]))["goodput"].startswith(f"inside TTFT ≤ {shown} ms: ")
    assert limit_words(made.cells[0].slo.limits[0]) == f"TTFT p95 ≤ {shown} ms"


def test_a_good_request_beside_the_window_does_not_contradict_a_rate_of_nothing():
    limit = {"metric": "e2e_ms", "share": "p95", "limit_ms": 1000.0, "within": 0.025, "met": False}
    slo = {"limits": [limit], "attainment": 0.025}
    made = summary(cell("a", slo=slo, goodput_requests_per_s=0.0))
    assert dict(claims(made, groups(made)[0]))["goodput"] == (
        "inside E2E ≤ 1000 ms: a 0 req/s in the window, 2.5% of the requests; E2E p95: missed by a"
    )


@pytest.mark.parametrize(
    ("repeats", "words", "kept"),
    [
        # Two of three were all good.
        (((18.0, 1.0), (20.0, 1.0), (0.0, 0.0)), "18.0 req/s, 66.7%", "missed by a (in 1 of 3 repeats)"),
        (((0.0, 0.0), (4.0, 0.2), (0.0, 0.0)), "0 req/s in the median repeat, 6.67%", "missed by a"),
        (((0.0, 0.0), (0.0, 0.1), (0.0, 0.0)), "0 req/s in the window, 3.33%", "missed by a"),
        (((18.0, 1.0), (20.0, 1.0), (19.0, 1.0)), "19.0 req/s, 100%", "kept by a"),
    ],
)
def test_not_all_requests_were_good_where_those_of_one_repeat_were_not(repeats, words, kept):
    cells = [good("a", repeat, rate, share) for repeat, (rate, share) in enumerate(repeats)]
    made = summary(*cells)
    found = dict(claims(made, groups(made)[0]))["goodput"]
    assert found == f"inside TTFT ≤ 200 ms: a {words} of the requests; TTFT p95: {kept}"


def test_limits_of_one_latency_are_told_apart_by_their_values():
    limits = [
        {"metric": "ttft_ms", "share": share, "limit_ms": limit_ms, "within": 1.0, "met": True}
        for share, limit_ms in (("p95", 200.0), ("p99", 400.0))
    ]
    made = summary(cell("a", slo={"limits": limits, "attainment": 1.0}, goodput_requests_per_s=1.0))
    found = dict(claims(made, groups(made)[0]))["goodput"]
    assert found.endswith("; TTFT p95 ≤ 200 ms and TTFT p99 ≤ 400 ms: kept by a")


def test_each_limit_says_who_kept_it_where_they_differ():
    """The limit that a kept was missed by it too, where it missed the other one."""
    cells = []
    for label, kept in (
        ("a", (True, True)),
        ("a", (True, True)),
        ("b", (True, False)),
        ("b", (False, False)),
    ):
        limits = [
            {"metric": "e2e_ms", "share": "p95", "limit_ms": 1000.0, "within": 0.0, "met": False},
            *(
                {"metric": "ttft_ms", "share": share, "limit_ms": 2000.0, "within": 0.96, "met": met}
                for share, met in zip(("p90", "p95"), kept, strict=True)
            ),
        ]
        slo = {"limits": limits, "attainment": 0.0}
        cells.append(cell(label, repeat=len(cells) % 2, slo=slo, goodput_requests_per_s=0.0))
    made = summary(*cells)
    assert dict(claims(made, groups(made)[0]))["goodput"] == (
        "inside E2E ≤ 1000 ms and TTFT ≤ 2000 ms: no request of a and b; "
        "E2E p95 ≤ 1000 ms: missed by a and b; "
        "TTFT p90 ≤ 2000 ms: kept by a, missed by b (in 1 of 2 repeats); "
        "TTFT p95 ≤ 2000 ms: kept by a, missed by b"
    )


def good(label, repeat=0, rate=18.0, share=1.0):
    limit = {"metric": "ttft_ms", "share": "p95", "limit_ms": 200.0, "within": share, "met": share >= 0.95}
    return cell(
        label, repeat=repeat, slo={"limits": [limit], "attainment": share}, goodput_requests_per_s=rate
    )


def test_a_load_says_which_backends_kept_its_limits():
    """96% of the requests were inside a limit, and whether that was enough stood in a folded section."""
    shares = {"a": 0.96, "b": 0.94, "c": 0.95, "d": 0.5}
    made = summary(*(good(label, share=share) for label, share in shares.items() if label != "d"))
    found = dict(claims(made, groups(made)[0]))["goodput"]
    assert found.endswith(" of the requests; TTFT p95: kept by a and c, missed by b")
    made = summary(*(good(label, share=share) for label, share in shares.items()))
    found = dict(claims(made, groups(made)[0]))["goodput"]
    assert found.endswith("; TTFT p95: kept by 2 of 4 backends")


def test_a_missed_limit_has_what_was_measured_where_that_is_beyond_it():
    """A goodput of 94% does not say by how much the limit was missed."""
    limit = {"metric": "ttft_ms", "share": "p95", "limit_ms": 200.0}
    cells = [
        cell(
            label,
            repeat=repeat,
            ttft_ms={"p50": 100.0, "p95": p95},
            slo={"limits": [{**limit, "within": 0.94, "met": p95 <= 200.0}], "attainment": 0.94},
            goodput_requests_per_s=1.0,
        )
        for label, both in {"a": (150.0, 160.0), "b": (700.0, 720.0), "c": (190.0, 260.0)}.items()
        for repeat, p95 in enumerate(both)
    ]
    found = dict(claims(summary(*cells), groups(summary(*cells))[0]))["goodput"]
    kept = "kept by a, missed by b (710 ms) and c (225 ms, in 1 of 2 repeats)"
    assert found.endswith(f"; TTFT p95: {kept}")


@pytest.mark.parametrize(("swaps", "words"), [((7, 7), "7 of 32 requests"), ((7, 8), "7.5 of 32 requests")])
def test_requests_that_load_an_adapter_are_counted_in_whole_numbers(swaps, words):
    cells = [
        cell("a", repeat=repeat, adapters={"swaps": count, "swap_ms": 120.0})
        for repeat, count in enumerate(swaps)
    ]
    made = summary(*cells)
    assert dict(claims(made, groups(made)[0]))["adapters"] == f"a 120 ms more to load one ({words})"


@pytest.mark.parametrize(
    ("word", "why"), [("not enough runs", ""), ("not comparable", "Not comparable in TTFT p50: so it is. ")]
)
def test_without_an_interval_it_says_why_and_what_was_measured(word, why):
    found = worded(pair("a", "b", word, ratio=None), labels="ab")
    assert found.startswith(f"{why}a: first token after 10.0 ms (median), 118 output tokens/s; b: first")


@pytest.mark.parametrize(
    ("last", "text"),
    [
        ("not comparable", "a 118 tokens/s, not comparable with b and c: so it is"),
        ("same", "b 118 tokens/s, the same within noise as c, not comparable with a"),
    ],
)
def test_of_three_backends_one_reason_why_no_pair_is_compared_is_given(last, text):
    rate = {"metric": "output_tokens_per_s", "better": "higher", "ratio": (0.9, 1, 1.1)}
    pairs = list(combinations("abc", 2))
    words = ["not comparable", "not comparable", last]
    refused = [pair(*ab, word, **rate) for ab, word in zip(pairs, words, strict=True)]
    made = of_pairs(*(pair(a, b, "same") for a, b in pairs), *refused, labels="abc")
    assert dict(claims(made, groups(made)[0]))["output tokens/s"] == text


def test_where_every_measurement_is_invalid_that_is_all_it_says():
    """The reason of each pair names only its own backends, and none says more than that nothing is valid."""
    broken = [
        {"code": "failed-requests", "verdict": "INVALID", "measured": "4 of 9", "limit": "1%", "hint": ""}
    ]
    pairs = [pair(a, b, "not comparable", ratio=None) for a, b in combinations("abc", 2)]
    found = worded(*pairs, labels="abc", validity={"verdict": "INVALID", "reasons": broken})
    assert found == "a, b and c: no valid measurement."


def test_the_same_within_noise_is_kept_apart_from_not_separated():
    """The sentence says that `c` is the same; the row of the metric said that it is not separated."""
    pairs = pair("a", "b", "not enough runs", (0.9, 1, 1.2)), pair("a", "c", "same", (0.99, 1, 1.01))
    found = of_pairs(*pairs, labels="abc")
    assert by_metric(found, groups(found)[0])["first token"] == (
        "a 10.0 ms, not separated from b, the same within noise as c"
    )


def test_of_many_backends_a_claim_says_what_it_counts():
    undecided = [pair(a, b, "not enough runs", (0.9, 1, 1.2)) for a, b in combinations("abcde", 2)]
    found = of_pairs(*undecided, labels="abcde")
    assert by_metric(found, groups(found)[0])["first token"] == "a 10.0 ms, not separated from 4 others"


def test_of_many_backends_without_a_verdict_the_range_is_reported():
    assert worded() == "TTFT p50 from 10.0 ms (a) to 40.0 ms (d)."


def test_each_metric_names_the_one_that_is_ahead():
    made = of_pairs(
        pair("a", "b", "slower", (4.91, 5.08, 5.25)),
        pair("a", "b", "faster", (0.25, 0.28, 0.31), metric="tpot_ms.p50"),
        pair("a", "b", "not enough runs", (0.16, 0.41, 1.04), metric="e2e_ms.p50"),
        pair("a", "b", "faster", (1.5, 1.8, 2.2), metric="output_tokens_per_s", better="higher"),
        labels="ab",
    )
    assert by_metric(made, groups(made)[0]) == {
        "first token": "b 5.08× faster (4.91 to 5.25)",
        "each further token": "a 3.57× faster (3.23 to 4)",
        "whole answer": "a 2.44× (0.962 to 6.25), undecided",
        "output tokens/s": "a 1.8× more (1.5 to 2.2)",
    }


@st.composite
def summaries(draw, most=5, validities=("VALID",)):
    """Backends in any order with any medians, and any verdict for each pair: also against the medians."""
    letters = "abcde"[: draw(st.integers(2, most))]
    labels = [f"engine-{letter}" for letter in letters]
    medians = draw(st.lists(st.floats(0.1, 1e5), min_size=len(labels), max_size=len(labels)))
    pairs = []
    for a, b in combinations(labels, 2):
        low, middle, high = sorted(draw(st.lists(st.floats(0.01, 100), min_size=3, max_size=3)))
        for metric, better in (("ttft_ms.p50", "lower"), ("output_tokens_per_s", "higher")):
            word = draw(st.sampled_from(VERDICTS))
            if word in ("faster", "slower") and (middle < 1) != ((word == "faster") == (better == "lower")):
                low, middle, high = 1 / high, 1 / middle, 1 / low
            pairs.append(pair(a, b, word, (low, middle, high), metric, better))
    cells = []
    for label, value in zip(labels, medians, strict=True):
        word = draw(st.sampled_from(validities))
        found = {"validity": verdict(word, "contended", "50%", "10%", "")} if word != "VALID" else {}
        cells.append(cell(label, p50=value, output_tokens_per_s=1000 / value, **found))
    return summary(*cells, comparison=pairs, verdict_rules=RULES)


@given(summaries())
def test_no_sentence_contradicts_the_table_or_a_verdict(made):
    group = groups(made)[0]
    of = order(made, group)
    medians = {row.label: row.spread("ttft_ms.p50").median for row in group.rows}
    found = sentence(made, group)
    if named := re.match(r"Lowest median TTFT p50: (engine-.)", found):
        assert medians[named[1]] == min(medians.values())
        for other in re.findall(r"(engine-.) by ", found.partition("Better than")[2].partition(". ")[0]):
            assert _word(made, named[1], other) == "faster"
        apart = found.partition("Not separated from ")[2].partition(" after")[0]
        assert {_word(made, named[1], other) for other in re.findall("engine-.", apart)} <= {
            "not enough runs"
        }
    for waited, claim in by_metric(made, group).items():
        if "better than all others" in claim:
            best = re.search("engine-.", claim)[0]
            name = "ttft_ms.p50" if waited == "first token" else "output_tokens_per_s"
            others = [other for other in medians if other != best]
            assert {_word(made, best, other, name) for other in others} == {"faster"}
    assert not re.search("leads|fastest", found)
    for earlier, later in zip(of.groups, of.groups[1:], strict=False):
        assert max(medians[label] for label in earlier) <= min(medians[label] for label in later)
        assert {_word(made, a, b) for a in earlier for b in later} == {"faster"}


RENDERERS = {
    "screen": lambda made: screen(made, 80, color=False),
    "narrow screen": lambda made: screen(made, 60, color=False),
    "everything": lambda made: terminal(made, 100, color=False),
    "markdown": lambda made: markdown(made).replace("\\", ""),
}


@pytest.mark.parametrize("name", RENDERERS)
@given(made=summaries(validities=("VALID", "SUSPECT", "INVALID")))
def test_no_page_contradicts_the_table_or_a_verdict(name, made):
    text = " ".join(RENDERERS[name](made).split())
    medians = {
        row.label: spread.median for row in groups(made)[0].rows if (spread := row.spread("ttft_ms.p50"))
    }
    for best in re.findall(r"Lowest median TTFT p50: (engine-.)", text):
        assert medians[best] == min(medians.values())
    for ahead, factor, low in re.findall(r"(engine-.) ([\d.e+]+)× (?:faster|more) \(([\d.e-]+) to", text):
        assert float(factor) >= 1
        assert float(low) <= float(factor)
        assert any(
            ahead == (entry.a if entry.verdict == "faster" else entry.b)
            for entry in made.comparison
            if entry.verdict in ("faster", "slower")
        )
    for ahead, behind, factor in re.findall(r"(engine-.) is faster than (engine-.), ([\d.e+]+)×", text):
        assert _word(made, ahead, behind) == "faster"
        assert float(factor) >= 1
    assert not re.search("leads|fastest|winner", text)
    doubted = "".join(re.findall(r"in doubt:? (?:engine-.(?:, | and |: [^;]*(?:; )?)?)+", text))
    for row in groups(made)[0].rows:
        if doubt(row):
            assert row.label in doubted


@given(made=summaries(validities=("VALID", "SUSPECT", "INVALID")))
def test_the_document_says_what_the_verdicts_say(made):
    found = conclude(made)
    assert as_json(found)["orders"][0]["metric"] == "ttft_ms.p50"
    doubtful = {row.label for row in groups(made)[0].rows if doubt(row)}
    for one in found.orders:
        assert {place.label for place in one.places if place.doubt} == doubtful
        for pair in one.pairs:
            assert pair.state != "separated" or _word(made, pair.ahead, pair.behind, one.metric) == "faster"
            assert pair.times.estimate >= 1
            assert set(pair.in_doubt) == doubtful & {pair.ahead, pair.behind}
    assert found.next_steps
    waiting = [entry for entry in made.comparison if entry.primary and entry.verdict == "not enough runs"]
    assert found.undecided == len(waiting)


@given(summaries())
def test_every_speed_up_is_of_the_one_ahead(made):
    for entry in made.comparison:
        found = speedup(entry)
        assert found.times.low <= found.times.estimate <= found.times.high
        assert found.times.estimate >= 1
        if entry.verdict in ("faster", "slower"):
            assert found.ahead == (entry.a if entry.verdict == "faster" else entry.b)
    for one in orders(made, groups(made)[0]):
        assert sorted(label for part in one.groups for label in part) == sorted({p.label for p in one.places})


def _word(made, label, other, metric="ttft_ms.p50"):
    """The verdict about `label` against `other`."""
    for entry in made.comparison:
        if entry.metric == metric and {entry.a, entry.b} == {label, other}:
            turned = {"faster": "slower", "slower": "faster"}
            return entry.verdict if entry.a == label else turned.get(entry.verdict, entry.verdict)
    raise AssertionError((label, other))


def _loaded(rates, waits):
    return summary(
        *(
            cell("vllm", {"kind": "concurrency", "value": users}, p50=wait, output_tokens_per_s=rate)
            for users, rate, wait in zip((1, 4, 8), rates, waits, strict=True)
        )
    )


def _limit_of(*points, cut_short=(), **changes):
    """The course of one server; `points` are of users and output tokens/s."""
    cells = [
        cell(
            "vllm",
            {"kind": "concurrency", "value": users},
            output_tokens_per_s=rate,
            requests=REQUESTS | {"cancelled": int(users in cut_short)},
            **changes,
        )
        for users, rate in points
    ]
    (course,) = courses(summary(*cells))
    return course.limit_reached, course.limit_users


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (((14, 70.0), (15, 74.0)), (None, None)),  # 7% more users can bring no more than that
        (((1, 10.0), (4, 40.0), (8, 41.0), (16, 40.0)), (True, 4)),
        (((1, 10.0), (4, 40.0), (16, 158.0), (24, 165.0), (32, 164.0)), (True, 16)),
        (((1, 10.0), (14, 40.0), (15, 40.0)), (None, None)),  # flat somewhere between 1 and 14
        (((1, 10.0), (4, 40.0), (8, 60.0)), (False, None)),
        (((1, 10.0), (4, 40.0), (8, 50.0)), (None, None)),
        (((1, 10.0),), (None, None)),
    ],
)
def test_the_limit_is_the_first_load_after_which_throughput_stays_flat(points, expected):
    assert _limit_of(*points) == expected


def test_a_cell_that_was_cut_short_is_no_load_of_the_limit():
    points = (1, 10.0), (4, 40.0), (8, 20.0)
    assert _limit_of(*points) == (True, 4)
    assert _limit_of(*points, cut_short=(8,)) == (False, None)
    # Other tools cancel at the end of every load what is in flight.
    assert _limit_of(*points, cut_short=(1, 4, 8), imported={"tool": "guidellm"}) == (True, 4)


@pytest.mark.parametrize(
    ("rates", "waits", "says"),
    [
        (
            (19.0, 80.0, 155.0),
            (100.0, 101.0, 104.0),
            "155 output tokens/s at 8 users, 19.0 at 1; the first token stays at 104 ms; "
            "the limit was not reached",
        ),
        (
            (100.0, 150.0, 152.0),
            (100.0, 300.0, 700.0),
            "152 output tokens/s at 8 users, 100 at 1; the first token goes from 100 ms to 700 ms at 8 users"
            "; the limit was reached: more than 4 users brought less than 10% more",
        ),
        (
            (42.4, 41.7, 46.6),
            (755.0, 837.0, 943.0),
            "46.6 output tokens/s at 8 users, 42.4 at 1; the first token goes from 755 ms to 943 ms at 8 "
            "users; the limit was reached: more than 1 user brought less than 10% more",
        ),
        (
            (100.0, 150.0, 152.0),
            (20.0, 400.0, 21.0),
            "152 output tokens/s at 8 users, 100 at 1; the first token takes 20.0 to 400 ms"
            "; the limit was reached: more than 4 users brought less than 10% more",
        ),
    ],
    ids=["room", "full", "a quarter later", "worst between"],
)
def test_of_one_server_it_says_what_more_users_bring(rates, waits, says):
    assert list(under_load(_loaded(rates, waits))) == [f"vllm: {says}."]


def test_a_capacity_search_has_no_other_limit_and_no_step_to_higher_loads():
    loaded = _loaded((19.0, 80.0, 155.0), (100.0, 101.0, 104.0))
    assert any("--concurrency" in step.do for step in conclude(loaded).next_steps)
    capacity = {"label": "vllm", "kind": "concurrency", "kept_by_search": [4], "tested": []}
    searched = changed(loaded, capacity=[capacity])
    assert list(under_load(searched)) == [
        "vllm: 155 output tokens/s at 8 users, 19.0 at 1; the first token stays at 104 ms."
    ]
    assert not any("--concurrency" in step.do for step in conclude(searched).next_steps)


def test_a_load_that_was_cut_short_is_named_where_it_is_left_out():
    loaded = _loaded((19.0, 80.0, 155.0), (100.0, 101.0, 104.0))
    *whole, last = loaded.cells
    cut = replace(last, requests=replace(last.requests, cancelled=4))
    (found,) = under_load(replace(loaded, cells=(*whole, cut)))
    assert found.startswith("vllm: 80.0 output tokens/s at 4 users, 19.0 at 1; ")
    assert found.endswith("; cut short and left out: 8 users.")


def test_one_backend_has_a_row_per_load_in_the_whole_table():
    lines = terminal(_loaded((19.0, 80.0, 155.0), (100.0, 101.0, 104.0)), 100, color=False).splitlines()
    assert sum(line.startswith("closed loop, concurrency") and line.endswith("VALID") for line in lines) == 3


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0"), (0.018, "1.80"), (0.903, "90.3"), (0.9997, "99.97"), (1.0, "100")]
)
def test_only_all_of_the_prompt_tokens_are_a_hundred_per_cent_of_hits(share, text):
    made = summary(
        cell(
            "vllm",
            load={"kind": "working-set", "value": 1},
            prefix_cache_hit_rate=share,
            host_cache_hit_rate=share,
        )
    )
    behind = f", of which {text} came back into the KV cache" if share else ""
    assert dict(claims(made, groups(made)[0]))["cache hits"] == f"vllm {text}%{behind}"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        ((0.9995, 1.0002, 1.0004), "no difference seen, undecided"),
        ((0.97, 1.001, 1.04), "no difference seen (0.97 to 1.04), undecided"),
        ((0.9, 0.98, 1.01), "a 1.02× (0.99 to 1.11), undecided"),
    ],
)
def test_an_undecided_pair_that_rounds_to_equal_leans_to_nobody(ratio, words):
    compared = summary(cell(), comparison=[pair("a", "b", "not enough runs", ratio)], verdict_rules=RULES)
    assert pair_words(speedup(compared.comparison[0]), measure("ttft_ms.p50")) == words


SLOWER = "1.25× the further token of a free answer"
FIRST_USE = "first token 120 ms at first use of a schema"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, f"{SLOWER}, {FIRST_USE}, 30.0 ms at a later one"),
        ({"later_ttft_ms": None}, f"{SLOWER}, {FIRST_USE}"),
        ({"tpot_ratio": None}, f"{FIRST_USE}, 30.0 ms at a later one"),
    ],
)
def test_what_a_constraint_costs_is_on_the_first_screen(change, words):
    cost = {"first_use_ttft_ms": 120.0, "later_ttft_ms": 30.0, "tpot_ratio": 1.25} | change
    made = summary(cell("a", constraint=cost), cell("b"))
    assert dict(claims(made, groups(made)[0]))["constraint"] == f"a {words}"
    nothing = summary(cell("a", constraint=dict.fromkeys(cost)))
    assert "constraint" not in dict(claims(nothing, groups(nothing)[0]))
    kinds = {
        kind: {"asked": asked, "valid": 0, "constrained": kind == "choice"}
        for kind, asked in (("choice", 6), ("free", 8), ("regex", 2))
    }
    lacking = summary(cell("a", constraint=cost, answers={"structured": kinds}), cell("b"))
    says = f"a {words}, regex could not be asked and is not in the valid form"
    assert dict(claims(lacking, groups(lacking)[0]))["constraint"] == says
    assert asked_words(lacking).endswith("50% of them free")
    del kinds["free"]
    assert "free" not in asked_words(summary(cell("a", answers={"structured": kinds})))
