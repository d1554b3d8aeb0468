"""How pip and uv are asked, and what a failure of theirs is reported with."""

from pathlib import Path

import pytest

from harness.engines.provide.pip import Pip
from harness.errors import SetupError

# As uv 0.13 wrote it of vLLM 0.32 for a machine with glibc 2.28.
NO_WHEEL = """\
error: No solution found when resolving dependencies
  cause: Because llguidance>=1.7.0,<=1.7.6 has no usable wheels and vllm==0.32.0 depends on it
"""


@pytest.mark.parametrize(
    ("output", "hint"),
    [
        (NO_WHEEL, "--glibc 2.35"),
        ("ERROR: No matching distribution (from versions: none)\n", "check the network"),
    ],
)
def test_a_failure_says_what_to_do(tmp_path, monkeypatch, output, hint):
    program = tmp_path / "uv"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{output}END\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("harness.engines.provide.pip.find_uv", lambda: str(program))
    pip = Pip(Path("python"), tmp_path / "kit.log", lambda _line: None, "kit")
    with pytest.raises(SetupError) as caught:
        pip.compile_uv("resolving")
    assert caught.value.what.startswith("resolving failed: No ")
    assert hint in caught.value.hint
    assert str(tmp_path / "kit.log") in caught.value.hint


def test_uv_reads_no_settings_of_the_folder_that_bench_is_run_in(tmp_path, monkeypatch):
    """A `uv.toml` there may name other indexes and versions. Relative paths still begin there."""
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr("harness.engines.provide.pip.find_uv", lambda: str(program))
    pip = Pip(Path("python"), tmp_path / "kit.log", lambda _line: None, "kit")
    pip.run_uv(str(program), "installing", "torch")
    pip.compile_uv("resolving", "in.txt")
    pip.compile_uv("resolving", "in.txt", project="/own")
    assert (tmp_path / "kit.log").read_text().splitlines() == [
        "pip install --project / --python python torch",
        "pip compile --quiet --project / in.txt",
        "pip compile --quiet --project /own in.txt",
    ]
