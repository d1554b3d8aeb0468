"""Names of load points, and what the head of a run says."""

from types import SimpleNamespace

import pytest

from harness.model import HostFacts, Lengths, LoadPoint, WorkloadCard
from harness.report.findings.manifest_lines import machine
from harness.report.findings.sentences import load_words
from harness.report.html.page import page
from harness.report.html.source import Source
from harness.report.text.screen import screen
from harness.report.text.table import markdown
from harness.report.view import asked_words, groups, leading, point_words
from tests.factories.documents import made
from tests.factories.summaries import cell, summary


@pytest.mark.parametrize(
    ("kind", "value", "heading", "head"),
    [
        ("concurrency", 2048, "closed loop, concurrency 2048", "2048 users"),
        ("rate", 100.25, "open loop, 100.25 requests/s", "100.25 req/s"),
        ("rate", 100.4, "open loop, 100.4 requests/s", "100.4 req/s"),
        ("rate", 1234567.25, "open loop, 1234567.25 requests/s", "1234567.25 req/s"),
        ("rate", 5.0, "open loop, 5 requests/s", "5 req/s"),
        ("working-set", 0.5, "working set of 0.5 times the KV cache", "0.5× KV"),
        ("trace", 1.25, "trace replay, 1.25 times as fast", "1.25× pace"),
    ],
)
def test_a_load_is_named_by_the_value_that_was_asked_for(kind, value, heading, head):
    point = LoadPoint(kind, value)
    assert (point_words(point), load_words(point)) == (heading, head)


def test_loads_that_differ_in_the_seventh_digit_have_names_of_their_own():
    assert [LoadPoint("rate", value).label for value in (1000.25, 1000.254)] == ["r1000.25", "r1000.254"]


def test_loads_that_were_not_repeated_alike_have_a_range_of_repeats():
    """A capacity search repeats only the loads that decide: "2 repeats each" was said of a load with one."""
    least = {"kind": "concurrency", "value": 1}
    cells = [cell(name, repeat=repeat) for name in "ab" for repeat in (0, 1)]
    found = screen(summary(*cells, *(cell(name, load=least) for name in "ab")), 80, color=False)
    assert found.startswith("shared-prefix: a and b, 1 to 2 repeats each; prompts of 544 tokens on average\n")
    assert "No verdict: 1 to 2 repeats per backend; " in found
    assert "a and b, 2 repeats each" in screen(summary(*cells), 80, color=False)


def test_cells_are_grouped_in_one_pass():
    """A pass for each load and backend takes the square of the time in a run of many."""
    passes = []

    class Cells(tuple):
        def __iter__(self):
            passes.append(self)
            return super().__iter__()

    points = [{"kind": "concurrency", "value": value} for value in (4, 1, 2)]
    cells = Cells(cell(name, load, repeat=repeat) for repeat in (0, 1) for load in points for name in "ba")
    found = groups(
        SimpleNamespace(cells=cells, estimates=(), verdict_rules=SimpleNamespace(pairing="starts"))
    )
    assert [group.point.value for group in found] == [1, 2, 4]
    assert [[(row.label, len(row.cells)) for row in group.rows] for group in found] == [
        [("b", 2), ("a", 2)]
    ] * 3
    assert len(passes) == 1


def searched(label, value, kind="rate"):
    return {"label": label, "kind": kind, "value": value, "kept_by_search": [value], "tested": []}


@pytest.mark.parametrize(
    ("capacity", "first"),
    [
        ([], [8]),
        ([searched("a", 4.5)], [4]),
        ([searched("a", 4.0), searched("b", 3.0)], [2, 4]),
        ([searched("a", 4.0), searched("b", None)], [4]),
        ([searched("a", 0.5)], [8]),
        ([searched("a", 4.0, kind="concurrency")], [8]),
    ],
)
def test_the_load_that_a_search_found_to_be_carried_comes_first(capacity, first):
    """The highest one misses the limits, or the search would go on. `b` was not tried at 3."""
    tried = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 4), ("a", 8)]
    cells = [cell(label, {"kind": "rate", "value": value}) for label, value in tried]
    found = summary(*cells, capacity=capacity)
    assert [group.point.value for group in leading(found, groups(found))] == first


def test_of_two_loads_both_come_first():
    found = summary(*(cell("a", {"kind": "rate", "value": value}) for value in (1, 2)))
    assert leading(found, groups(found)) == groups(found)


def test_the_head_says_what_was_asked():
    """TTFT of 500 tokens and of 8,000 are other figures: pages were compared that said neither."""

    def asked(label, prompt, answer, **changes):
        conditions = {"prompt_tokens": {"mean": 1.0}, "output_tokens_mean": answer}  # the mean of first turns
        rates = {"input_tokens_per_s": prompt and 2 * prompt, "requests_per_s": 2.0}
        return cell(label, conditions=conditions, **rates, **changes)

    invalid = {"verdict": "INVALID", "reasons": []}
    cells = [asked("a", 8123.4, 62.2), asked("b", 8123.4, 63.0), asked("b", 1.0, 1.0, validity=invalid)]
    found = summary(*cells)
    words = "prompts of 8,123 tokens on average, answers of 62 to 63 tokens on average"
    assert asked_words(found) == words
    assert words in " ".join(screen(found, 80, color=False).split())
    assert words in markdown(found)
    assert words in page(Source(found, None, {}, (), (), {}, {}, ()))
    assert asked_words(summary(asked("vectors", 512.0, None))) == "prompts of 512 tokens on average"
    assert asked_words(summary(asked("recordings", None, None))) == ""

    def card(least, most):
        prompts, answers = made(Lengths, min=least, max=most), made(Lengths, min=32, max=32)
        return {"c1": made(WorkloadCard, input_tokens=prompts, output_tokens=answers)}

    turns = (asked("a", 595.2, 32.0), asked("a", 595.4, 32.0, repeat=1), asked("b", 596.0, 32.0))
    questions = summary(*turns, workload_card=card(544, 608))
    assert asked_words(questions) == "prompts of 595 tokens on average, answers of 32 tokens"
    assert (
        asked_words(summary(*turns, workload_card=card(544, 544)))
        == "prompts of 595 tokens, answers of 32 tokens"
    )
    early = (asked("a", 595.2, 32.0), asked("mlx-lm", 595.2, 27.4))  # of 32 each
    assert asked_words(summary(*early, workload_card=card(544, 544))).endswith(
        "answers of 27 to 32 tokens on average"
    )


def test_a_box_of_gpus_is_not_taken_for_those_that_an_engine_used():
    host = made(HostFacts, gpus=["H100"] * 8)

    def used(*counts, seen=True):
        gpus = [{"engine_gpus": list(range(count)), "seen_using_them": seen} for count in counts]
        return machine(host, summary(*(cell(str(at), gpu=gpu) for at, gpu in enumerate(gpus))))

    assert used(1, 1) == "8× H100, each engine on 1"
    assert used(1, 4, 2) == "8× H100, each engine on 1 to 4"
    assert used(8, 8) == "8× H100"
    assert used(1, seen=False) == "8× H100", "whose they were is not known"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"launch": "process"}, "EPYC"),
        ({"launch": "attach"}, "load from EPYC"),
        ({"launch": "attach", "server": {"cpu_cores": 0.5}}, "EPYC"),
        ({"launch": "attach", "server": {"running": None}}, "load from EPYC"),
        ({"launch": "attach", "gpu": {"engine_gpus": [0]}}, "EPYC"),
    ],
)
def test_the_machine_of_the_load_is_not_taken_for_that_of_a_server_elsewhere(changes, words):
    host = made(HostFacts, cpu="EPYC")
    assert machine(host, summary(cell("vllm", **changes))) == words
    assert machine(None, summary(cell("vllm", **changes))) == ""
