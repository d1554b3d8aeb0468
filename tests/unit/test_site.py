"""The documentation: no link to nothing, no page without a place, the flags it names."""

import ast
import functools
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from harness.errors import DOCUMENTATION

ROOT = Path(__file__).resolve().parents[2]
EXCERPT = re.compile(
    r"<!-- excerpt of (\S+) -->\n```[^\n]*\n(.*?)^```\n<!-- end of excerpt -->", re.DOTALL | re.MULTILINE
)


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"{name}_of_ci", ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site, recording = loaded("site"), loaded("recording")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    site.lay_out(target)
    return target


def test_every_page_has_one_place(pages):
    placed = list(site.in_nav(site.settings()["nav"]))
    assert sorted(placed) == sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.md"))


def test_a_stranger_finds_every_page_in_two_clicks(pages):
    found = clicked = {pages / "index.md"}
    for _ in range(2):
        links = [
            (page, re.findall(r"\]\(([^)\s#:]+\.md)", page.read_text(encoding="utf-8"))) for page in clicked
        ]
        clicked = {(page.parent / address).resolve() for page, addresses in links for address in addresses}
        found = found | clicked
    assert set(pages.rglob("*.md")) - found == set()


def slug(heading):
    """As the site and the repository's own view make anchors of headings."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower().strip()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def slug_of_the_site(heading):
    """Python-Markdown's, which joins what the repository's view keeps apart."""
    return re.sub(r"[-\s]+", "-", slug(heading))


def anchors(text):
    found = {
        slug(line.lstrip("#")) for line in site._FENCE.sub("", text).splitlines() if line.startswith("#")
    }
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def test_every_link_of_the_site_leads_somewhere(pages):
    anchors_of = functools.cache(lambda page: anchors(page.read_text(encoding="utf-8")))
    for path in pages.rglob("*.md"):
        text = site._FENCE.sub("", path.read_text(encoding="utf-8"))
        for address, anchor in re.findall(r"\]\(([^)\s#]*)(?:#([^)\s]*))?\)", text):
            if "://" in address:
                continue
            found = (path.parent / address).resolve() if address else path
            assert found.is_file(), f"{path.name}: {address}"
            if anchor and found.suffix == ".md":
                assert anchor in anchors_of(found), f"{path.name}: {address}#{anchor}"


def shown_texts(tree):
    """Texts of a module without its docstrings and the descriptions of a schema."""
    apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "doc":
            apart |= {id(text) for text in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.value


def test_what_the_code_shows_names_pages_by_their_address(pages):
    """An installed package has no folder docs/."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Documentation"] == DOCUMENTATION
    named = set()
    for path in (ROOT / "harness").rglob("*.py"):
        written = path.read_text(encoding="utf-8")
        if ".md" not in written and "page_address" not in written:
            continue  # parsing all takes seconds
        tree = ast.parse(written)
        found = [text for text in shown_texts(tree) if re.search(r"docs/[\w-]+\.md|\]\([\w-]+\.md", text)]
        assert found == [], path
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        named |= {tuple(part.value for part in call.args) for call in calls
                  if getattr(call.func, "id", "") == "page_address"}  # fmt: skip
    assert len(named) > 8
    for page, *part in named:
        text = (pages / f"{page}.md").read_text(encoding="utf-8")
        assert set(part) <= {slug_of_the_site(line.lstrip("#")) for line in text.splitlines()}, page


def test_links_out_of_the_pages_go_to_the_repository(pages):
    text = (pages / "github-action.md").read_text(encoding="utf-8")
    assert "(https://github.com/llm-servebench/llm-servebench/blob/main/action.yml)" in text
    assert "(verdicts.md#how-often-it-is-wrong)" in text
    assert "](docs/" not in (pages / "changelog.md").read_text(encoding="utf-8")


def test_the_sample_report_is_there_in_the_repository_and_on_the_site(pages):
    page = (ROOT / "docs" / "reading-a-result.md").read_text(encoding="utf-8")
    address = re.search(r"\[A report to open\]\(([^)]+)\)", page)[1]
    here = ROOT / "docs" / address
    assert here.read_bytes() == (pages / "sample-report.html").read_bytes()
    assert "(sample-report.html)" in (pages / "reading-a-result.md").read_text(encoding="utf-8")


def test_a_link_to_nothing_is_an_error():
    path = ROOT / "docs" / "index.md"
    with pytest.raises(site.BadLinkError, match=r"no nowhere\.md"):
        site.relinked("[x](nowhere.md)", path, "index.md", {}, "https://here")
    assert site.relinked("```\n[x](nowhere.md)\n```", path, "index.md", {}, "https://here").startswith("```")


def test_programs_find_every_page(pages):
    text = (pages / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# bench\n")
    address = re.escape(site.settings()["site_url"])
    listed = re.findall(rf"^- \[.+\]\({address}([\w/-]+)\.html\): .+$", text, re.MULTILINE)
    placed = set(site.in_nav(site.settings()["nav"]))
    assert sorted(f"{page}.md" for page in listed) == sorted(placed - {"index.md"})


def test_the_commands_page_has_them_all(pages):
    from harness.cli.flags.parsers import COMMANDS

    text = (pages / "commands.md").read_text(encoding="utf-8")
    assert re.findall(r"^## bench (\S+)$", text, re.MULTILINE) == list(COMMANDS)
    assert "--metrics-port" in text


def test_every_flag_on_our_side_of_the_migration_page_exists():
    from harness.cli.flags.parsers import COMMANDS, command_parser

    actions = [one for name in COMMANDS for one in command_parser(name)._actions]
    known = {flag for one in actions for flag in one.option_strings}
    text = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    right = [line.split(" | ")[-1] for line in text.splitlines() if line.startswith("| ")]
    typed = re.findall(r"^bench (?:.*\\\n)*.*$", text, re.MULTILINE)
    ours = {flag for words in (*right, *typed) for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", words)}
    assert len(ours) > 20
    assert ours <= known
    named = set(re.findall(r"--scenario ([a-z-]+)", text))
    assert {name for name in named if not (ROOT / "workloads" / f"{name}.toml").is_file()} == set()


def test_both_views_make_one_anchor_of_a_heading(pages):
    linked = {
        anchor
        for path in pages.rglob("*.md")
        for anchor in re.findall(r"\]\([^)\s#]*#([^)\s]*)\)", path.read_text(encoding="utf-8"))
    }
    headings = {
        line.lstrip("#")
        for path in pages.rglob("*.md")
        for line in site._FENCE.sub("", path.read_text(encoding="utf-8")).splitlines()
        if line.startswith("#")
    }
    differ = {slug(heading) for heading in headings if slug(heading) != slug_of_the_site(heading)}
    assert linked & differ == set()


def test_excerpts_are_of_real_runs():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    found = [match for page in pages for match in EXCERPT.findall(page.read_text(encoding="utf-8"))]
    assert len(found) > 3
    for name, text in found:
        there = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert [line for line in text.splitlines() if line not in there] == [], name


def test_the_recording_holds_what_was_printed():
    svg = recording.picture("bench x", "\x1b[1mname\x1b[0m   a <b>\n\x1b[31mred\x1b[0m")
    assert ">name</text>" in svg
    assert ">a &lt;b&gt;</text>" in svg
    assert f'fill="{recording.COLOURS["31"]}">red</text>' in svg
    assert "<desc>$ bench x\nname   a &lt;b&gt;\nred</desc>" in svg
    starts = dict(re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', svg))
    columns = {text: (float(x) - recording.MARGIN) / recording.WIDE for x, text in starts.items()}
    assert columns["a &lt;b&gt;"] == pytest.approx(len("name   "), abs=0.1)


def test_a_recording_says_how_many_lines_it_leaves_out():
    svg = recording.picture("bench x", "\n".join(f"line {n}" for n in range(recording.ROWS)))
    assert "… 2 more lines" in svg
    assert f"line {recording.ROWS - 1}" not in svg


def test_the_readme_is_short_and_shows_the_recording():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    assert "(docs/recording.svg)" in text
    assert "<svg" in (ROOT / "docs" / "recording.svg").read_text(encoding="utf-8")
