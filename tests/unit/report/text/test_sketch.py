"""The bars below the table of `bench URL`."""

from harness.report.text.sketch import sketch
from tests.factories.summaries import cell, summary


def point(label, concurrency, **changes):
    return cell(label, {"kind": "concurrency", "value": concurrency}, **changes)


def bars(text):
    """By name, the length of each bar and the figure behind it, figure by figure."""
    return [
        [(line.rpartition("█")[0].count("█") + 1, line.split()[-1]) for line in part.splitlines()[1:]]
        for part in text.strip().split("\n\n")
    ]


def test_bars_are_as_long_as_their_figures_and_fit_the_width():
    made = summary(
        point("a", 1, p50=100.0, output_tokens_per_s=50.0),
        point("a", 4, p50=200.0, output_tokens_per_s=200.0),
    )
    text = sketch(made, 80)
    assert max(map(len, text.splitlines())) <= 80
    (slow, fast), (first, last) = bars(text)
    assert (slow[1], fast[1]) == ("50.0", "200")
    assert abs(fast[0] / slow[0] - 4) < 0.3
    assert (first[1], last[1]) == ("100", "200")
    assert abs(last[0] / first[0] - 2) < 0.1


def test_two_servers_are_named_on_every_bar_and_a_long_name_is_cut():
    long = "vllm_" + "x" * 60
    text = sketch(summary(point(long, 1), point("b", 1)), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("c1  b") == 2


def test_what_is_not_known_has_no_bar_and_nothing_known_no_chart():
    made = summary(point("a", 1, output_tokens_per_s=None), point("a", 4, output_tokens_per_s=9.0))
    assert any(line.split()[-1] == "n/a" and "█" not in line for line in sketch(made, 60).splitlines())
    assert "tokens/s" not in sketch(summary(point("a", 1, output_tokens_per_s=None)), 60)


def test_a_single_bar_compares_nothing():
    assert sketch(summary(cell("vllm")), 80) == ""
