"""One list of blocks as a terminal, Markdown and HTML show it."""

import pytest

from harness.report.blocks.block import Fold, Gap, Line, Outline, Section, Title, Verbatim
from harness.report.html.prose import prose
from harness.report.html.tags import join
from harness.report.text.markdown_text import markdown
from harness.report.text.terminal_text import terminal
from harness.report.wording import Table

ROWS = Table("rows", ("name", "ms"), [("a", "1.5")])
LISTED = [
    Line("nothing is slower", "verdict"),
    Line("a sentence", label="note", hint="`bench doctor` says more"),
    Outline([("4 users", [Line("2× faster", label="first token"), Line("same")]), ("8 users", [])]),
    Fold("2 differences", [Line("CPU"), Line("GPU")], "differs"),
    ROWS,
]


def test_a_terminal_has_all_of_it():
    assert terminal(LISTED, 60, color=False).splitlines() == [
        "nothing is slower",
        "note: a sentence",
        "  hint: `bench doctor` says more",
        "4 users  first token  2× faster",
        "         same",
        "differs: CPU",
        "differs: GPU",
        "",
        "rows",
        "name   ms",
        "a     1.5",
    ]


def test_markdown_has_one_list_and_folds():
    assert markdown(LISTED).split("\n\n") == [
        "**nothing is slower**",
        "- **note:** a sentence *Hint: `bench doctor` says more*\n- **4 users**\n  - first token: 2× faster\n"
        "  - same",
        "<details><summary>2 differences</summary>",
        "- CPU\n- GPU",
        "</details>",
        "### rows",
        "| name | ms |\n|---|---:|\n| a | 1.5 |",
    ]


def test_html_has_one_list_and_folds():
    page = join(prose(LISTED))
    assert page.startswith("<p><strong>nothing is slower</strong></p><ul><li>note: a sentence")
    assert "<code>bench doctor</code> says more" in page
    assert (
        "<li><strong>4 users</strong><ul><li>first token: 2× faster</li><li>same</li></ul></li></ul>" in page
    )
    assert "<details><summary>2 differences</summary><ul><li>CPU</li><li>GPU</li></ul></details>" in page
    assert "8 users" not in page + terminal(LISTED, 60, color=False) + markdown(LISTED), (
        "nothing is said of it"
    )


def test_what_has_no_text_leaves_nothing_behind():
    empty = [Line(""), Line("", "muted"), Outline([("8 users", []), ("", [])])]
    assert (terminal(empty, 60, color=False), markdown(empty), join(prose(empty))) == ("", "", "")
    alone = [Outline([("", [Line("of the night", label="run")])])]
    assert terminal(alone, 60, color=False) == "run  of the night"
    assert markdown(alone) == "- run: of the night"
    assert join(prose(alone)) == "<ul><li>run: of the night</li></ul>"


def test_what_belongs_to_a_section_is_indented_and_within_the_width():
    found = [Gap(), Section("a against b", [ROWS, Line("the reason is that all of this is too long")])]
    assert terminal(found, 30, color=False).splitlines() == [
        "",
        "",
        "a against b",
        "  rows",
        "  name   ms",
        "  a     1.5",
        "  the reason is that all of",
        "    this is too long",
    ]
    assert markdown(found).startswith("#### a against b\n\nrows\n\n| name | ms |")


def test_a_backslash_before_a_name_in_the_title_of_a_fold_would_be_seen():
    """Up to the next empty line Markdown takes what follows `<details>` as HTML."""
    found = [Fold("llama_cpp | $1 & 2", [Line("llama_cpp")])]
    title, line, _ = markdown(found).split("\n\n")
    assert title == "<details><summary>llama_cpp | $1 &amp; 2</summary>"
    assert line == "- llama\\_cpp"


def test_words_of_a_table_quote_commands():
    rows = [("chat: `a`", "skipped: `bench up` starts it"), ("rag", "`a|b`")]
    table = markdown([Table("", ("run", "state"), rows, figures=False)]).splitlines()[2:]
    assert table == ["| chat: \\`a\\` | skipped: `bench up` starts it |", "| rag | \\`a\\|b\\` |"]


@pytest.mark.parametrize("foreign", ["<b>*x*</b>", "`<b>", "``<b>``"])
def test_no_text_of_others_opens_a_tag(foreign):
    found = [
        Title(foreign, foreign),
        Line(foreign, "warning", "warning", foreign),
        Line(foreign, "advice"),
        Outline([(foreign, [Line(foreign, label=foreign)])]),
        Fold(foreign, [Line(foreign)]),
        Section(foreign, [Table(foreign, ("a", foreign), [(foreign, foreign)])]),
    ]
    assert "<b>" not in markdown(found)
    assert "<b>" not in join(prose(found[1:]))


def test_a_block_that_no_page_draws_is_no_silent_gap():
    with pytest.raises(TypeError, match="no HTML for a Verbatim"):
        list(prose([Verbatim("drawn")]))
