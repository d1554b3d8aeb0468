"""What fits where: the first screen, the height of the page, no cut column, no text over another."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cli.main import main
from harness.report import build
from tests.browser.chromium import BOTTOM, OPEN_ALL
from tests.factories.runs import Engine, Shape, make_run

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"
SCREEN = (1280, 900)
MOST_HEIGHT = 6000
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
# Whatever reaches beyond the window, or beyond a box that scrolls and does not say so.
CUT = """
(() => {
  const found = [];
  const scrolls = (e) => /auto|scroll|hidden/.test(getComputedStyle(e).overflowX);
  const boxes = [...document.querySelectorAll('*')].filter(scrolls);
  for (const box of boxes) {
    if (!box.checkVisibility() || box.scrollWidth <= box.clientWidth + 1 || box.tagName === 'svg') continue;
    const sign = getComputedStyle(box, '::before');
    if (!box.hasAttribute('data-more') || !sign.content.includes('more to the right')) {
      found.push(['no sign', box.className || box.tagName, box.textContent.slice(0, 60)]);
    }
  }
  for (const part of document.querySelectorAll('body *')) {
    if (!part.checkVisibility() || part.closest('svg')) continue;
    if (boxes.some(box => box !== part && box.contains(part))) continue;
    const { right, width } = part.getBoundingClientRect();
    const name = [part.tagName, part.textContent.slice(0, 60)];
    if (width && right > innerWidth + 0.5) found.push(['beyond the window', ...name]);
  }
  return JSON.stringify(found);
})()
"""
# Texts of a chart that are cut at its edge, and pairs that cover each other.
OVERLAPS = """
(() => {
  const found = [];
  for (const svg of document.querySelectorAll('.plot svg')) {
    if (!svg.checkVisibility()) continue;
    const texts = [...svg.querySelectorAll('text')].filter(e => e.checkVisibility());
    const boxes = texts.map(e => e.getBoundingClientRect());
    const edge = svg.getBoundingClientRect();
    boxes.forEach((box, i) => {
      if (box.right > edge.right + 1 || box.left < edge.left - 1) found.push(['cut', texts[i].textContent]);
    });
    texts.forEach((one, i) => texts.slice(i + 1).forEach((other, j) => {
      const [a, b] = [boxes[i], boxes[i + 1 + j]];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      const pair = [svg.ariaLabel.slice(0, 60), one.textContent, other.textContent];
      if (wide > 1 && high > 3) found.push([...pair, Math.round(wide), Math.round(high)]);
    }));
  }
  return JSON.stringify(found);
})()
"""


@pytest.fixture(params=["two_engines", "nine_engines", "several_runs", "night"])
def any_report(request):
    return request.getfixturevalue(request.param)


def opened(page, report, width, **how):
    page.open(report, width, **how)
    page.evaluate(SETTLED)


def height(page):
    return page.evaluate("document.documentElement.scrollHeight")


@pytest.mark.parametrize("report", ["two_engines", "nine_engines"])
def test_the_open_page_is_short(page, report, request):
    opened(page, request.getfixturevalue(report), SCREEN[0])
    assert height(page) < MOST_HEIGHT


def test_the_first_screen_answers(page, two_engines):
    """Who is faster at eight users, how sure that is, what is wrong and what to run next."""
    opened(page, two_engines, SCREEN[0])
    assert page.evaluate(f"{BOTTOM}('#answer')") < SCREEN[1]
    said = page.evaluate("document.getElementById('answer').innerText")
    assert "Lowest median TTFT p50: vllm, 191 ms. Better than llamacpp by 5.34× (1.16 to 24.6)." in said
    assert "12 cells: 7 VALID and 5 SUSPECT" in said
    assert "--repeats auto --max-repeats 6" in said
    assert "This run: bench run --scenario shared-prefix" in said


def test_points_are_labelled_with_their_load(page, two_engines):
    opened(page, two_engines, SCREEN[0])
    labels = page.evaluate("[...document.querySelectorAll('.first .at')].map(e => e.textContent).join(' ')")
    assert sorted(labels.split()) == ["c4", "c4", "c8", "c8"]


@pytest.mark.parametrize("width", [1280, 860, 390])
def test_nothing_is_cut_without_a_sign(page, any_report, width):
    opened(page, any_report, width)
    assert json.loads(page.evaluate(CUT)) == []
    page.evaluate(OPEN_ALL)
    page.evaluate(SETTLED)
    assert json.loads(page.evaluate(CUT)) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.fixture(scope="module")
def long_names(tmp_path_factory):
    engines = Engine("sglang==0.5.16@spec-draft-deterministic"), Engine("x" * 70, prefill_ms=90)
    folder = make_run(tmp_path_factory.mktemp("names"), Shape(engines, (2,), requests=12))
    build(folder)
    return folder.path / "report.html"


@pytest.mark.parametrize("width", [1280, 1000, 860, 660, 390])
def test_bars_next_to_long_names_are_as_long_as_their_values(page, long_names, width):
    opened(page, long_names, width)
    shares = page.evaluate(
        "[...document.querySelectorAll('.standing .bar')].map(bar =>"
        " [parseFloat(bar.style.width), bar.getBoundingClientRect().width])"
    )
    assert shares[-1][0] == 100
    assert shares[-1][1] > 40
    for share, pixels in shares:
        assert pixels == pytest.approx(share / 100 * shares[-1][1], abs=1)
    assert json.loads(page.evaluate(CUT)) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


MARKED = (
    "[...document.querySelectorAll('[data-more]')].filter(e => e.checkVisibility())"
    ".map(e => e.getAttribute('aria-label'))"
)


@pytest.mark.parametrize("report", ["two_engines", "nine_engines"])
def test_no_open_table_scrolls_on_a_desk(page, report, request):
    opened(page, request.getfixturevalue(report), SCREEN[0])
    assert page.evaluate(MARKED) == []


def test_a_pair_of_versions_leaves_room_for_its_verdicts(page, tmp_path):
    """Its name is two labels long."""
    runs = ("20261125T120146Z-shared-prefix-a609e0", "20261125T120542Z-shared-prefix-7a5980")
    file = tmp_path / "page.html"
    main(["compare", *(str(PUBLISHED / run) for run in runs), "--html", str(file)])
    opened(page, file, 1000)
    assert page.evaluate(MARKED) == []


def test_the_sign_goes_where_the_end_is_seen(page, nine_engines):
    opened(page, nine_engines, 390)
    box = "document.querySelector('#figures .scroll')"
    assert page.evaluate(f"{box}.hasAttribute('data-more')")
    page.evaluate(f"{box}.scrollLeft = 1e6")
    page.evaluate(SETTLED)
    assert not page.evaluate(f"{box}.hasAttribute('data-more')")


@pytest.mark.parametrize("width", [1280, 390])
def test_no_text_of_a_chart_covers_another(page, any_report, width):
    opened(page, any_report, width)
    assert json.loads(page.evaluate(OVERLAPS)) == []


def test_numbers_below_an_axis_stand_apart_on_a_phone(page, nine_engines):
    """5000 and 10000 read as one number."""
    opened(page, nine_engines, 390)
    gaps = (
        "[...document.querySelectorAll('.plot .ticks.x')].filter(e => e.checkVisibility()).flatMap(axis => {"
        "const boxes = [...axis.children].map(e => e.getBoundingClientRect());"
        "return boxes.slice(1).map((box, index) => box.left - boxes[index].right)})"
    )
    assert min(page.evaluate(gaps)) > 1.5


def test_the_links_take_one_line_on_a_phone(page, nine_engines):
    opened(page, nine_engines, 390)
    assert page.evaluate("document.querySelector('nav').getBoundingClientRect().height") < 45


def test_timelines_share_their_axis(two_engines):
    """Next to each other, a second is as wide in the one as in the other."""
    ends = [
        _ticks(path.read_text("utf-8"))
        for path in sorted((two_engines.parent / "plots").glob("timeline-*.svg"))
    ]
    assert len(ends) == 2
    assert ends[0] == ends[1]
    assert len(ends[0]) > 3


def _ticks(svg):
    """What is written at the ticks of the time axis."""
    root = ElementTree.fromstring(svg)
    groups = [one for one in root.iter() if (one.get("id") or "").startswith("xtick_")]
    return [text.text for group in groups for text in group.iter() if text.tag.endswith("}text")]
