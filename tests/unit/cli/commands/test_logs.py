"""`bench logs`: bytes as they come for programs, and nothing that a terminal would act upon."""

import io
import sys

import pytest

from harness.cli.display.streams import Terminal
from harness.cli.main import main
from harness.engines.start.containers import daemon
from harness.errors import ExitCode
from tests.factories.containers import FakeDaemon, started

COLOURED = "\x1b[32mINFO\x1b[0m: 5 µs\n".encode()


@pytest.fixture
def docker(monkeypatch):
    made = FakeDaemon(a=started("sglang"), b=started("vllm@eager", keep=False))
    monkeypatch.setattr(daemon, "Daemon", lambda: made)
    return made


def test_an_engine_without_a_container_is_an_error_with_the_way_to_one(docker, capsys):
    assert main(["logs", "tgi"]) == ExitCode.SETUP
    assert capsys.readouterr().err.splitlines() == [
        "error: tgi: it has no container here",
        "hint: `bench up` starts one; logs of runs are in their folders",
    ]


def test_fewer_than_no_lines_are_not_all_of_them(docker, capsys):
    assert main(["logs", "vllm", "--tail", "-5"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "error: --tail: must not be negative, not -5\n"
    assert docker.read == []


@pytest.mark.parametrize(
    ("flags", "asked"), [([], ("b", False, 100)), (["-f", "--tail", "5"], ("b", True, 5))]
)
def test_a_program_gets_every_byte_of_the_last_lines(docker, capsysbinary, flags, asked):
    docker.output = [COLOURED, b"\xff\x00"]
    assert main(["logs", "vllm", *flags]) == ExitCode.OK
    assert docker.read == [asked]
    assert capsysbinary.readouterr().out == COLOURED + b"\xff\x00"


def test_a_terminal_gets_text_without_colours_and_whole_characters(docker, monkeypatch):
    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(screen, encoding="utf-8", errors="backslashreplace"))
    torn = COLOURED.index("µ".encode()) + 1
    docker.output = [COLOURED[:torn], COLOURED[torn:], b"\x1b]0;title\x07"]
    assert main(["logs", "vllm@eager"]) == ExitCode.OK
    text = screen.getvalue().decode()
    assert text.startswith("INFO: 5 µs\n")
    assert "\x1b" not in text
    assert "title" in text
