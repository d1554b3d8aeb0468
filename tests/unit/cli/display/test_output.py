"""Where results, errors and questions go, and how wide."""

import io
import sys

import pytest

from harness.cli.display import output
from harness.errors import SpecError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "colour"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(monkeypatch, stream, environment, colour):
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.wants_color(stream) is colour


@pytest.mark.parametrize(
    ("typed", "yes"),
    [("y\n", True), (" YES \n", True), ("\n", False), ("", False), ("no\n", False), ("yy\n", False)],
)
def test_only_a_yes_is_a_yes(monkeypatch, capsys, typed, yes):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert output.agreed("Stop it?") is yes
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "Stop it? [y/N] ")


def test_an_error_is_a_line_with_its_hint_and_names_of_any_length_are_cut(capsys):
    output.print_error(SpecError("no such scenario", where="x" * 500, hint="list them"))
    said = capsys.readouterr()
    assert said.out == ""
    error, hint = said.err.splitlines()
    assert error.startswith("error: ")
    assert "…" in error
    assert len(error) < 250
    assert hint == "hint: list them"


def test_on_a_terminal_an_error_is_red(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    output.print_error(SpecError("no such scenario"))
    assert sys.stderr.getvalue() == "\x1b[31merror:\x1b[0m no such scenario\n"


@pytest.mark.parametrize(
    ("stream", "term", "live"),
    [(Terminal, "xterm", True), (Terminal, "dumb", False), (io.StringIO, "xterm", False)],
)
def test_a_live_view_is_for_terminals_that_can_redraw(monkeypatch, stream, term, live):
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stderr", stream())
    display = output.progress_display(verbose=True)
    assert isinstance(display, output.LiveView) is live
    assert display.details
    display.close()
