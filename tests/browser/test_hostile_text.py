"""Hostile texts in all that a person reads, in a browser: nothing runs, loads, links or leaves its place.

Markdown is rendered with raw HTML switched on and without the cleaning that a code host adds.
"""

import importlib.util
import json
import re
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt

from harness.cli.display import page_server
from harness.cli.display.metrics_port import TYPE, exposition
from harness.cli.display.progress import State
from harness.cli.main import main
from harness.nightly.page import page as night_page
from harness.nightly.run_suite import Night, Step
from harness.nightly.suite import About, Entry, Suite
from harness.report import build
from harness.verdicts.missing import Missing
from tests.factories.progress import CELL, progress
from tests.factories.progress import run as going
from tests.factories.runs import TWO, Engine, Shape, make_run

ROOT = Path(__file__).resolve().parents[2]
RUNS = "document.title='owned'"
TEXTS = {
    "script": f"<script>{RUNS}</script>",
    "image": f'"\'><img src=x onerror="{RUNS}">',
    "svg": f"<svg onload=\"{RUNS}\"><a href='javascript:{RUNS}'>x</a></svg>",
    "end of a style": f"</style></script></title></textarea><script>{RUNS}</script>",
    "link": f"[x](javascript:{RUNS}) <a href='javascript:{RUNS}'>x</a> ![x](https://evil.example/x.png)",
    "template": "{{constructor.constructor('document.title=1')()}} ${document.title=1} <%= 1%>",
    "table": "a | b\\| c || `d` **e** _f_ ~~g~~ @owner #1 </td></table></details>",
    "frame": f"<iframe srcdoc=\"<script>parent.{RUNS}</script>\"></iframe><base href='https://evil.example/'>",
    "style": "<style>body{display:none}</style><link rel=stylesheet href=https://evil.example/x.css>",
    "entities": f"&lt;script&gt;{RUNS}&lt;/script&gt;&#60;script&#62;{RUNS}&#60;/script&#62;",
    "controls": "\x1b]0;owned\x07\u202eabc\u2066x",
}
ACTIVE = (
    "script, img, iframe, object, embed, form, base, link, style, svg a, meta[http-equiv], [srcdoc], input"
)
HANDLERS = (
    "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes])"
    ".filter(a => /^(on|srcdoc$)/i.test(a.name)).length"
)
LINKS = (
    "[...document.querySelectorAll('[href], [src], [action]')]"
    ".map(e => e.getAttribute('href') ?? e.outerHTML)"
)
WIDTHS = (
    "[...document.querySelectorAll('table')]"
    ".map(table => new Set([...table.rows].map(row => row.cells.length)).size)"
)


def hostile_run(root, text):
    """A run whose every free text is `text`, also in the documents that it was written from."""
    engine = Engine(
        "x" + text.replace("/", "|"), title=text, version=text, track=text, text=text, failing=(5,)
    )
    folder = make_run(root, Shape((engine, TWO[0]), (2,), requests=8))
    path = folder.path / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for key in ("hostname", "system", "kernel", "machine", "python", "cpu"):
        manifest["host"][key] = text
    manifest["model"] = {"name": text, "title": text}
    manifest["command"] = ["bench", text]
    manifest["packages"] = {text: text}
    manifest["scenario"]["scenario"] |= {"name": text, "purpose": text}
    manifest["warnings"] = [{"code": "too-short", "text": text, "hint": text}]
    manifest["failures"] = [{"backend": text, "repeat": 0, "error": text}]
    for backend in manifest["backends"].values():
        backend["launch"]["why"] = backend["engine"]["version"] = text
        backend["engine"]["command"] = ["serve", text]
    path.write_text(json.dumps(manifest), encoding="utf-8")
    assert main(["report", str(folder.path)]) == 0
    return folder


@pytest.fixture(scope="module")
def plain_counts(page, tmp_path_factory):
    """Of a report without hostile texts."""
    folder = make_run(tmp_path_factory.mktemp("plain"), Shape(TWO, (2,), requests=8))
    build(folder)
    page.open(folder.path / "report.html", 1200)
    return page.evaluate(f"document.querySelectorAll({ACTIVE!r}).length")


@pytest.fixture(scope="module", params=TEXTS.values(), ids=TEXTS)
def stored(request, tmp_path_factory):
    return hostile_run(tmp_path_factory.mktemp("run"), request.param), request.param


def ran(page):
    """A script, a dialog, or a request beyond the page's own."""
    owned = page.evaluate("document.title") == "owned"
    return owned or page.said("Page.javascriptDialogOpening") or page.requested()[1:]


def test_the_report_shows_it_and_does_nothing(page, stored, plain_counts):
    folder, text = stored
    page.open(folder.path / "report.html", 1200)
    assert not ran(page)
    assert page.evaluate(f"document.querySelectorAll({ACTIVE!r}).length") == plain_counts
    assert page.evaluate(HANDLERS) == 0
    links = page.evaluate(LINKS)
    own = re.compile(r"#[\w.-]+|(plots|logs|cells)/[\w./@%-]+|[\w-]+\.(json|md|txt)")
    assert [link for link in links if ".." in link or not own.fullmatch(link)] == []
    shown = page.evaluate("document.body.textContent")
    assert not set("\x1b\x07\u202e\u2066") & set(shown)
    if text.isprintable():
        assert shown.count(text[:40]) >= 5


def rendered(page, markdown, folder):
    """In the browser, by a renderer that cleans nothing."""
    html = MarkdownIt("gfm-like", {"html": True, "linkify": True}).render(markdown)
    place = folder / "rendered.html"
    place.write_text(f"<!doctype html><meta charset=utf-8><title>page</title>{html}<p id=end>end", "utf-8")
    page.open(place, 1200)
    assert not ran(page)
    assert page.evaluate("document.title") == "page"
    assert page.evaluate(f"document.querySelectorAll({ACTIVE!r}).length") == 0
    assert page.evaluate(HANDLERS) == 0
    assert page.evaluate("document.getElementById('end').parentElement.tagName") == "BODY"
    return page.evaluate(LINKS)


def bare(links):
    """Addresses that are shown as they are: a reader sees where they lead."""
    return all(link.lower().startswith(("http://", "https://", "mailto:")) for link in links)


def test_the_table_in_markdown_keeps_its_columns(page, stored, tmp_path):
    folder, _text = stored
    assert bare(rendered(page, (folder.path / "table.md").read_text(encoding="utf-8"), tmp_path))
    assert set(page.evaluate(WIDTHS)) == {1}, "a row has more cells than its head"


def test_the_nights_page(page, stored, tmp_path):
    folder, text = stored
    entry = Entry(scenario=text, backends=(text,))
    steps = (Step(entry, "measured", text, 0, 60.0, folder), Step(entry, "failed", text, 3, 60.0))
    night = Night(Suite(About(text, text, 10.0), (entry, entry)), steps, (), 1, False, (text,))
    night = replace(night, missing=((text, Missing(text, None, None, text)),))
    assert bare(rendered(page, night_page(night), tmp_path))
    assert set(page.evaluate(WIDTHS)) == {1}, "a row has more cells than its head"


def test_the_actions_page_and_its_comment(page, stored, tmp_path, capsys):
    """The page goes into the job's summary; the comment is that page, or whatever replaced it, made inert."""
    folder, text = stored
    capsys.readouterr()
    main(["compare", str(folder.path), "--baseline", "llamacpp", "--markdown"])
    written = capsys.readouterr().out
    assert bare(rendered(page, written, tmp_path))
    for said in (written, text, f"### x\n\n| a |\n|---|\n| {text} |\n", f"> {text}\n\n- {text}\n    {text}"):
        assert rendered(page, comment().inert(said), tmp_path) == []


def comment():
    spec = importlib.util.spec_from_file_location("comment", ROOT / "action" / "comment" / "comment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_live_port_is_text_to_a_browser(page, text):
    made = going(labels=(text, f'a"quote\\\n{text}'))
    made.folder = SimpleNamespace(run_id=text)
    made.prepared.scenario = SimpleNamespace(name=text)
    made.prepared.backends = ()
    said = exposition(State(0.0, made, load=(CELL, progress())), 60.0).encode()
    listener = socket.create_server(("127.0.0.1", 0))
    with page_server.serving(listener, "/metrics", TYPE, lambda: said):
        page.open(f"http://127.0.0.1:{listener.getsockname()[1]}/metrics?{text[:20]!r}", 1200)
        assert page.evaluate("document.contentType") == "text/plain"
        assert page.evaluate("document.querySelectorAll('script, img, iframe, svg').length") == 0
        assert not [url for url in page.requested() if "evil" in url]
    assert page.evaluate("document.title") != "owned"
