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


PATH = "/models/of/a/team/that/has/long/names/of/folders"
ANYWAY = "`bench run --anyway` measures it as it is"


@pytest.mark.parametrize(
    ("stream", "printed"),
    [
        (
            Terminal,
            [
                "error:",
                f"  {PATH}:",
                "  has no weights that",
                "  llamacpp can read",
                "  tried: gguf-q4_1,",
                "    gguf-q8_0",
                "hint: choose other weights",
                "  with",
                "  --engine-set weights=bf16;",
                "  `bench run --anyway`",
                "  measures it as it is",
            ],
        ),
        (
            io.StringIO,
            [
                f"error: {PATH}: has no weights that llamacpp can read",
                "  tried: gguf-q4_1, gguf-q8_0",
                f"hint: choose other weights with --engine-set weights=bf16; {ANYWAY}",
            ],
        ),
    ],
)
def test_an_error_has_the_width_of_the_terminal_and_its_commands_stay_whole(monkeypatch, stream, printed):
    monkeypatch.setenv("COLUMNS", "28")
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setattr(sys, "stderr", stream())
    what, tried = "has no weights that llamacpp can read", "  tried: gguf-q4_1, gguf-q8_0"
    hint = f"choose other weights with --engine-set weights=bf16; {ANYWAY}"
    output.print_error(SpecError(what, where=PATH, below=tried, hint=hint))
    assert sys.stderr.getvalue().splitlines() == printed


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
