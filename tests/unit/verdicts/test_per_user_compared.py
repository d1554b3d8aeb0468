"""Output tokens/s at equal speed per user, of a run against a baseline."""

import pytest

from harness.report.findings.against import answers
from harness.verdicts.baseline import compare_runs
from tests.factories.documents import changed
from tests.unit.verdicts.test_baseline import run
from tests.unit.verdicts.test_per_user import NOISE, sweep, within

OLD = "in the run of 2026-11-20 08:00 base"
BASE = run("base", sweep("vllm", 0.375))


def sentences(new, old=BASE, **more):
    return [line for line in answers(compare_runs([old, new], **more)) if "speed per user" in line]


def test_a_server_that_carries_half_as_much_again_is_said_to_with_the_speeds():
    document = compare_runs([BASE, run("new", sweep("vllm", 0.25, noise=NOISE[::-1]))])
    (pair,) = document.pairs
    assert [level.tokens_per_s_per_user for level in pair.per_user] == [50, 60, 80]
    for level in pair.per_user:
        assert [figure.label for figure in level.figures] == ["new/vllm", "base/vllm"]
        (found,) = level.pairs
        assert (found.a, found.b, found.verdict) == ("new/vllm", "base/vllm", "more")
        assert found.ratio.low < 1.5 < found.ratio.high
    (sentence,) = [line for line in answers(document) if "speed per user" in line]
    head, _, speeds = sentence.partition(": ")
    assert head == f"At equal speed per user vllm carries more output tokens/s than {OLD}"
    assert [part.partition(" (")[0] for part in speeds.replace(" and ", ", ").split(", ")] == [
        f"1.5 times at {speed} tokens/s" for speed in (50, 60, 80)
    ]


def test_what_carries_less_stands_with_what_is_slower_and_fails_no_gate():
    """Alone a request is faster; each further one costs more than twice as much."""
    document = compare_runs([run("base", sweep("vllm", 0.25)), run("new", sweep("vllm", 0.6, alone_ms=8))])
    found = answers(document)
    (sentence,) = [line for line in found if "speed per user" in line]
    assert sentence.startswith(f"At equal speed per user vllm carries fewer output tokens/s than {OLD}: 0.5 ")
    (faster,) = [line for line in found if " is faster " in line]
    assert found.index(sentence) < found.index(faster)
    assert document.gate
    assert {row.metric for row in document.gate} <= {
        "ttft_ms.p50",
        "output_tokens_per_s",
        "tpot_ms.p50",
        "e2e_ms.p50",
        None,
    }


def test_a_difference_between_sessions_counts_beyond_five_percent():
    quiet = {"noise": (1.0, 1.0001, 0.9999), "slo": within(14)}
    old = sweep("vllm", 0.25, **quiet)
    new = [changed(each, output_tokens_per_s=1.04 * each.output_tokens_per_s) for each in old]
    (between,) = sentences(run("new", new), run("base", old))
    assert " the same output tokens/s as " in between
    (inside,) = sentences(run("new", new), run("base", old), floor=0.02)
    assert " more output tokens/s than " in inside


def test_the_speed_that_either_run_asks_for_is_the_one():
    limit = within(14)
    new = run("new", sweep("vllm", 0.25, slo=limit))
    (sentence,) = sentences(new)
    assert " times at 71.4 tokens/s (" in sentence
    assert " and " not in sentence


def test_nothing_is_said_of_a_pair_that_is_refused_of_a_search_or_of_few_repeats():
    faster = sweep("vllm", 0.25)
    other_model = run("new", faster, model={"name": "other"})
    assert sentences(other_model) == []
    assert len(sentences(other_model, force=True)) == 1
    assert sentences(run("new", faster, find_capacity=True)) == []
    assert sentences(run("new", sweep("vllm", 0.25, noise=NOISE[:2]))) == []


def test_two_backends_of_one_run_are_named():
    cells = [*sweep("vllm", 0.25), *sweep("sglang", 0.375)]
    document = compare_runs([run("base", cells)], "sglang")
    (sentence,) = [line for line in answers(document) if "speed per user" in line]
    assert sentence.startswith("At equal speed per user vllm carries more output tokens/s than sglang: 1.5 ")


@pytest.mark.parametrize(("backends", "decided"), [(1, True), (3, False)])
def test_the_verdicts_of_all_pairs_are_one_family(backends, decided):
    """Rates alone vary, by 1.4% around 1.1 times: p is 0.03 by itself."""
    rates, quiet = [1.1 * (1 + part) for part in (-0.014, 0.0, 0.014)], (1.0, 1.0, 1.0)
    names = [f"e{number}" for number in range(backends)]
    given = {"noise": quiet, "slo": within(14)}
    new = [
        changed(each, output_tokens_per_s=each.output_tokens_per_s * rates[each.repeat])
        for name in names
        for each in sweep(name, **given)
    ]
    document = compare_runs([run("base", *(sweep(name, **given) for name in names)), run("new", new)])
    found = [each for pair in document.pairs for level in pair.per_user for each in level.pairs]
    assert {each.verdict for each in found} == {"more" if decided else "undecided"}
    assert len(found) == backends
