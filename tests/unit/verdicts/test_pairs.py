"""Verdicts on hand-made summaries: every word, and why it is that one."""

import re
from dataclasses import replace

import numpy as np
import pytest

from harness.model import Imported, Interval
from harness.report.text import table
from harness.stats.student import t_quantile
from harness.verdicts import Rules, compare
from harness.verdicts.change_words import span_words, words_apart
from harness.verdicts.pairs import Pairing, decide, find, left_out_words
from harness.verdicts.run_values import loads, series
from tests.factories.documents import changed
from tests.factories.runs import Engine, Shape, make_run
from tests.factories.summaries import UNSTEADY, cell, verdict

ONE = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50",))
NOISE = np.array([0.2, -0.1, 0.1, -0.2, 0.0])  # of runs, in per cent


def cells(label, p50, *, noise=NOISE, repeats=5, load=None, work="w", **changes):
    """One cell per repeat; backends take turns in time by their label."""
    return [
        cell(
            label,
            load,
            repeat,
            p50=p50 * (1 + noise[repeat] / 100),
            workload_sha256=f"{work}{repeat}",
            started_unix_ns=1000 * repeat + sum(map(ord, label)),
            **changes,
        )
        for repeat in range(repeats)
    ]


def rows_of(a, b):
    return {load: series([*a, *b], load, {}) for load in loads(a)}


def only(found):
    (one,) = found.comparison
    return one


def judged(a, b, rules=ONE):
    return only(compare([*a, *b], rules))


def test_slower_beyond_the_floor():
    one = judged(cells("a", 110), cells("b", 100, noise=-NOISE))
    assert one.verdict == "slower"
    low, middle, high = one.ratio
    assert middle == pytest.approx(1.1)
    assert 1.09 < low < middle < high < 1.11
    assert one.difference.estimate == pytest.approx(10)
    assert one.runs == (5, 5)
    assert one.paired
    assert one.primary
    assert one.p_holm < 0.01
    assert one.why.startswith("10.0% higher (")
    assert one.why.endswith("over 5 pairs of runs, beyond the floor of 2%")


@pytest.mark.parametrize("repeats", [3, 7, 30])
@pytest.mark.parametrize(("p50", "digits"), [(12, False), (12.1, True)])
def test_no_number_of_files_decides_what_their_digits_do_not_tell(p50, digits, repeats):
    """Three files of 12 ms advised four more of each, and seven of them eight more."""
    file = Imported(tool="x", file="f", sha256="", level="summary", took="figures")
    still = np.zeros(repeats)
    a, b = (
        [changed(one, imported=file) for one in cells(label, p50, noise=still, repeats=repeats)]
        for label in "ab"
    )
    found = judged(a, b)
    few = "the files print too few digits to decide"
    assert (found.verdict == "same", few in found.why) == (digits, not digits)
    assert found.runs_needed is None


def test_of_a_rate_more_is_better():
    rules = Rules(primary="requests_per_s", metrics=("requests_per_s",))
    a = [changed(made, requests_per_s=11 + 0.01 * i) for i, made in enumerate(cells("a", 1))]
    b = [changed(made, requests_per_s=10 + 0.01 * i) for i, made in enumerate(cells("b", 1))]
    assert judged(a, b, rules).verdict == "faster"
    assert judged(b, a, rules).verdict == "slower"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        ((0.9, 0.95, 1.25), "5.0% lower (10.0% lower to 25.0% higher)"),
        ((0.42, 0.431, 0.442), "56.9% lower (58.0% lower to 55.8% lower)"),
        ((1.0, 1.5, 2.0), "50.0% higher (0.0% higher to 100.0% higher)"),
        ((0.9, 2.1, 4.0), "2.10 times (0.900 times to 4.00 times)"),
        ((999.7, 2990.2, 12345.6), "2990 times (1000 times to 12346 times)"),
    ],
)
def test_ratios_in_words(ratio, words):
    assert span_words(Interval(*ratio)) == words


@pytest.mark.parametrize(
    ("ratio", "limit", "words"),
    [
        ((1.0204, 1.0304, 1.04), 0.02, ("3.04% higher (2.04% higher to 4.00% higher)", "2%")),
        ((0.93, 0.94, 0.9496), 0.05, ("6.00% lower (7.00% lower to 5.04% lower)", "5%")),
        ((0.93, 0.9504, 0.951), 0.05, ("4.96% lower (7.00% lower to 4.90% lower)", "5% (4.76% lower)")),
        ((0.9797, 0.98, 0.98), 0.02, ("2.00% lower (2.03% lower to 2.00% lower)", "2% (1.96% lower)")),
        ((0.96, 0.97, 0.98047), 0.02, ("3.00% lower (4.00% lower to 1.95% lower)", "2%")),
        ((0.952, 1.0, 1.07), 0.05, ("0.0% higher (4.8% lower to 7.0% higher)", "5%")),
        ((0.75, 0.8, 0.85), 0.3, ("20.0% lower (25.0% lower to 15.0% lower)", "30% (23.1% lower)")),
        ((1.0208, 1.03, 1.04), 0.0206, ("3.00% higher (2.08% higher to 4.00% higher)", "2.06%")),
        ((1.0204, 2.0, 4.0), 0.02, ("2.00 times (1.0204 times to 4.00 times)", "2%")),
        ((1.05, 1.06, 1.07), 0.02, ("6.0% higher (5.0% higher to 7.0% higher)", "2%")),
    ],
)
def test_a_change_never_reads_as_a_limit_that_it_is_not(ratio, limit, words):
    assert words_apart(Interval(*ratio), limit) == words


def test_a_change_never_reads_as_nothing():
    """Of a floor of 0, or within the margin of `same`."""
    words = "0.03% lower (0.04% lower to 0.02% lower)"
    for limit, shown in ((0.0, "0%"), (0.05, "5%")):
        assert words_apart(Interval(0.9996, 0.9997, 0.9998), limit) == (words, shown)
    assert words_apart(Interval(1.0, 1.0, 1.0), 0.0) == ("0.0% higher (0.0% higher to 0.0% higher)", "0%")
    tiny = ("0.004% lower (0.005% lower to 0.003% lower)", "0%")
    assert words_apart(Interval(0.99995, 0.99996, 0.99997), 0.0) == tiny


def test_an_end_near_nothing_spreads_two_digits_at_most():
    words = "3.00% higher (0.00% lower to 7.00% higher)"
    assert words_apart(Interval(0.99996, 1.03, 1.07), 0.02, 0.05) == (words, "2%", "5%")


def test_a_decrease_beyond_the_floor_does_not_read_as_one_below_it():
    """2% higher is the inverse of 1.96% lower, which is where the floor lies for a decrease."""
    one = judged(cells("a", 98.02, noise=0.002 * NOISE), cells("b", 100, noise=-0.002 * NOISE))
    assert one.verdict == "faster"
    assert one.why.startswith("1.98% lower (1.98% lower to 1.98% lower)")
    assert one.why.endswith(", beyond the floor of 2% (1.96% lower)")


def test_an_undecided_decrease_does_not_read_as_within_the_margin():
    one = judged(cells("a", 97, noise=5 * NOISE), cells("b", 100, noise=-5 * NOISE))
    assert 0.95 < one.ratio.low < 1 / 1.05
    assert "neither beyond 2% nor within 5% (4.8% lower)" in one.why
    alike = judged(
        cells("a", 97, noise=5 * NOISE), cells("b", 100, noise=-5 * NOISE), replace(ONE, floor=0.05)
    )
    assert ": neither beyond nor within 5% (4.8% lower); about" in alike.why


def test_an_undecided_end_never_reads_as_the_limit_that_it_exceeds():
    def against(p50):
        return judged(cells("a", p50, noise=5 * NOISE), cells("b", 100, noise=-5 * NOISE))

    one = against(103 * 1.0504 / against(103).ratio.high)
    assert "to 5.04% higher) over 5 pairs of runs: neither beyond 2% nor within 5%" in one.why


def test_a_sure_difference_below_the_floor_is_no_finding():
    one = judged(cells("a", 101.5), cells("b", 100))
    assert one.ratio.low > 1.01
    assert one.verdict == "same"
    assert one.why.endswith("within 5%")


def test_invalid_cells_never_enter():
    a, b = cells("a", 110), cells("b", 100)
    bad = verdict("INVALID", "client-busy", "99%", "90%", "")
    a[0] = changed(a[0], validity=bad, ttft_ms={"p50": 1e9})
    assert judged(a, b).runs == (4, 4)
    a[1:3] = [changed(made, validity=bad) for made in a[1:3]]
    one = judged(a, b)
    assert one.verdict == "not enough runs"
    assert "3 of a INVALID (client-busy)" in one.why
    labels = {(made.label, made.runs) for made in compare([*a, *b], ONE).estimates}
    assert labels == {("a", 2), ("b", 5)}


def test_runs_of_other_requests_are_neither_paired_nor_comparable():
    one = judged(cells("a", 110, work="one"), cells("b", 100, work="other"))
    assert not one.paired
    assert one.ratio.low > 1.02
    assert one.verdict == "not comparable"
    assert one.why.startswith("the requests: ")


def test_what_is_unequal_refuses_the_metrics_it_touches():
    """Answers of other lengths: no verdict on whole answers; alone, one on the first token."""
    rules = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50", "e2e_ms.p50", "requests_per_s"))
    a, b = (
        cells(label, p50, conditions={"output_tokens_mean": mean}, load={"kind": "concurrency", "value": 1})
        for label, p50, mean in (("a", 110, 32.0), ("b", 100, 16.0))
    )
    found = compare([*a, *b], rules).comparison
    assert [one.verdict for one in found] == ["slower", "not comparable", "not comparable"]
    assert found[1].why.startswith("tokens per answer: 32.0 (a), 16.0 (b)")
    assert found[1].p_holm is None


def of_lengths(first, second, p50s=(104, 100), **rules):
    made = (
        cells(label, p50, conditions={"output_tokens_mean": mean})
        for label, p50, mean in zip("ab", p50s, (first, second), strict=True)
    )
    return judged(*made, Rules(primary="e2e_ms.p50", metrics=("e2e_ms.p50",), **rules))


def test_answers_a_little_longer_are_no_slower_server():
    """4% longer answers take 4% longer: a difference counts beyond 1.02 x 1.04 only."""
    assert of_lengths(50.0, 50.0).verdict == "slower"
    found = of_lengths(52.0, 50.0)
    assert found.verdict == "not enough runs"
    assert "not beyond 6.1% (unequal work may be 4% of it)" in found.why
    assert of_lengths(52.0, 50.0, forced=True).verdict == "slower"  # what is unequal was seen


def test_what_is_beyond_the_wider_floor_is_decided():
    found = of_lengths(52.0, 50.0, p50s=(120, 100))
    assert found.verdict == "slower"
    assert found.why.endswith("beyond the floor of 6.1% (unequal work may be 4% of it)")


def test_unequal_work_may_hide_a_difference_from_same():
    """Equal times of answers 2% apart in length are within 5% / 1.02; 4% apart they may be 9% apart."""
    assert of_lengths(50.0, 50.0, p50s=(100, 100)).verdict == "same"
    assert of_lengths(50.5, 50.0, p50s=(100, 100)).verdict == "same"
    assert of_lengths(52.0, 50.0, p50s=(100, 100)).verdict == "not enough runs"


def test_where_tokens_are_unlike_the_verdict_is_about_characters():
    """b counts two tokens for the text of one."""
    texts = (
        {"per_answer": 80.0, "per_answer_error": 0.1, "per_token": each, "per_token_error": 0.01}
        for each in (4.0, 2.0)
    )
    a, b = (
        rated(label, per_s, output_chars_per_s=chars, conditions={"output_text": text})
        for label, per_s, chars, text in zip("ab", (100, 200), (800, 400), texts, strict=True)
    )
    found = {one.metric: one for one in compare([*a, *b], RATE).comparison}
    assert found["output_tokens_per_s"].verdict == "not comparable"
    assert found["output_tokens_per_s"].why.startswith("characters per token: 4 (a), 2 (b)")
    assert found["output_chars_per_s"].verdict == "faster"


def test_all_of_one_before_all_of_the_other_is_refused():
    a = cells("a", 110)
    b = [changed(made, started_unix_ns=made.started_unix_ns + 10_000) for made in cells("b", 100)]
    one = judged(a, b)
    assert one.verdict == "not comparable"
    assert one.why == "all runs of a came before all runs of b: drift is not ruled out"
    assert judged(b, a).why == one.why
    assert one.ratio is not None


def test_repeats_of_two_versions_are_refused():
    """Half of them may be of a faster engine: their mean is no engine's."""
    a, b = cells("a", 110), cells("b", 100, noise=-NOISE)
    a[3:] = [changed(made, engine_version="b11550") for made in a[3:]]
    one = judged(a, b)
    assert one.verdict == "not comparable"
    assert one.why == "a changed during the run: engine version b11549 (r0, r1, r2), b11550 (r3, r4)"
    assert judged(b, a).why == one.why
    assert judged(a, b, replace(ONE, forced=True)).verdict == "slower"


def test_a_null_percentile_says_why():
    reason = "16 samples; p90 needs 29"
    rules = Rules(primary="ttft_ms.p90", metrics=("ttft_ms.p90",))
    a, b = (
        [
            changed(made, ttft_ms={"p90": None}, null_reasons={"ttft_ms.p90": reason})
            for made in cells(label, 1)
        ]
        for label in "ab"
    )
    one = judged(a, b, rules)
    assert (one.verdict, one.why) == ("not enough runs", f"0 runs each, 3 are needed; {reason}")


ODD = np.array([1.5, -1.2, 0.9, -1.6, 0.4])


def test_the_primary_metric_is_a_family_over_all_pairs_and_loads():
    """Shown alone, and not among the 30 comparisons of five backends at three loads. Secondary ones apart."""
    point = {"kind": "concurrency", "value": 4}
    a, b = cells("a", 105, noise=1.5 * ODD, load=point), cells("b", 100, noise=np.zeros(5), load=point)
    assert judged(a, b).verdict == "slower"
    others = [
        made
        for label in "abcde"
        for value in (1, 4, 16)
        if (label, value) not in (("a", 4), ("b", 4))
        for made in cells(label, 100, noise=20 * ODD, load={"kind": "concurrency", "value": value})
    ]
    names = ("ttft_ms.p50", "requests_per_s", "output_tokens_per_s")
    found = compare([*a, *b, *others], Rules(primary="ttft_ms.p50", metrics=names)).comparison
    one = next(x for x in found if (x.a, x.b, x.load.value, x.primary) == ("a", "b", 4, True))
    assert one.verdict == "not enough runs"
    assert "beyond 2% by itself, but not as one of 30 comparisons" in one.why
    assert one.family_ratio.low < one.ratio.low
    assert one.family_ratio.low < 1.02 < one.ratio.low
    alone = compare([*a, *b], Rules(primary="ttft_ms.p50", metrics=names)).comparison[0]
    assert alone.verdict == "slower"


def test_same_is_the_whole_interval_of_the_family_within_five_per_cent():
    """Audit 16: the floor of a noisy machine once widened what counted as the same."""
    wide, one = 2.6 * ODD, {"kind": "concurrency", "value": 1}
    a, b = cells("a", 100, noise=wide, load=one), cells("b", 100, noise=np.zeros(5), load=one)
    assert judged(a, b).verdict == "same"
    more = [made for label in "ab" for made in cells(label, 100, noise=20 * ODD * (label == "a"))]
    found = compare([*a, *b, *more], ONE).comparison
    assert found[0].verdict == "not enough runs"
    assert "within 5% by itself, but not as one of 2 comparisons" in found[0].why


def test_a_measured_floor_above_five_per_cent_leaves_it_open():
    floors = {"b": {"c4": {"ttft_ms.p50": 0.19}}}
    rules = Rules(primary="ttft_ms.p50", metrics=("ttft_ms.p50",), measured_floors=floors)
    quiet = {"kind": "concurrency", "value": 1}
    for p50 in (110, 100.1, 118.9):
        one = judged(cells("a", p50), cells("b", 100), rules)
        assert one.verdict == "not enough runs"
        assert "not beyond 19%, by which this machine differs from itself" in one.why
    assert judged(cells("a", 130), cells("b", 100), rules).verdict == "slower"
    assert judged(cells("a", 110, load=quiet), cells("b", 100, load=quiet), rules).verdict == "slower"


def test_a_difference_within_a_measured_floor_may_be_the_same():
    a, b = cells("a", 103), cells("b", 100)
    assert judged(a, b).verdict == "slower"
    assert judged(a, b, replace(ONE, measured_floors={"b": {"c4": {"ttft_ms.p50": 0.04}}})).verdict == "same"


def test_no_number_of_runs_is_promised_where_the_floor_forbids_same():
    rules = replace(ONE, measured_floors={"b": {"c4": {"ttft_ms.p50": 0.08}}})
    noise = 10 * NOISE
    one = judged(cells("a", 100, noise=noise), cells("b", 100, noise=-noise), rules)
    assert (one.verdict, one.runs_needed) == ("not enough runs", None)
    assert one.why.endswith("by which this machine differs from itself; very many runs would be needed")
    apart = judged(cells("a", 110, noise=noise), cells("b", 100, noise=-noise), rules)
    assert apart.runs_needed > 5


def test_a_smaller_level_asks_for_more():
    """What a look at the figures before the last one is worth."""
    a, b = cells("a", 105, noise=1.5 * ODD), cells("b", 100, noise=np.zeros(5))
    rows = rows_of(a, b)
    assert [one.verdict for one in find(rows, ONE)] == ["slower"]
    assert [one.verdict for one in find(rows, ONE, alpha=0.001)] == ["not enough runs"]


@pytest.mark.parametrize("alphas", [(0.05, 0.01), (0.01, 0.05)])
def test_each_run_of_a_comparison_has_a_level_of_its_own(alphas):
    """Two pairs of one family: the interval of each is at half of its own level."""
    ratios = {"a": 105, "b": 110}
    pairings = [
        Pairing(first, second, load, replace(ONE, alpha=alpha))
        for (label, p50), alpha in zip(ratios.items(), alphas, strict=True)
        for load, (first, second) in rows_of(cells(label, p50, noise=2 * ODD), cells("z", 100)).items()
    ]
    open_, surer = decide(pairings)
    assert (open_.verdict, surer.verdict) == ("not enough runs", "slower")
    for one, alpha in zip((open_, surer), alphas, strict=True):
        reach = t_quantile(1 - alpha / 4, 4) / t_quantile(1 - alpha / 2, 4)
        alone, wide = (np.log(span.high / span.estimate) for span in (one.ratio, one.family_ratio))
        assert wide == pytest.approx(reach * alone)
        assert (one.family_ratio.low > 1.02) == (one.verdict == "slower")


DIED = verdict("INVALID", "failed-requests", "9 of 32", "1%", "")
BUSY = verdict("INVALID", "client-busy", "99%", "90%", "")


def struck(made, *repeats, validity=DIED):
    return [changed(one, validity=validity) if one.repeat in repeats else one for one in made]


def test_runs_that_failed_speak_against_their_engine():
    """Audit 15: two of five failed, the rest 20% faster, and the word was faster."""
    a, b = struck(cells("a", 80), 1, 3), cells("b", 100)
    found = compare([*a, *b], ONE)
    one = only(found)
    assert (one.verdict, one.runs) == ("not comparable", (3, 3))
    assert one.failed == (2, 0)
    assert one.why == "a: 2 of 5 failed: its remaining runs would flatter it"
    assert found.ranking == {"ttft_ms.p50": "b ∦ a (2 of 5 failed)"}
    assert judged(a, cells("b", 80)).verdict == "not comparable"


def test_who_is_slower_even_in_what_is_left_is_slower():
    found = compare([*struck(cells("a", 120), 1), *cells("b", 100)], ONE)
    assert only(found).verdict == "slower"
    assert only(found).why.endswith("; a: 1 of 5 failed")
    assert found.ranking == {"ttft_ms.p50": "b > a (1 of 5 failed)"}


def test_an_engine_that_always_failed_stands_at_the_end_of_the_line():
    measured = [*struck(cells("a", 1), 0, 1, 2, 3, 4), *cells("b", 100), *cells("c", 130)]
    found = compare(measured, ONE)
    assert found.ranking == {"ttft_ms.p50": "b >> c ∦ a (5 of 5 failed)"}
    why = next(one.why for one in found.comparison if one.a == "a")
    assert why == "a: 5 of 5 failed; 0 and 5 runs, 3 are needed"


def test_what_the_client_spoiled_is_no_evidence():
    one = judged(struck(cells("a", 80), 1, 3, validity=BUSY), cells("b", 100))
    assert (one.verdict, one.failed) == ("faster", (0, 0))


def test_a_percentile_that_failures_made_infinite_is_a_failure_in_it():
    rules = Rules(primary="ttft_ms.p99", metrics=("ttft_ms.p99", "ttft_ms.p50"))
    reason = "3 of 400 requests never got there"
    a, b = ([changed(made, ttft_ms={"p50": 1, "p99": made.ttft_ms.p50}) for made in cells(*given)]
            for given in (("a", 80), ("b", 100)))  # fmt: skip
    a[2] = changed(a[2], ttft_ms={"p50": 1, "p99": None}, null_reasons={"ttft_ms.p99": reason})
    found = compare([*a, *b], rules).comparison
    assert [(one.verdict, one.failed) for one in found] == [("not comparable", (1, 0)), ("same", (0, 0))]


RATE = Rules(primary="output_tokens_per_s", metrics=("output_tokens_per_s", "ttft_ms.p50"))


def rated(label, per_s, **changes):
    return [
        changed(made, output_tokens_per_s=per_s + made.repeat * 0.01) for made in cells(label, 20, **changes)
    ]


def words_of(a, b, rules=RATE):
    return [(one.verdict, one.why) for one in compare([*a, *b], rules).comparison]


def test_a_rate_that_the_load_set_says_nothing_of_the_servers():
    """Audit 13: both served all, and one was called faster for the shorter drain."""
    calm = {"state": "under load", "load": {"kind": "rate", "value": 10}}
    (rate, why), (times, _) = words_of(rated("a", 499, **calm), rated("b", 382, **calm))
    assert (rate, why) == ("not comparable", "both served all that was sent: the load set the rate")
    assert times == "same"
    ((rate, why), _) = words_of(rated("a", 499, state=None), rated("b", 382, state="saturated"))
    assert why == "it is not known whether the load or the server set the rate"
    assert words_of(rated("a", 499), rated("b", 382))[0][0] == "faster"


def test_a_closed_loop_with_think_time_serves_less_where_answers_take_longer():
    """Its rates differ, so that no sentence may say that the load set them."""
    (rate, why), (times, _) = words_of(
        rated("a", 499, state="under load"), rated("b", 382, state="under load")
    )
    assert (rate, times) == ("not comparable", "same")
    assert why == "pauses between requests limit both rates: neither is what its server can do"


def test_old_open_loops_have_no_known_state():
    point = {"kind": "rate", "value": 10}
    ((rate, why), (times, _)) = words_of(rated("a", 499, load=point), rated("b", 382, load=point))
    assert (rate, why) == ("not comparable", "it is not known whether the load or the server set the rate")
    assert times == "same"


def test_times_of_a_server_that_fell_behind_are_of_the_length_of_the_test():
    unstable = {"state": "unstable", "state_why": "each second of sending adds 0.3 s to the answers"}
    (rate, _), (times, why) = words_of(rated("a", 499, **unstable), rated("b", 382, **unstable))
    assert (rate, times) == ("faster", "not comparable")
    assert why == "a did not keep up with the load: each second of sending adds 0.3 s to the answers"


def test_so_many_cells_that_are_not_steady_decide_nothing():
    drifting = verdict("SUSPECT", "not-steady", "E2E changes by +43% over it", "20%", "")
    found = words_of(struck(rated("a", 499), 1, 2, validity=drifting), rated("b", 382))
    assert found == [("not comparable", "not steady: a: E2E changes by +43% over it")] * 2


RAMP = verdict("SUSPECT", "ramp-kept", "9 measured requests were sent before the slots had begun", "10%", "")


def test_cells_whose_warm_up_is_in_their_figures_decide_nothing():
    """A start that is spread is the same for both, and still moved equal servers apart by 4 to 8%."""
    a, b = rated("a", 499), rated("b", 382)
    both = [struck(side, *range(5), validity=RAMP) for side in (a, b)]
    why = "ramp kept: a: 9 measured requests were sent before the slots had begun"
    assert words_of(*both) == [("not comparable", why)] * 2
    ((rate, said), _) = words_of(struck(a, 2, validity=RAMP), b)
    assert (rate, said.rpartition("; ")[2]) == ("faster", "a: 1 of 5 runs left out: ramp kept")


def test_a_run_that_is_not_steady_is_left_out_and_said():
    a = struck(cells("a", 100), 2, validity=UNSTEADY)
    found = compare([*a, *cells("b", 120)], ONE)
    one = only(found)
    assert (one.verdict, one.runs, one.left_out) == ("faster", (4, 4), ({"not steady": 1}, {}))
    assert one.why.endswith("; a: 1 of 5 runs left out: not steady")
    assert found.rankings[0].line == "a > b (a: 1 of 5 runs left out: not steady)"


def test_runs_are_left_out_for_each_of_several_reasons():
    words = left_out_words({"not steady": 1, "under load": 2}, 5)
    assert words == "3 of 5 runs left out: not steady, under load"


def test_a_run_that_is_left_out_was_measured():
    a = struck(struck(cells("a", 100), 2, validity=UNSTEADY), 4)
    (row,) = series(a, a[0].point, {})
    kept = row.evidence("ttft_ms.p50")
    assert list(kept.values("ttft_ms.p50").values()) == [a[0].ttft_ms.p50, a[1].ttft_ms.p50, a[3].ttft_ms.p50]
    assert (kept.measured, kept.failure_words("ttft_ms.p50")) == (5, "1 of 5 failed")


def test_so_many_runs_out_are_too_many():
    """Of five two are more than a third; of six they are not."""
    a, b = cells("a", 100), cells("b", 120)
    wordless = verdict("SUSPECT", "not-steady", "", "", "")
    refused = judged(struck(a, 1, 3, validity=wordless), b)
    assert (refused.verdict, refused.left_out) == ("not comparable", ({}, {}))
    noise = [*NOISE, 0.1]
    six = cells("a", 100, noise=noise, repeats=6), cells("b", 120, noise=noise, repeats=6)
    assert judged(struck(six[0], 1, 3, validity=UNSTEADY), six[1]).verdict == "faster"


def test_a_word_has_to_hold_with_the_runs_that_are_left_out():
    """What is left of a is faster; with its third run it is not: it may be steady only when fast."""
    a = struck(cells("a", 100, noise=[0.1, -0.1, 60, 0.2, -0.2]), 2, validity=UNSTEADY)
    b = cells("b", 108)
    one = judged(a, b)
    assert (one.verdict, one.runs) == ("not enough runs", (4, 4))
    assert one.ratio.low < 0.94 < 1.1 < one.ratio.high
    assert judged([made for made in a if made.repeat != 2], b).verdict == "faster"
    same = struck(cells("a", 100, noise=[0.1, -0.1, 60, 0.2, -0.2]), 2, validity=UNSTEADY)
    assert judged(same, cells("b", 100)).verdict == "not enough runs"


def test_too_few_steady_runs_are_not_enough_and_more_would_help():
    a, b = (cells(label, p50, repeats=3) for label, p50 in (("a", 100), ("b", 120)))
    one = judged(struck(a, 1, validity=UNSTEADY), b)
    assert (one.verdict, one.left_out) == ("not enough runs", ({"not steady": 1}, {}))
    assert one.why == "2 runs each, 3 are needed; a: 1 of 3 runs left out: not steady"


@pytest.mark.parametrize(
    ("state", "rate_out", "times_out"), [("under load", 1, 0), (None, 1, 0), ("unstable", 0, 1)]
)
def test_one_run_of_another_state_is_left_out_where_it_matters(state, rate_out, times_out):
    a = [changed(made, state=state) if made.repeat == 2 else made for made in rated("a", 499)]
    found = compare([*a, *rated("b", 382)], RATE).comparison
    assert [sum(one.left_out[0].values()) for one in found] == [rate_out, times_out]
    assert [one.verdict for one in found] == ["faster", "same"]


def test_pooled_requests_of_a_run_that_is_not_steady_are_left_out():
    random = np.random.default_rng(6)
    made = [changed(one, ttft_ms={"p99": None}) for one in [*cells("a", 100), *cells("b", 100)]]
    made = [changed(one, validity=UNSTEADY) if one.cell == made[1].cell else one for one in made]
    samples = {one.cell: {"ttft_ms": np.sort(np.exp(random.normal(4, 0.2, 100)))} for one in made}
    rules = Rules(primary="ttft_ms.p99", metrics=("ttft_ms.p99",))
    (one,) = compare(made, rules, samples).comparison
    assert (one.method, one.runs, one.left_out) == ("pooled", (4, 4), ({"not steady": 1}, {}))


def test_unlike_windows_are_not_compared_in_rates():
    (rate, why), (times, _) = words_of(
        rated("a", 499, window_kind="steady"), rated("b", 382, window_kind="whole")
    )
    assert (rate, times) == ("not comparable", "same")
    assert why.startswith("measured over unlike windows")


def test_one_run_has_an_estimate_and_no_interval():
    (first, *_) = compare(cells("a", 100, repeats=1), ONE).estimates
    assert (first.metric, first.runs) == ("ttft_ms.mean", 1)
    assert first.interval == (None, pytest.approx(100.2), None)


def test_an_estimate_of_ratios_is_a_geometric_mean():
    made = cells("a", 100, noise=np.array([-50, 0, 300]), repeats=3)
    estimates = {one.metric: one for one in compare(made, ONE).estimates}
    assert estimates["ttft_ms.p50"].interval[1] == pytest.approx((50 * 100 * 400) ** (1 / 3))
    zero = [changed(one, ttft_ms={"p50": value}) for one, value in zip(made, (0, 100, 200), strict=True)]
    estimates = {one.metric: one for one in compare(zero, ONE).estimates}
    assert estimates["ttft_ms.p50"].interval[1] == pytest.approx(100)


def test_what_can_be_detected_grows_with_the_floor():
    a, b = cells("a", 110), cells("b", 100, noise=-NOISE)
    small, large = (judged(a, b, replace(ONE, floor=floor)).smallest_detectable for floor in (0.02, 0.2))
    assert small > 0.02
    assert (1 + large) / (1 + small) == pytest.approx(1.2 / 1.02)
    # t of 4 degrees of freedom at 97.5% and at 80%, and by how much the spread of five is too small.
    error = np.log((1 + NOISE / 100) / (1 - NOISE / 100)).std(ddof=1) / 5**0.5
    assert small == pytest.approx(1.02 * np.exp((2.7764 + 0.9410) * error / 0.9400) - 1, rel=1e-4)


def test_more_comparisons_ask_for_more_runs():
    a, b = cells("a", 103, noise=8 * NOISE), cells("b", 100, noise=-8 * NOISE)
    names = ("ttft_ms.mean", "ttft_ms.p50", "tpot_ms.p50", "e2e_ms.p50")
    several = Rules(primary="itl_ms.p50", metrics=names)

    def advised(rules):
        (one,) = [one for one in compare([*a, *b], rules).comparison if one.metric == "ttft_ms.p50"]
        return int(re.search(r"about (\d+) runs", one.why)[1])

    ratios = np.log(1.03 * (1 + 8 * NOISE / 100) / (1 - 8 * NOISE / 100))
    room = np.log(1.05) - ratios.mean()

    def needed(alpha):
        errors = {runs: ratios.std(ddof=1) / runs**0.5 for runs in range(6, 51)}
        return next(
            runs for runs, error in errors.items() if t_quantile(1 - alpha / 2, runs - 1) * error < room
        )

    assert (advised(ONE), advised(several)) == (needed(0.05), needed(0.05 / 4))
    assert needed(0.05) < needed(0.05 / 4)


def test_nothing_measured_is_nothing_to_compare():
    found = compare([], ONE)
    assert (found.comparison, found.ranking, found.rankings) == ((), {}, ())


def pooled_p99(a_factor, count=70):
    """Five runs of 70 requests: none has a p99, all together have."""
    random = np.random.default_rng(5)
    rules = Rules(primary="ttft_ms.p99", metrics=("ttft_ms.p99",))
    measured, samples = [], {}
    for label, factor in (("a", a_factor), ("b", 1.0)):
        for made in cells(label, 100):
            measured.append(changed(made, ttft_ms={"p99": None}))
            samples[made.cell] = np.sort(factor * np.exp(random.normal(4, 0.2, count)))
    return compare(measured, rules, {name: {"ttft_ms": values} for name, values in samples.items()})


def test_a_percentile_that_no_run_has_is_taken_of_all_their_requests():
    found = pooled_p99(1.5)
    one = only(found)
    assert (one.verdict, one.method, one.runs) == ("slower", "pooled", (5, 5))
    assert one.ratio.low < 1.5 < one.ratio.high
    assert one.difference is None
    assert one.why.endswith("over 5 pairs of runs, requests pooled, beyond the floor of 2%")
    estimate = next(made for made in found.estimates if made.metric == "ttft_ms.p99")
    assert estimate.method == "pooled"
    assert estimate.interval[0] < 1.5 * np.exp(4 + 2.326 * 0.2) < estimate.interval[2]


def test_a_rate_that_the_load_set_is_the_least_that_the_server_can_do():
    """A server that idles and still does more is faster; none of its runs is left out for it."""
    idle, busy = rated("a", 499, state="under load"), rated("b", 382, state="saturated")
    for a, b, word in ((idle, busy, "faster"), (busy, idle, "slower")):
        ((rate, why), _) = words_of(a, b)
        assert rate == word
        assert why.endswith("; a served all that was sent and may do more")


@pytest.mark.parametrize("per_s", [300, 382])
def test_what_a_server_could_do_more_is_not_known_where_it_does_less_or_the_same(per_s):
    idle, busy = rated("a", per_s, state="under load"), rated("b", 382, state="saturated")
    reason = "a served all that was sent: what more it can do is not known"
    for a, b in ((idle, busy), (busy, idle)):
        assert words_of(a, b)[0] == ("not comparable", reason)


def test_too_few_requests_in_all_runs_have_none():
    one = only(pooled_p99(1.5, count=50))
    assert (one.verdict, one.ratio) == ("not enough runs", None)


def test_two_servers_that_serve_all_of_an_open_loop_from_records_to_words(tmp_path):
    """Audit 13, through the whole of a run folder: 499 against 382 tokens/s, and `>>` in the rank line."""
    engines = (
        Engine("quick", "Quick", 160, 80, crowd=0.0),
        Engine("patient", "Patient", 160, 400, crowd=0.0),
    )
    shape = Shape(engines, concurrency=(), rates=(10,), repeats=3, requests=300, output_tokens=12)
    made = make_run(tmp_path, shape).read_summary()
    assert {cell.state for cell in made.cells} == {"under load"}
    found = {one.metric: one for one in made.comparison}
    assert found["output_tokens_per_s"].verdict == "not comparable"
    assert found["output_tokens_per_s"].why.startswith("both served all that was sent")
    assert found["tpot_ms.p50"].verdict == "faster"
    assert "output_tokens_per_s" not in made.ranking
    printed = table.terminal(made, 100, color=False)
    assert "TPOT" in printed
    assert "Output" not in "".join(line for line in printed.splitlines() if ">>" in line)


def test_what_a_pair_lacks_is_told_apart_from_its_figures():
    zero = judged(cells("a", 0.0), cells("b", 100))
    assert (zero.verdict, zero.why, zero.runs_needed) == ("not enough runs", zero.lacks, None)
    assert zero.lacks == "a value is not above 0: there is no ratio"
    few = judged(cells("a", 900, repeats=2), cells("b", 100, repeats=2))  # however far apart
    assert (few.verdict, few.ratio, few.p_holm) == ("not enough runs", None, None)
    assert (few.why, few.lacks, few.runs_needed) == (few.lacks, "2 runs each, 3 are needed", 3)
    wide = judged(cells("a", 103, noise=20 * NOISE), cells("b", 100, noise=-20 * NOISE))
    assert wide.verdict == "not enough runs"
    assert wide.ratio.low < 1 < wide.ratio.high
    assert wide.why.endswith(f"over 5 pairs of runs: {wide.lacks}")
    assert wide.lacks == f"neither beyond 2% nor within 5%; about {wide.runs_needed} runs would decide"
    assert judged(cells("a", 110), cells("b", 100)).lacks == ""


def test_a_percentile_of_all_requests_that_is_zero_has_no_ratio():
    """Two of a hundred are above 0 in each of five runs: p95 of all 500 is 0."""
    rules = Rules(primary="ttft_ms.p95", metrics=("ttft_ms.p95",))
    measured = [changed(one, ttft_ms={"p95": None}) for label in "ab" for one in cells(label, 100)]
    values = np.array([0.0] * 98 + [1.0, 2.0])
    (one,) = compare(measured, rules, {made.cell: {"ttft_ms": values} for made in measured}).comparison
    assert (one.verdict, one.runs, one.method, one.ratio) == ("not enough runs", (0, 0), "runs", None)
    assert one.why == "0 runs each, 3 are needed"
