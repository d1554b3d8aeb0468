"""The first sentences of a comparison with a baseline answer whether something is slower."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.model import Agreement, Interval
from harness.report.blocks.comparison import compared
from harness.report.findings.against import _by, answers, concluded, run_names
from harness.report.html.several import page
from harness.report.text.markdown_text import markdown
from harness.report.text.terminal_text import terminal
from harness.verdicts.baseline import compare_runs
from harness.verdicts.capacity import capacity
from harness.verdicts.gate import refused
from tests.factories.documents import changed, made
from tests.factories.summaries import summary
from tests.unit.verdicts.test_baseline import BASE, manifest, run
from tests.unit.verdicts.test_capacity_pairs import FAST
from tests.unit.verdicts.test_pairs import cells

OLD = "the run of 2026-11-20 08:00 "  # of one minute: with the end of the folder's name


def said(*new, **changes):
    return answers(compare_runs([BASE, run("new", *new)], **changes))


def test_what_is_slower_stands_first_with_how_much_and_how_sure():
    first, *others = said(cells("tgi", 150.1), cells("vllm", 112))
    assert first.startswith(f"vllm is slower than in {OLD}base: first token by 12% at 4 users (")
    assert others[0].startswith(
        f"tgi is not slower than in {OLD}base by more than 5%: first token at 4 users"
    )


def test_capacities_that_were_searched_for_stand_last():
    tried = [
        changed(one, load={"kind": "concurrency", "value": load})
        for load in (1, 2)
        for one in cells("vllm", 100)
    ]
    new = run("new", tried)
    searched = dataclasses.replace(new, summary=replace(new.summary, capacity=capacity(tried, 5)))
    *_, last = answers(compare_runs([BASE, searched]))
    assert last.startswith("Capacity in the run of 2026-11-20 08:00 new: vllm: ")
    assert "Capacity" not in " ".join(answers(compare_runs([BASE, new])))


def searched(name, *capacities, vllm=100):
    """A run of `vllm`, and what searches for the capacity of each backend found."""
    one = run(name, cells("vllm", vllm))
    return dataclasses.replace(one, summary=replace(one.summary, capacity=capacities))


def test_the_verdict_on_two_searches_is_on_their_capacities_and_on_no_load_that_both_tried():
    less = compare_runs(
        [searched("base", FAST), searched("new", changed(FAST, interval=(9, 10, 10.5)), vllm=150)]
    )
    first, *others = answers(less)
    assert first == f"vllm carries less than in {OLD}base: 0.667 times the load (0.562 to 0.75)."
    assert [other.partition(": ")[0] for other in others] == [
        "Capacity in the run of 2026-11-20 08:00 base",
        "Capacity in the run of 2026-11-20 08:00 new",
    ]
    assert [(row.kind, row.why) for row in less.gate] == [
        ("slower", "carries less within the limits: 0.667 times the load (0.562 to 0.75)")
    ]
    assert not refused(less)
    same = compare_runs([searched("base", FAST), searched("new", FAST)])
    assert answers(same)[0] == (
        f"Undecided whether vllm carries more or less than in {OLD}base: 1 times the load (0.875 to 1.14)."
    )
    assert not same.gate


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"searches": 1}, "1 search on one side, 3 are needed"),
        ({"interval": (None, None, None)}, "a search has no answer"),
    ],
)
def test_a_search_that_says_too_little_fails_a_gate(changes, why):
    """Whatever happened to the server would pass."""
    document = compare_runs([searched("base", FAST), searched("new", changed(FAST, **changes))])
    assert [(row.kind, row.why) for row in document.gate] == [("undecided", why)]


def test_two_searches_that_cannot_be_compared_fail_a_gate():
    other = compare_runs([searched("base", FAST), searched("new", changed(FAST, kind="concurrency"))])
    why = "one was searched by concurrency, the other by rate"
    assert answers(other)[0] == f"The capacities of vllm and vllm in {OLD}base are not comparable: {why}."
    assert refused(other)
    assert [row.kind for row in other.gate] == ["not compared"]
    assert compare_runs([searched("base", FAST), run("new", cells("vllm", 100))]).pairs[0].capacity is None


MORE_FAIL = "10 of 160 requests failed, 0 of 160 of the baseline, at loads that both carry"


@pytest.mark.parametrize(
    ("failed", "found", "rows"),
    [
        (2, FAST, [("failures", MORE_FAIL)]),
        (0, FAST, []),
        (2, changed(FAST, interval=(5, 6, 7)), []),  # at 4/s a burst is near what a server of 6/s carries
        (2, changed(FAST, interval=(4, 4, 5), kind="concurrency"), [("failures", MORE_FAIL)]),
    ],
)  # fmt: skip
def test_requests_that_fail_at_loads_that_both_searches_carry_fail_a_gate(failed, found, rows):
    """A limit that 5% may miss is kept where 3% fail at every load, and the capacity hardly falls."""
    base, new = searched("base", found), searched("new", found)
    answered = [
        changed(one, requests={"planned": 32, "sent": 32, "ok": 32 - failed, "failed": failed,
                               "dropped": 0, "warmup": 4, "outcomes": {"http_error": failed}})
        for one in new.cells
    ]  # fmt: skip
    new = dataclasses.replace(new, summary=replace(new.summary, cells=tuple(answered)))
    assert [(row.kind, row.why) for row in compare_runs([base, new]).gate] == rows


def test_requests_that_fail_at_a_load_that_one_search_alone_tried_are_not_compared():
    """Both carry 5 in flight, where some requests fail, and only the later search happened to probe it."""
    base, new = (searched(name, changed(FAST, kind="concurrency")) for name in ("base", "new"))
    higher = [
        changed(one, load={"kind": "concurrency", "value": 5},
                requests={"ok": 30, "failed": 2, "outcomes": {"http_error": 2}})
        for one in new.cells
    ]  # fmt: skip
    new = dataclasses.replace(new, summary=replace(new.summary, cells=(*new.cells, *higher)))
    assert not compare_runs([base, new]).gate


def test_one_request_that_fails_where_both_carry_the_load_decides_nothing():
    base, new = searched("base", FAST), searched("new", FAST)
    first = changed(new.cells[0], requests={"ok": 31, "failed": 1, "outcomes": {"http_error": 1}})
    new = dataclasses.replace(new, summary=replace(new.summary, cells=(first, *new.cells[1:])))
    (row,) = compare_runs([base, new]).gate
    assert row.kind == "undecided"
    assert row.why.startswith("1 of 160 requests failed, 0 of 160 of the baseline, at loads that both carry")


def asked(name, marks, label="vllm"):
    """A run whose backend answered with these marks under load."""
    conditions = {"unloaded": {"marks": "1" * 600}, "saturated": {"marks": marks}}
    agreement = made(Agreement, backends={label: conditions}, sha256="same")
    one = run(name, cells(label, 100))
    return dataclasses.replace(one, summary=summary(*one.cells, agreement=agreement))


LOSES = ("1" * 9 + "0") * 60


def test_no_sentence_has_what_a_name_of_a_foreign_run_hides():
    label = "v\x1b[31m\u202ellm"
    sentences = answers(compare_runs([asked("old", "1" * 600, label), asked("new", LOSES, label)]))
    assert "loses" in sentences[0]
    assert all(map(str.isprintable, sentences))


def test_a_loss_of_accuracy_stands_before_what_is_not_slower():
    runs = [asked("old", "1" * 600), asked("new", LOSES)]
    document = compare_runs(runs)
    first, second = answers(document)
    loss = "accuracy, under load: loses 4.8 to 17.6 points (20 lost, 0 gained of 200)"
    assert first == f"vllm against {OLD}old: {loss}."
    assert second.startswith("vllm is not slower")
    assert concluded(document).sentence.startswith(first)
    text = page(runs, document).replace("\N{NO-BREAK SPACE}", " ")
    assert f"<strong>{first}</strong>" in text
    below = text.partition("<h3>vllm: new against old</h3>")[2]
    assert f"<li>{loss}</li>" in below
    assert "accuracy, one at a time: as accurate: " in text
    assert answers(compare_runs(runs[::-1]))[0].startswith("vllm is not slower")  # a gain is none


def test_a_sentence_names_a_few_figures_the_primary_ones_first():
    loads = [{"kind": "concurrency", "value": users} for users in (1, 4, 16)]
    old, new = ([cells("vllm", p50, load=load) for load in loads] for p50 in (100, 112))
    (line,) = answers(compare_runs([run("base", *old), run("new", *new)]))
    assert ": first token by 12% at 1 user, 4 users and 16 users (12 to 12%), each further token " in line
    assert re.search(r" and \d+ more figures\.$", line), line


def test_loads_with_one_reason_share_it():
    """Of two single runs the sentence had the reason once for each load."""
    loads = [{"kind": "concurrency", "value": users} for users in (1, 8)]
    old, new = ([cells("vllm", p50, load=load)[:1] for load in loads] for p50 in (100, 112))
    (line,) = answers(compare_runs([run("base", *old), run("new", *new)]))
    assert line.endswith(": first token at 1 user and 8 users (1 run each, 3 are needed).")


def test_of_several_runs_each_sentence_names_its_own():
    later = replace(manifest(), created_utc="2026-11-22T08:00:00+00:00")
    second = dataclasses.replace(run("later", cells("vllm", 112)), manifest=later)
    first, last = answers(
        compare_runs([run("base", cells("vllm", 100)), run("new", cells("vllm", 100.1)), second])
    )
    assert first.startswith("vllm of 2026-11-22 08:00 is slower than in the run of 2026-11-20 08:00")
    assert last.startswith(
        "vllm of 2026-11-20 08:00 new is not slower than in the run of 2026-11-20 08:00 base"
    )


def test_the_ends_of_a_change_are_written_as_the_change_is():
    twice = compare_runs([run("base", cells("vllm", 100)), run("new", cells("vllm", 201))])
    (line,) = [line for line in answers(twice) if "first token" in line]
    assert re.search(r"first token by 2\.01× at 4 users \(\d\.\d+× to \d\.\d+×\)", line), line


def test_what_is_faster_says_so():
    (first, *_) = said(cells("tgi", 60), cells("vllm", 100))
    assert first.startswith("vllm is not slower")
    assert any(
        line.startswith(f"tgi is faster than in {OLD}base: first token by 60%")
        for line in said(cells("tgi", 60), cells("vllm", 100))
    )


def test_what_is_undecided_says_between_what_and_how_many_runs_would_decide():
    times = (96.0, 124.0, 104.0, 118.0, 108.0)
    wide = [changed(one, ttft_ms={"p50": ms}) for one, ms in zip(cells("vllm", 100), times, strict=True)]
    first = said(wide, cells("tgi", 150.1))[0]
    assert first.startswith(f"Undecided whether vllm is slower than in {OLD}base: first token at 4 users (")
    assert "% faster to " in first
    assert first.endswith(" more runs of each would decide).")


def blocks(name, p50, launch, seed):
    """Four starts of four blocks each, or twelve blocks of a server that runs."""
    count, each = (16, 4) if launch == "process" else (12, 1)
    noise = np.random.default_rng(seed).normal(0, 6, count)
    made = [
        changed(
            one,
            start_number=one.repeat // each if launch == "process" else 0,
            started_unix_ns=10**12 * one.repeat,
        )
        for one in cells("vllm", p50, noise=noise, repeats=count, launch=launch)
    ]
    found = run(name, made, pairing="blocks", blocks=each)
    how = "restart" if launch == "process" else "keep"
    entries = {label: replace(entry, between_repeats=how) for label, entry in found.manifest.backends.items()}
    return dataclasses.replace(found, manifest=replace(found.manifest, backends=entries))


@pytest.mark.parametrize(
    ("launch", "would"),
    [
        ("process", "4 more starts of each would decide"),
        ("attach", "12 blocks are worth 7.6 independent ones, 8 are needed"),
    ],
)
def test_what_would_decide_is_in_the_unit_of_the_interval(launch, would):
    """A start has four repeats here. Blocks that are too alike lack others, however many runs there are."""
    [answer] = answers(compare_runs([blocks("a", 100, launch, 1), blocks("b", 103, launch, 2)]))
    assert answer.endswith(f" slower; {would}).")


def test_too_few_runs_say_how_many_are_needed():
    first = said(cells("vllm", 100)[:2], cells("tgi", 150.1))[0]
    assert first.startswith("Undecided whether vllm is slower")
    assert "2 runs each, 3 are needed" in first


def test_what_differs_is_the_reason_that_nothing_is_compared():
    document = compare_runs([BASE, run("new", cells("vllm", 150), host__gpus=["A100"])])
    assert answers(document)[0] == (
        f"vllm cannot be compared with {OLD}base: GPUs H100 (baseline), A100 (new)."
    )


def test_backends_of_one_run_are_compared_by_their_names():
    assert answers(compare_runs([BASE]))[0].startswith(
        "tgi is slower than vllm: first token by 50% at 4 users"
    )


def test_runs_of_one_minute_whose_names_end_alike_have_their_whole_names():
    """As files of a client, `base_result.json` and `head_result.json`."""
    for first, second in (("base_result", "head_result"), ("base-result", "head-result"), ("out", "out (2)")):
        document = compare_runs([run(first, cells("vllm", 100)), run(second, cells("vllm", 100))])
        names = run_names(document.runs)
        assert list(names.values()) == [f"2026-11-20 08:00 {first}", f"2026-11-20 08:00 {second}"]


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.126, "13%"), (1.0031, "0.31%"), (1.997, "100%"), (2.0, "2×"), (1024.4, "1024×"), (0.953, "4.7%"),
     (0.51, "49%"), (0.25, "75%"), (0.003, "99.7%"), (0.00001, "99.999%")],
)  # fmt: skip
def test_a_difference_is_a_percentage_of_the_baseline_until_it_is_a_doubling(ratio, shown):
    assert _by(ratio) == shown


@pytest.mark.parametrize(("new", "verdict"), [(80, "slower"), (120, "faster")])
def test_a_rate_differs_in_the_sentence_by_as_much_as_in_the_table(new, verdict):
    """100 to 80 tokens/s is a loss of 20%, though 100 is 25% more than 80."""
    old, now = (
        [changed(one, output_tokens_per_s=rate + one.repeat * 0.01) for one in cells("vllm", 100)]
        for rate in (100, new)
    )
    document = compare_runs([run("base", old), run("new", now)])
    assert any(f" is {verdict} than " in line and "tokens/s by 20%" in line for line in answers(document))


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_terminal_page_and_document_begin_with_the_same_sentence(columns):
    document = compare_runs([BASE, run("new", cells("vllm", 112), cells("tgi", 60))])
    first = answers(document)[0]
    assert " ".join(terminal(compared(document), columns, color=False).split()).startswith(first)
    assert markdown(compared(document)).startswith(f"**{first}**")
    assert concluded(document).sentence.startswith(first)


@given(
    words=st.lists(st.sampled_from(("faster", "slower", "same", "not enough runs", "not comparable")),
                   min_size=2, max_size=2),
    ends=st.lists(st.floats(1.06, 50), min_size=3, max_size=3),
)  # fmt: skip
def test_the_sentences_say_what_the_verdicts_say(words, ends):
    """Of two backends in the primary metric: each is named once, in the sentence of its verdict."""
    document = compare_runs([BASE, run("new", cells("vllm", 112), cells("tgi", 60))])
    low, middle, high = sorted(ends)
    ratio = {"slower": Interval(low, middle, high), "faster": Interval(1 / high, 1 / middle, 1 / low),
             "not enough runs": Interval(1 / high, middle, high)}  # fmt: skip
    pairs = tuple(
        replace(pair, findings=tuple(
            replace(one, verdict=word, ratio=ratio.get(word), lacks="", runs_needed=None)
            for one in pair.findings if one.primary))
        for pair, word in zip(document.pairs, words, strict=True)
    )  # fmt: skip
    starts = {
        "slower": "{} is slower than",
        "faster": "{} is faster than",
        "same": "{} is not slower than",
        "not enough runs": "Undecided whether {} is slower than",
        "not comparable": "{} cannot be compared with",
    }
    lines = answers(replace(document, pairs=pairs, missing=()))
    expected = [starts[word].format(pair.a.label) for pair, word in zip(pairs, words, strict=True)]
    assert len(lines) == 2
    assert all(any(line.startswith(start) for line in lines) for start in expected)
    if "slower" in words:
        assert " is slower than" in lines[0]
        assert not lines[0].startswith("Undecided")
    assert "inf" not in " ".join(lines)


def test_a_share_or_a_price_is_better_or_worse_and_never_faster():
    rules = {
        "scenario__verdict": {"primary": "joules_per_output_token", "metrics": ["joules_per_output_token"]}
    }

    def measured(*joules):
        return [
            changed(one, joules_per_output_token=value)
            for one, value in zip(cells("vllm", 100), joules, strict=False)
        ]

    base = run("base", measured(1.0, 1.01, 1.02, 1.01, 1.0), **rules)
    worse = answers(compare_runs([base, run("new", measured(2.0, 2.02, 2.04, 2.02, 2.0), **rules)]))[0]
    assert worse.startswith(f"vllm is worse than in {OLD}base: energy of an output token by 2× at 4 users")
    open_ = answers(compare_runs([base, run("new", measured(0.9, 1.2, 1.0, 1.1, 0.95), **rules)]))[0]
    assert open_.startswith(f"Undecided whether vllm is worse than in {OLD}base")
    assert "% better to " in open_
    assert "% worse; " in open_
