"""Texts of a chart stay within it on a phone, whose fonts may be as wide as DejaVu Sans."""

import re

import pytest

from harness.report.charts import Chart, axes
from harness.report.html.svg import WIDTH, draw

# Of text of 13.5 px in a drawing of 420: the width of a digit, and where the upright title ends.
DIGIT, TITLE_END = 8.6, 17.5


def chart(**keys):
    usual = {"name": "a", "family": "load", "option": "a", "title": "a", "description": "a", "reading": "x"}
    return Chart(**{**usual, "lines": (), "x": axes.linear("load", 0, 10), **keys})


def ticks(html, axis):
    """Texts with their places, as drawn."""
    (group,) = re.findall(rf'<g class="ticks {axis}">(.*?)</g>', html)
    return [(text, float(x)) for x, text in re.findall(r'<text x="([\d.]+)"[^>]*>([^<]*)<', group)]


@pytest.mark.parametrize(
    "names", [["a"], ["vllm", "llamacpp@spec-ngram"], ["llamacpp==2026.9.11063"], ["n" * 40]]
)
def test_names_of_rows_begin_within_the_drawing(names):
    found = ticks(draw(chart(y=axes.rows(names), sideways=True)), "y")
    assert len(found) == len(names)
    for text, end in found:
        assert end - 8.2 * len(text) >= 0
        assert len(text) >= min(len(names[0]), 20)


@pytest.mark.parametrize("most", [10, 1000, 10_000, 100_000])
def test_figures_of_an_axis_keep_clear_of_its_title_and_of_the_edge(most):
    html = draw(chart(y=axes.linear("E2E p90, ms", 0, most), x=axes.linear("ms", 0, most)))
    for text, end in ticks(html, "y"):
        assert end - DIGIT * len(text) >= TITLE_END
    for text, middle in ticks(html, "x"):
        assert middle + DIGIT * len(text) / 2 <= WIDTH


def test_a_logarithmic_axis_is_named_so_on_both_sides():
    html = draw(chart(x=axes.loads("concurrency", [1, 8]), y=axes.fitted("TTFT, ms", [1.0, 900.0])))
    assert ">concurrency, log scale<" in html
    assert ">TTFT, ms, log scale<" in html
