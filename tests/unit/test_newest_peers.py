"""The lane of others' newest clients: what fails is named, after the rest has run."""

import sys
from pathlib import Path

import pytest

from harness.engines.provide.install import EngineEnv
from harness.errors import SetupError
from tests.bench import newest_peers


@pytest.fixture
def lane(monkeypatch, capsys):
    """`lane(*broken)`: exit code, what was printed, and the command of each part."""

    def run(*broken, failing=()):
        ran = []

        def client(name, _python):
            if name in broken:
                raise SetupError("no file for this machine")
            return "9.9", Path(name)

        def part(words):
            ran.append(words)
            return [f"{words[0]}: exit code 1"] if words[0] in failing else []

        monkeypatch.setattr(sys, "argv", ["newest_peers"])
        monkeypatch.setattr(newest_peers, "_newer_python", lambda: "python3.12")
        monkeypatch.setattr(
            newest_peers, "_engine", lambda: EngineEnv(Path("venv/bin/python"), {}, "0.34.0", "")
        )
        monkeypatch.setattr(newest_peers, "_tokenizer", lambda _engine: Path("tokenizer"))
        monkeypatch.setattr(newest_peers, "_client", client)
        monkeypatch.setattr(newest_peers, "_run", part)
        return newest_peers.main(), capsys.readouterr().out, ran

    return run


def test_a_tool_that_cannot_be_installed_fails_the_lane_by_its_name(lane):
    code, said, ran = lane("guidellm")
    assert code == 1
    assert "FAILED: guidellm: no file for this machine" in said
    assert [words[0] for words in ran] == ["tests.bench.peer_views", "tests.bench.imported_tools"]
    peers = [word.partition("=")[0] for word in ran[1] if "=" in word]
    assert peers == ["vllm@0.34.0", "aiperf", "inference-perf", "genai-bench"]
    assert "genai-bench=genai-bench" not in ran[0], "which has no view of its own"


def test_a_part_that_fails_fails_the_lane_after_the_other_has_run(lane):
    code, said, ran = lane(failing=("tests.bench.peer_views",))
    assert (code, len(ran)) == (1, 2)
    assert "FAILED: tests.bench.peer_views: exit code 1" in said


def test_a_tool_that_moved_is_named_and_fails_nothing(lane):
    code, said, _ = lane()
    assert code == 0
    assert "aiperf 9.9: 0.13.0 was read" in said
    assert "FAILED" not in said


def test_without_the_engine_nothing_is_passed_over(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["newest_peers"])
    monkeypatch.setattr(newest_peers, "_newer_python", lambda: "python3.12")
    monkeypatch.setattr(newest_peers, "installed", lambda _definition: None)
    assert newest_peers.main() == 3
    assert "bench engines install vllm" in capsys.readouterr().err
