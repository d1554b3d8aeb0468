"""Standard output and error: inert on a terminal, whole in a file, quiet where nobody reads."""

import ast
import errno
import io
import os
from pathlib import Path

import pytest

import harness
from harness.cli.display.streams import _PLAIN, Terminal, UnreadError, _Results, _Stream, _text
from harness.errors import SetupError
from tests.sources import tree

RED, PLAIN = "\x1b[31m", "\x1b[0m"


@pytest.mark.parametrize(
    ("written", "kept", "lost"),
    [
        (f"{RED}slower{PLAIN}: vllm", f"{RED}slower{PLAIN}: vllm", None),
        ("\x1b]0;mine\x07vllm", "vllm", "\x1b"),
        ("a\x1b[2Jb", "b", "\x1b"),
        (f"{RED}\x1b[5A{PLAIN}", RED, "\x1b[5A"),
        ("one\ntwo\tthree ≈", "one\ntwo\tthree ≈", None),
        ("a\u202eb", "b", "\u202e"),
        ("back\x08\x08", "back", "\x08"),
    ],
)
def test_a_terminal_shows_our_colours_and_acts_upon_nothing_else(written, kept, lost):
    screen = io.BytesIO()
    stream = Terminal(screen, encoding="utf-8")
    assert stream.write(written) == len(written)
    stream.flush()
    shown = screen.getvalue().decode()
    assert kept in shown
    assert lost is None or lost not in shown


@pytest.mark.parametrize(
    "wing",
    [
        "cli/display",
        "report/blocks",
        "report/findings",
        "report/tables",
        "report/text",
        "validity",
        "verdicts",
    ],
)
def test_every_sign_of_our_own_texts_has_a_plain_one(wing):
    """A text with a new sign fails here until ASCII has something for it."""
    texts = [
        node.value
        for path in Path(harness.__path__[0], wing).rglob("*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    signs = {sign for text in texts for sign in text if not sign.isascii()}
    assert signs
    assert {sign for sign in signs if not sign.translate(_PLAIN).isascii()} == set()


@pytest.fixture
def full():
    """A descriptor on which every write fails."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def unread():
    """A pipe whose reader went away."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def test_results_that_cannot_be_written_are_one_error_and_the_rest_is_dropped(full):
    with _Results(full, "w", closefd=False) as results:
        with pytest.raises(SetupError) as caught:
            results.write(b"table")
        assert str(caught.value) == f"standard output: cannot be written: {os.strerror(errno.ENOSPC)}"
        assert results.write(b"more") == 4


def test_a_reader_that_went_away_is_no_error_of_the_machine(unread):
    with _Results(unread, "w", closefd=False) as results:
        with pytest.raises(UnreadError):
            results.write(b"table")
        assert results.write(memoryview(b"more")) == 4


def test_a_run_goes_on_without_standard_error(full, unread):
    for descriptor in (full, unread):
        with _Stream(descriptor, "w", closefd=False) as stream:
            assert [stream.write(b"warning"), stream.write(b"again")] == [7, 5]


def test_what_was_written_can_be_read_whatever_the_locale_can_write(tmp_path):
    """Our own signs were printed as \\u2248 and \\xd7, in tables of figures."""
    path = tmp_path / "out"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    was = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with _text(_Stream(descriptor, "w"), was) as stream:
        stream.write("≈ 2.35× (1.73–3.18) ≤ 5 µs… \x1b[2J é\n")
        assert path.read_bytes() == b""  # a file is written in blocks
    assert path.read_bytes() == b"~ 2.35x (1.73-3.18) <= 5 us... \x1b[2J \\xe9\n"
