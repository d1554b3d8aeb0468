"""The report as a browser shows it: light, dark, on a phone, without a script, with hostile text."""

import pytest
from chromium import Page
from report_runs import EIGHT, TWO, Engine, Shape, make_run

from harness.report import build

EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
COMPLAINTS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")

VISIBLE = "[...document.querySelectorAll({selector!r})].filter(e => e.getClientRects().length).length"


@pytest.fixture(scope="module")
def page():
    with Page() as opened:
        yield opened


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = make_run(
        tmp_path_factory.mktemp("browser"), Shape(EIGHT, concurrency=(1, 8), repeats=2, requests=12)
    )
    build(folder)
    return folder.path / "report.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    engine = Engine(
        "x" + EVIL.replace("/", "|"), title=EVIL, version=EVIL, track=EVIL, text=EVIL, failing=(5,)
    )
    folder = make_run(tmp_path_factory.mktemp("hostile"), Shape((engine, TWO[0]), (2,), requests=8))
    build(folder)
    return folder.path / "report.html"


def visible(page, selector):
    return page.evaluate(VISIBLE.format(selector=selector))


def complaints(page):
    return [event for method in COMPLAINTS for event in page.said(method)]


def requests(page):
    return [event["request"]["url"] for event in page.said("Network.requestWillBeSent")]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 375])
def test_it_loads_alone_and_without_complaint(page, report, width, dark):
    page.look(width, dark=dark)
    page.open(report)
    assert requests(page) == [report.as_uri()]
    assert complaints(page) == []
    assert visible(page, "figure svg") > 8
    # Wide tables and pictures scroll in their own boxes, never the page.
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_dark_and_light_are_readable(page, report):
    colours = {}
    for dark in (False, True):
        page.look(1200, dark=dark)
        page.open(report)
        colours[dark] = [
            page.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{name}")
            for selector, name in (
                ("body", "color"),
                ("body", "backgroundColor"),
                ("figure svg text", "fill"),
            )
        ]
    for ink, paper, drawn in colours.values():
        assert ink == drawn
        assert abs(brightness(ink) - brightness(paper)) > 180
    assert colours[False][1] != colours[True][1]


def brightness(colour):
    return sum(int(part) for part in colour.strip("rgb()").split(",")) / 3


def test_a_backend_can_be_hidden_and_shown_again(page, report):
    page.look(1200)
    page.open(report)
    rows, curves = "tbody tr[data-series='2']", "figure svg g[data-series='2']"
    before = visible(page, rows), visible(page, curves)
    assert min(before) > 0
    others = visible(page, "[data-series='1']")
    click = "document.querySelector('#show input[value=\"2\"]').click()"
    page.evaluate(click)
    assert (visible(page, rows), visible(page, curves)) == (0, 0)
    assert visible(page, "[data-series='1']") == others
    page.evaluate(click)
    assert (visible(page, rows), visible(page, curves)) == before
    assert complaints(page) == []


def test_it_is_whole_without_a_script(page, report):
    page.look(1200, script=False)
    page.open(report)
    shown = page.call("DOM.getDocument", depth=1)["root"]["nodeId"]

    def query(selector):
        return page.call("DOM.querySelectorAll", nodeId=shown, selector=selector)["nodeIds"]

    assert query("#show[hidden]")
    assert not query("[data-off]")
    assert len(query("table tbody tr")) > 20
    page.look(1200)


def test_the_keyboard_reaches_everything_and_shows_where_it_is(page, report):
    page.look(1200)
    page.open(report)
    page.press_tab()
    assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    reached = set()
    for _ in range(40):
        page.press_tab()
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"A", "INPUT", "DIV"} <= reached


def test_hostile_text_is_inert(page, hostile):
    page.look(1200)
    page.open(hostile)
    assert page.evaluate("document.title").startswith("shared-prefix: x<script>")
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0
    assert EVIL in page.evaluate("document.querySelector('blockquote').textContent")
    assert requests(page) == [hostile.as_uri()]
    assert complaints(page) == []


def test_markup_that_slipped_in_could_still_not_run(page, report, tmp_path):
    """The page's own policy, with the escaping taken out of the way."""
    broken = tmp_path / "broken.html"
    broken.write_text(
        report.read_text(encoding="utf-8").replace("</main>", f"{EVIL}</main>"), encoding="utf-8"
    )
    page.look(1200)
    page.open(broken)
    assert page.evaluate("document.title").startswith("shared-prefix")
    assert page.evaluate("document.scripts.length") == 2
