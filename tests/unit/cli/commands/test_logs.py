"""`bench logs`: bytes as they come for programs, and nothing that a terminal would act upon."""

import io
import json
import sys
from unittest.mock import Mock

import pytest

from harness.cli.display.streams import Terminal
from harness.cli.main import main
from harness.engines.start.containers import daemon
from harness.errors import ExitCode, SetupError
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


def test_an_unknown_name_is_a_mistake_of_the_line_with_and_without_docker(docker, monkeypatch, capsys):
    """It was an error of Docker, exit code 3."""
    for command in ("logs", "down"):
        assert main([command, "vlm"]) == ExitCode.USAGE
    monkeypatch.setattr(daemon, "Daemon", Mock(side_effect=SetupError("no Docker daemon answers")))
    for command in ("logs", "down"):
        assert main([command, "vlm@eager"]) == ExitCode.USAGE
        assert main([command, "vllm"]) == ExitCode.SETUP
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("error: unknown backend 'vlm'") == lines.count("hint: did you mean 'vllm'?") == 4
    assert lines.count("error: no Docker daemon answers") == 2


def test_a_container_of_a_definition_that_is_elsewhere_is_found_by_its_name(docker, capsys):
    docker.here["c"] = started("mine")
    assert main(["logs", "mine"]) == ExitCode.OK
    assert main(["down", "mine", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"stopped": ["mine"]}


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
