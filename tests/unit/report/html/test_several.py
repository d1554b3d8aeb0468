"""The page of several runs."""

import pytest

from harness.errors import SpecError
from harness.report.html.several import page
from harness.verdicts.baseline import compare_runs
from tests.factories.documents import changed
from tests.unit.verdicts.test_baseline import load, run
from tests.unit.verdicts.test_pairs import cells


def drawn(name, day, *measured):
    return run(name, *measured, created_utc=f"2026-11-{day}T08:00:00+00:00")


@pytest.mark.parametrize(
    ("baseline", "words"), [(None, "that of 2026-11-20"), ("tgi", "tgi in that of 2026-11-20")]
)
def test_the_page_names_the_baseline_and_the_floor_between_runs(baseline, words):
    """A backend as the baseline has a pair within its run as well, with the floor of such a pair: 2%."""
    runs = [drawn(name, day, cells("vllm", 100), cells("tgi", 150)) for name, day in (("a", 20), ("b", 22))]
    text = page(runs, compare_runs(runs, baseline)).replace("\N{NO-BREAK SPACE}", " ")
    assert f"Each run is compared with {words}; changes of less than 5% do not count." in text


def test_what_an_older_run_lacks_is_not_counted_for_the_newest():
    whole = cells("vllm", 100), cells("tgi", 150)
    runs = [drawn("base", 20, *whole), drawn("older", 21, cells("vllm", 100)), drawn("newest", 22, *whole)]
    made = page(runs, compare_runs(runs))
    assert "measurement missing" not in made
    assert "missing: tgi: not in this run" in made
    fewer = [runs[0], runs[2], drawn("last", 23, cells("vllm", 100))]
    assert "<li>1 measurement missing.</li>" in page(fewer, compare_runs(fewer))


def test_what_is_not_comparable_has_its_reason_and_no_ratio():
    """Answers of other lengths: their whole times are not compared."""
    runs = [
        drawn(name, day, cells("vllm", p50, conditions={"output_tokens_mean": mean}, load=load(1)))
        for name, day, p50, mean in (("base", 20, 100, 32.0), ("new", 22, 200, 16.0))
    ]
    made = page(runs, compare_runs(runs)).replace("\N{NO-BREAK SPACE}", " ")
    refused = [part.partition("</td>")[0] for part in made.split(">not comparable</span>")[1:]]
    assert refused
    assert all("tokens per answer: 16.0 (the new one)" in part and "×" not in part for part in refused)
    assert "<td>n/a</td><td>n/a</td><td>not comparable</td>" in made


def test_a_change_is_in_per_cent_whether_it_is_decided_or_not():
    runs = [drawn("base", 20, cells("vllm", 100)), drawn("new", 22, cells("vllm", 110))]
    (decided, *_) = page(runs, compare_runs(runs)).split(">slower</span>")[1:]
    assert decided.partition("</td>")[0].startswith('<small class="range">+10.0% (')


def test_an_engine_that_changed_has_every_version_in_the_list_of_runs():
    first, *others = cells("vllm", 100)
    made = [
        changed(first, engine_version="0.32.0"),
        *(changed(one, engine_version="0.33.0") for one in others),
    ]
    other = cells("sglang", 100)  # of one version: the runs can be compared
    runs = [drawn("base", 20, [*made, *other]), drawn("newest", 21, [*cells("vllm", 100), *other])]
    assert "vllm 0.32.0, vllm 0.33.0, sglang b11549<" in page(runs, compare_runs(runs))


def test_runs_whose_only_backend_changed_cannot_be_compared():
    first, *others = cells("vllm", 100)
    made = [first, *(changed(one, engine_version="0.33.0") for one in others)]
    runs = [drawn("base", 20, made), drawn("newest", 21, cells("vllm", 100))]
    why = r"the baseline changed during the run: engine version b11549 \(r0\), 0\.33\.0"
    with pytest.raises(SpecError, match=why):
        page(runs, compare_runs(runs))


def test_each_pair_has_what_the_terminal_says_of_it():
    """The page had neither the reasons why nothing was decided nor the meaning of the mark."""
    runs = [drawn(name, day, cells("vllm", 100, repeats=2)) for name, day in (("a", 20), ("b", 22))]
    made = page(runs, compare_runs(runs)).replace("\N{NO-BREAK SPACE}", " ")
    verdicts = made.partition('id="verdicts"')[2].partition("</section>")[0]
    assert "<h3>vllm: b against a</h3>" in verdicts
    assert "<li>E2E p95: 0 runs each, 3 are needed</li>" in verdicts
    assert "* marks the primary metric." in verdicts
