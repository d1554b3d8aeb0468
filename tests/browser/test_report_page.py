"""The report as a browser shows it: light, dark, on a phone, without a script, with hostile text."""

import pytest

from harness.report import build
from harness.report.html import svg
from tests.browser.chromium import BOTTOM
from tests.factories.runs import EIGHT, TWO, Engine, Shape, make_run

EVIL = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
COMPLAINTS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")

VISIBLE = (
    "[...document.querySelectorAll({selector!r})]"
    ".filter(e => e.getClientRects().length && e.checkVisibility()).length"
)


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_loads_alone_and_without_complaint(page, report, width, dark):
    page.open(report, width, dark=dark)
    assert page.requested() == [report.as_uri()]
    assert complaints(page) == []
    # One next to the result, and one metric of each family, distributions at each load.
    assert visible(page, ".plot svg") == 5
    # Wide tables and pictures scroll in their own boxes, never the page or its links.
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("(nav => nav.scrollWidth - nav.clientWidth)(document.querySelector('nav'))") == 0


def test_dark_and_light_are_readable(page, report):
    colours = {}
    for dark in (False, True):
        page.open(report, 1200, dark=dark)
        colours[dark] = [
            page.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{name}")
            for selector, name in (
                ("body", "color"),
                ("body", "backgroundColor"),
                (".plot svg text[transform]", "fill"),
            )
        ]
    for ink, paper, drawn in colours.values():
        assert ink == drawn
        assert abs(brightness(ink) - brightness(paper)) > 180
    assert colours[False][1] != colours[True][1]


def brightness(colour):
    return sum(int(part) for part in colour.strip("rgb()").split(",")) / 3


def test_a_backend_can_be_hidden_and_shown_again(page, report):
    page.open(report, 1200)
    rows, curves = "tbody tr[data-series~='2']", ".plot g[data-series='2']"
    before = visible(page, rows), visible(page, curves)
    assert min(before) > 0
    others = visible(page, "[data-series='1']")
    assert visible(page, "tbody tr[data-series='1 2'], tbody tr[data-series='2 1']") == 0  # still folded
    click = "document.querySelector('#show input[value=\"2\"]').click()"
    page.evaluate(click)
    assert (visible(page, rows), visible(page, curves)) == (0, 0)
    assert visible(page, "[data-series='1']") == others
    page.evaluate(click)
    assert (visible(page, rows), visible(page, curves)) == before
    assert complaints(page) == []


CHART = "document.querySelector(\"[data-family='load'] figure:not([data-other]) .plot svg\")"
TOPS = f"""[...{CHART}.querySelectorAll('.mark')].filter(mark => !mark.closest('[data-off]'))
  .map(mark => Number(mark.getAttribute('transform').match(/,([-\\d.]+)/)[1]))"""
TICKS = f"[...{CHART}.querySelectorAll('.ticks.y text')].map(text => Number(text.textContent))"


def hide(page, *indices):
    for index in indices:
        page.evaluate(f"document.querySelector('#show input[value=\"{index}\"]').click()")


def test_hiding_a_backend_fits_the_axes_to_the_others(page, report):
    page.open(report, 1280)
    made, tops, ticks = page.evaluate(f"{CHART}.outerHTML"), page.evaluate(TOPS), page.evaluate(TICKS)
    series = page.evaluate(
        f"[...{CHART}.querySelectorAll('[data-points]')].map(line => [line.dataset.series,"
        " Math.min(...JSON.parse(line.dataset.points).map(point => point[2]))])"
    )
    lowest = max(series, key=lambda line: line[1])[0]
    others = [index for index, _top in series if index != lowest]
    hide(page, *others)
    assert min(page.evaluate(TOPS)) < 80 < max(tops)  # of 270: near the top
    assert max(page.evaluate(TICKS)) < max(ticks)
    hide(page, *others)
    assert page.evaluate(f"{CHART}.outerHTML") == made
    assert complaints(page) == []


X_ENDS = """[...document.querySelectorAll('.plot svg')].flatMap(svg =>
  [...svg.querySelectorAll('.ticks.x text')].map(text =>
    [text.textContent, svg.viewBox.baseVal.width - Number(text.getAttribute('x'))]))"""


def test_the_last_tick_of_a_fitted_axis_stays_in_the_picture(page, nine_engines):
    """60000, where the font of a phone is wide."""
    page.open(nine_engines, 390)
    hide(page, *range(8))
    ends = page.evaluate(X_ENDS)
    assert "60000" in [text for text, _room in ends]
    assert all(room >= svg.WIDE * len(text) / 2 for text, room in ends)


def test_a_value_is_read_where_it_lies_after_the_axes_were_fitted(page, report):
    page.open(report, 1280)
    hide(page, *range(1, 8))
    place = page.evaluate(
        f"(svg => {{ svg.scrollIntoView({{block: 'center'}}); const b = svg.querySelector("
        f"'[data-series=\"0\"] .mark').getBoundingClientRect(); return [b.x + b.width / 2, b.y] }})({CHART})"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
    assert texts(page, "[data-family='load'] .read")[0].startswith(f"at 1{EIGHT[0].label}")
    assert complaints(page) == []


def test_the_front_is_of_the_backends_that_are_shown(page, report):
    page.open(report, 1280)
    front = "document.querySelector(\"[data-family='trade-off'] figure:not([data-other]) .front\")"
    made = page.evaluate(f"{front}.getAttribute('d')")
    hide(page, *range(1, 8))
    marks = (
        f"[...{front}.parentElement.querySelectorAll('[data-series=\"0\"] .mark')]"
        ".map(mark => mark.getAttribute('transform').slice(10, -1))"
    )
    points = page.evaluate(f"{front}.getAttribute('d')").lstrip("M").split("L")
    assert set(points) <= set(page.evaluate(marks))
    hide(page, *range(1, 8))
    assert page.evaluate(f"{front}.getAttribute('d')") == made


CAPS = """[...document.querySelectorAll('.plot svg g:not([data-off]) > .bars')].flatMap(bars => {
  const d = bars.getAttribute('d');
  const ends = [...d.matchAll(/M([-\\d.]+),([-\\d.]+)([HV])([-\\d.]+)/g)].flatMap(([, x, y, way, end]) =>
    [[x, y], way === 'H' ? [end, y] : [x, end]].map(String));
  const caps = [...d.matchAll(/M([-\\d.]+),([-\\d.]+)(?=m)/g)].map(([, x, y]) => String([x, y]));
  return [[ends.sort().join(' '), caps.sort().join(' ')]];
})"""


def test_the_caps_of_bars_stay_at_their_ends(page, report):
    page.open(report, 1280)
    for hidden in ((), range(1, 8)):
        hide(page, *hidden)
        drawn = page.evaluate(CAPS)
        assert drawn
        assert all(ends and ends == caps for ends, caps in drawn)
    assert complaints(page) == []


def test_a_printed_page_names_the_backends_and_has_no_switches(page, report, several_runs):
    for place in (report, several_runs):
        page.open(place, 1280)
        assert visible(page, "#show input") > 1
        page.call("Emulation.setEmulatedMedia", media="print")
        assert visible(page, "#show label span") == visible(page, "#show .sample") > 1
        assert visible(page, "#show input") == 0
        assert visible(page, ".choice") == 0
        scrolled = page.evaluate(
            "[...document.querySelectorAll('.scroll')].map(box => [getComputedStyle(box).overflowX,"
            " getComputedStyle(box, '::before').content].join())"
        )
        assert set(scrolled) == {"visible,none"}  # paper cannot be scrolled
        page.call("Emulation.setEmulatedMedia", media="")


def test_a_run_that_is_hidden_stays_in_the_course_over_all_runs(page, several_runs):
    page.open(several_runs, 1280)
    courses, runs = "svg[aria-label*='of 7 runs'] .line", "[data-family='trade-off'] .line"
    before, shown = visible(page, courses), visible(page, runs)
    hide(page, 0)
    assert visible(page, runs) < shown
    assert visible(page, courses) == before > 0


def test_the_first_screen_has_the_result_and_its_chart(page, report):
    page.open(report, 1280)
    assert page.evaluate(f"{BOTTOM}('.standing, .first figure')") < 900
    assert len(texts(page, ".standing")) == 2  # one for each load
    rows = "[...document.querySelectorAll('.standing')].map(table => table.rows.length)"
    assert page.evaluate(rows) == [len(EIGHT)] * 2


def test_cells_are_folded_behind_backends_and_loads(page, report):
    page.open(report, 1280)
    assert visible(page, "#more table") == 0
    for part in ("validity", "statistics"):
        page.evaluate(f"document.getElementById({part!r}).parentElement.open = true")
    assert visible(page, "#validity table") == 1
    page.evaluate("document.querySelector('#statistics > details').open = true")
    assert visible(page, "#statistics table") == 2  # latencies and rates
    assert visible(page, "#validity tbody tr") == 2 * len(EIGHT)


def test_a_link_to_a_folded_part_opens_it(page, report):
    page.open("about:blank", 1280)  # else only the fragment of the same page changes, and nothing is loaded
    page.open(f"{report.as_uri()}#conditions")
    assert visible(page, "#conditions") == 1
    assert visible(page, "#validity") == 0


def test_the_metric_of_a_family_can_be_chosen(page, report):
    page.open(report, 1200)
    shown = "[data-family='load'] figcaption"
    assert texts(page, shown) == ["Time to first token p50 against concurrency (closed loop)"]
    page.evaluate(
        "(s => { s.value = 'output'; s.dispatchEvent(new Event('change')) })"
        "(document.querySelector(\"[data-family='load'] select\"))"
    )
    assert texts(page, shown) == ["Throughput against concurrency (closed loop)"]
    assert complaints(page) == []


def texts(page, selector):
    return page.evaluate(
        f"[...document.querySelectorAll({selector!r})].filter(e => e.getClientRects().length)"
        ".map(e => e.textContent)"
    )


def test_the_keyboard_reads_values(page, report):
    page.open(report, 1200)
    page.evaluate("document.querySelector(\"[data-family='load'] .plot\").focus()")
    for key in ("ArrowRight", "ArrowRight"):
        page.call("Input.dispatchKeyEvent", type="keyDown", key=key)
    told = texts(page, "[data-family='load'] .read")[0]
    assert told.startswith("at 8")
    assert all(engine.label in told for engine in EIGHT)
    assert " ms" in told
    page.evaluate("document.querySelector('#show input[value=\"0\"]').click()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
    page.evaluate("document.querySelector(\"[data-family='load'] .plot\").focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft")
    assert EIGHT[0].label not in texts(page, "[data-family='load'] .read")[0]
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    assert texts(page, "[data-family='load'] .read") == [""]


@pytest.mark.parametrize(
    ("family", "unit", "values"),
    [("load", " ms", len(EIGHT)), ("trade-off", " per user", 1), ("distribution", " ms", len(EIGHT))],
)
def test_the_pointer_reads_values(page, report, family, unit, values):
    page.open(report, 1200)
    plot = f"document.querySelector(\"[data-family='{family}'] figure:not([data-other]) .plot\")"
    page.evaluate(f"{plot}.scrollIntoView({{block: 'center'}})")
    x, y = page.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({plot}.getBoundingClientRect())")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    told = page.evaluate(f"{plot}.parentElement.querySelector('.read').textContent")
    assert told.count(unit) >= values
    assert page.evaluate(f"{plot}.querySelector('.cross').getAttribute('d')").startswith("M")
    assert complaints(page) == []


def test_it_is_whole_without_a_script(page, report):
    page.open(report, 1200, script=False)
    shown = page.call("DOM.getDocument", depth=1)["root"]["nodeId"]

    def query(selector):
        return page.call("DOM.querySelectorAll", nodeId=shown, selector=selector)["nodeIds"]

    assert len(query("#show .sample")) == 8  # what the lines mean
    assert len(query(".scripted[hidden]")) == len(query(".scripted"))
    assert not query("[data-off], [data-other]")
    assert len(query("table tbody tr")) > 20
    page.look(1200)


def test_the_keyboard_reaches_everything_and_shows_where_it_is(page, report):
    page.open(report, 1200)
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
    page.open(hostile, 1200)
    assert page.evaluate("document.title").startswith("shared-prefix: x<script>")
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0
    assert EVIL in page.evaluate("document.querySelector('blockquote').textContent")
    assert page.requested() == [hostile.as_uri()]
    assert complaints(page) == []


def test_markup_that_slipped_in_could_still_not_run(page, report, tmp_path):
    """The page's own policy, with the escaping taken out of the way."""
    broken = tmp_path / "broken.html"
    broken.write_text(
        report.read_text(encoding="utf-8").replace("</main>", f"{EVIL}</main>"), encoding="utf-8"
    )
    page.open(broken, 1200)
    assert page.evaluate("document.title").startswith("shared-prefix")
    assert page.evaluate("document.scripts.length") == 2
