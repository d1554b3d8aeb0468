"""The page, parsed: what a reader, a screen reader and an attacker would find."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from harness.report import build
from harness.report.plots import draw
from tests.factories.documents import changed
from tests.factories.runs import EIGHT, TWO, Engine, Shape, edit_summary, make_run

VOID = {"meta", "input", "link", "br"}
EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'>&amp;"


class Document(HTMLParser):
    """Every element with its attributes and its own text; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self._open = [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        element = {
            "tag": tag,
            "text": "",
            "inside": [parent["tag"] for parent in self._open],
            **dict(attributes),
        }
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", "inside": [], **dict(attributes)})

    def handle_endtag(self, tag):
        assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, *tags):
        return [element for element in self.elements if element["tag"] in tags]


def page_of(folder):
    build(folder)
    return (folder.path / "report.html").read_text(encoding="utf-8")


def copied(summary, charts, *others):
    """In place of `plots.draw`: one timeline, also as the file of each chart, to which the page links."""
    timeline = next(draw(summary, (), *others))
    for chart in charts:
        if chart.paper:
            yield replace(timeline, picture=replace(timeline.picture, name=chart.name))
    yield timeline


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = make_run(tmp_path_factory.mktemp("page"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.report.plots.draw", copied)
        build(found)
    return found


@pytest.fixture(scope="module")
def page(folder):
    return Document((folder.path / "report.html").read_text(encoding="utf-8"))


def test_the_answer_comes_first_and_ranks_nothing(page):
    body = page.all("body")[0]["text"]
    title = "shared-prefix: llamacpp and llamacpp@no-prefix-cache"
    assert page.all("h1")[0]["text"] == f"{title} 20261120T051744Z-shared-prefix-a1b2c3"
    assert page.all("h2")[0]["text"] == "Results"
    work = "were given the same requests of the scenario shared-prefix (SmolLM2 135M Instruct, Generated CPU"
    assert work in body
    assert re.search(
        r"Closed loop, concurrency 4, median TTFT p50, lowest first.*llamacpp: first token after [\d.]+ ms",
        body,
    )
    assert "No verdict: 1 repeat per backend" in body
    assert not re.search(r"\b(faster|slower|winner|best backend)\b", body)


@pytest.mark.long
@pytest.mark.usefixtures("without_plots")
def test_with_many_backends_the_table_speaks(tmp_path):
    text = Document(page_of(make_run(tmp_path, Shape(EIGHT, concurrency=(1,), requests=6)))).all("body")[0][
        "text"
    ]
    assert "first token after" not in text


def test_headings_do_not_jump_and_sections_are_named(page):
    levels = [int(heading["tag"][1]) for heading in page.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    identifiers = {element["id"] for element in page.elements if "id" in element}
    for section in page.all("section"):
        assert section["aria-labelledby"] in identifiers


def test_tables_have_captions_and_scopes(page):
    tables = page.all("table")
    assert len(tables) == len(page.all("caption")) > 5
    assert all(cell.get("scope") in ("col", "row") for cell in page.all("th"))


def test_pictures_have_a_text(page):
    pictures = [element for element in page.all("svg") if element.get("role") == "img"]
    assert len(pictures) == len(page.all("figure")) > 20
    assert all(len(picture["aria-label"]) > 40 for picture in pictures)
    assert all(element.get("aria-hidden") for element in page.all("svg") if element.get("role") != "img")


def test_ids_are_unique_and_every_reference_has_its_target(folder, page):
    identifiers = [element["id"] for element in page.elements if "id" in element]
    assert len(identifiers) == len(set(identifiers))
    text = (folder.path / "report.html").read_text(encoding="utf-8")
    wanted = set(re.findall(r"url\(#([^)]+)\)", text)) | set(re.findall(r'href="#([^"]+)"', text))
    assert wanted
    assert wanted <= set(identifiers)


def test_nothing_is_fetched_and_links_lead_into_the_folder(folder, page):
    for element in page.elements:
        assert not {"src", "srcset", "data", "action", "poster", "onload", "onerror", "onclick"} & set(
            element
        )
    links = [element["href"] for element in page.all("a") if not element["href"].startswith("#")]
    assert {"summary.json", "manifest.json", "table.txt", "plots/ttft-cdf-c4.png"} <= set(links)
    for link in links:
        assert (folder.path / link.replace("%40", "@")).is_file()
    assert "@import" not in page.all("style")[0]["text"]
    assert "url(" not in page.all("style")[0]["text"]


def test_only_our_script_may_run(page):
    (script,) = page.all("script")
    assert "default-src 'none'" in next(
        element["content"]
        for element in page.all("meta")
        if element.get("http-equiv") == "Content-Security-Policy"
    )
    assert "data-series" in script["text"]


def test_simulated_is_said_at_both_ends(page):
    loud = [element["text"] for element in page.all("p") if element.get("class") == "simulated"]
    assert len(loud) == 2
    assert all(text.startswith("SIMULATED: ") for text in loud)


def test_differences_between_the_backends_are_listed(page):
    (table,) = [table for table in page.all("table") if "What is not the same" in table["text"]]
    assert "engine.cache_prompt" in table["text"]
    assert "definition_sha256" not in table["text"]
    assert "engine.pid" not in table["text"]


@pytest.mark.usefixtures("without_plots")
def test_a_backend_that_never_started_is_said_and_not_compared(tmp_path):
    found = make_run(tmp_path, Shape((*TWO, Engine("vllm")), concurrency=(1,), requests=5))
    manifest = found.read_json("manifest.json")
    manifest["backends"]["vllm"]["engine"] = None
    found.write_json("manifest.json", manifest)
    warning = {"code": "not-measured", "text": "vllm: port 8100 is taken", "hint": "free it"}
    edit_summary(found, warnings=[*found.read_summary().warnings, warning])
    document = Document(page_of(found))
    (table,) = [table for table in document.all("table") if "What is not the same" in table["text"]]
    assert "vllm" not in table["text"]
    text = document.all("body")[0]["text"]
    assert "vllm was never started." in text
    assert "not-measured: vllm: port 8100 is taken" in text


def test_hostile_text_stays_text(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.report.plots.draw", copied)
    engine = Engine(EVIL.replace("/", "|"), title=EVIL, version=EVIL, track=EVIL, text=EVIL, failing=(5,))
    found = make_run(tmp_path, Shape((engine, TWO[0]), concurrency=(2,), requests=8))
    manifest = found.read_json("manifest.json")
    manifest["host"] = {**manifest["host"], "cpu": EVIL}
    manifest["packages"] = {EVIL: EVIL}
    manifest["command"] = [EVIL]
    found.write_json("manifest.json", manifest)
    reason = {**dict.fromkeys(("code", "measured", "limit", "hint"), EVIL), "verdict": "SUSPECT"}
    suspect = {"verdict": "SUSPECT", "reasons": [reason]}
    cells = [
        changed(cell, validity=suspect, null_reasons=dict.fromkeys(cell.null_reasons, EVIL))
        for cell in found.read_summary().cells
    ]
    edit_summary(
        found,
        cells=cells,
        scenario=EVIL,
        purpose=EVIL,
        run=EVIL,
        warnings=[{"code": EVIL, "text": EVIL, "hint": EVIL}],
    )
    text = page_of(found)
    document = Document(text)
    assert len(document.all("script")) == 1
    assert document.all("img") == []
    assert "alert" not in document.all("script")[0]["text"]
    assert EVIL in document.all("blockquote")[0]["text"]
    assert "<script>alert" not in text


@pytest.mark.usefixtures("without_plots")
def test_answers_are_cut(tmp_path):
    long = Engine("chatty", text="word " * 1000)
    document = Document(page_of(make_run(tmp_path, Shape((long,), concurrency=(1,), requests=5))))
    assert max(len(quote["text"]) for quote in document.all("blockquote")) == 400


@pytest.mark.usefixtures("without_plots")
def test_a_page_without_a_manifest_says_what_it_cannot(tmp_path):
    found = make_run(tmp_path, Shape(concurrency=(1,), requests=5))
    (found.path / "manifest.json").unlink()
    text = Document(page_of(found)).all("body")[0]["text"]
    assert "manifest.json is missing: they are not known." in text
    assert "no-manifest" in text


@pytest.mark.usefixtures("without_plots")
def test_errors_are_shown_as_received(tmp_path):
    failing = Engine("flaky", failing=(6, 7, 8))
    text = Document(page_of(make_run(tmp_path, Shape((failing,), concurrency=(1,), requests=8)))).all("body")[
        0
    ]["text"]
    assert "000-flaky-c1-r0: 3 requests: HTTP 500: out of memory" in text
    assert "INVALID" in text
    assert "flaky: no valid measurement" in text
