"""Each verdict of the page opens to what it was made from."""

from types import SimpleNamespace

from harness.report.html.source import Source
from harness.report.html.verdicts import evidence, pairs
from harness.verdicts import compare
from harness.verdicts.rules import Rules
from tests.factories.documents import changed
from tests.factories.summaries import cell, summary, verdict

RULES = Rules("ttft_ms.p50", ("ttft_ms.p50", "output_tokens_per_s"))
INVALID = verdict("INVALID", "engine-died", "1", "0", "")


def opened(*cells, **changes):
    made = summary(*cells, **changes, **compare(cells, RULES)._asdict())
    return "".join(evidence(SimpleNamespace(summary=made)))


def runs(label, times, **changes):
    return [
        cell(label, backend=label, p50=ms, repeat=repeat, started_unix_ns=repeat, state="saturated",
             workload_sha256=str(repeat), **changes)
        for repeat, ms in enumerate(times)
    ]  # fmt: skip


def interleaved(a, b):
    return [one for pair in zip(runs("a", a), runs("b", b), strict=True) for one in pair]


def test_values_pairs_interval_p_and_level_are_there():
    page = opened(*interleaved((10.0, 11.0, 10.5), (20.0, 22.5, 21.0)))
    assert page.count("<details>") == 3  # the primary metric, the others folded, one inside
    assert "a against b, TTFT p50, closed loop, concurrency 4: faster" in page
    for text in (
        "10.0",
        "22.5",
        "saturated",
        "0.500",
        "in pairs of the same requests",
        "after Holm, level 0.05",
    ):
        assert text in page, text
    assert "95% interval of this pair alone" in page
    assert "runs with a figure: 3 and 3" in page
    assert "unequal: nothing that is known" in page
    assert '<th scope="row">r0</th>' in page  # as warnings and cells number it


def test_what_was_unequal_and_what_failed_is_there():
    cells = interleaved((10.0, 11.0, 10.5, 10.0), (20.0, 22.0, 21.0, 21.0))
    cells[-2] = changed(cells[-2], validity=INVALID)
    found = [{"labels": ["a", "b"], "text": "weights: Q4 (a), bf16 (b)", "matters": True}]
    page = opened(*cells, unequal=found)
    assert "INVALID: engine-died" in page
    assert "failed by the engine&#x27;s doing: 1 and 0" in page
    assert "unequal: weights: Q4 (a), bf16 (b) (forbids a comparison)" in page


def test_a_difference_of_thousands_of_per_cent_and_one_verdict_are_written_out():
    made = summary(*interleaved((10.0, 90.0, 10.5), (20.0, 2.5, 21.0)))
    first, *_ = compare(made.cells, RULES).comparison
    found = [
        changed(first, smallest_detectable=328.94),
        changed(first, metric="output_tokens_per_s", primary=False),
    ]
    page = "".join(evidence(SimpleNamespace(summary=changed(made, comparison=found))))
    assert "smallest difference found in 4 of 5 such experiments: 32894%" in page
    assert "Evidence for the other metrics: 1 verdict<" in page


def test_a_ratio_that_is_not_nothing_never_reads_as_nothing():
    page = opened(*interleaved((0.4, 0.41, 0.4), (4000.0, 4100.0, 4000.0)))
    assert "ratio, first over second: 0.0001 (0.0001 to 0.0001)" in page
    assert "0.000<" not in page


def test_nothing_tested_is_nothing():
    assert opened(cell("a"), cell("b")) == ""


def test_without_runs_enough_for_any_pair_there_are_no_verdicts_to_open():
    few = interleaved((10.0, 11.0), (20.0, 22.5))
    found = summary(*few, **compare(few, RULES)._asdict())
    assert found.comparison
    assert pairs(Source(found, None, {}, (), (), {}, {}, ())) is None


def test_less_of_a_price_and_more_of_a_share_or_rate_are_not_called_faster():
    energy, valid, rate = "joules_per_output_token", "structured_valid_rate", "output_tokens_per_s"
    made = [
        changed(one, **{energy: times * (1 + one.repeat / 100), valid: 0.9 / times, rate: 60 / times**2})
        for label, times in (("a", 1), ("b", 2))
        for one in runs(label, (10.0, 11.0, 10.5))
    ]
    ordered = sorted(made, key=lambda one: (one.repeat, one.label))
    found = summary(*ordered, **compare(ordered, Rules(energy, (energy, valid, rate)))._asdict())
    page = pairs(Source(found, None, {}, (), (), {}, {}, ()))
    assert "how many times better the named backend is" in page
    for words in ("a 2× less", "a 2× more", "a 4× more"):
        assert f">{words}</span>" in page
    assert "× faster" not in page


def test_evidence_names_what_has_an_effect_on_its_metric_and_counts_the_rest():
    cells = interleaved((10.0, 11.0, 10.5), (20.0, 22.5, 21.0))
    found = [
        {"labels": ["a", "b", "c"], "text": "weights: Q4 (a, b), bf16 (c)", "matters": True},
        {"labels": ["a", "b"], "text": "block: 1 (a), 2 (b)", "matters": False},
        {"labels": ["a", "b"], "text": "usage: 9 (a), 8 (b)", "matters": True, "metrics": ["tpot_ms"]},
    ]
    page = opened(*cells, unequal=found)
    assert "weights: Q4 (a, b), bf16 (c) (forbids a comparison of those that differ)" in page
    assert "block:" not in page
    assert "usage:" not in page
    others = 'unequal without an effect on this verdict: 2 conditions, see <a href="#differences">'
    assert others in page
