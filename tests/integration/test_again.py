"""What the Makefile does with tests of a group that failed: they are run again."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def pytest_of(folder, *options):
    """What it prints. It loads none of the installed plugins but the one that this is about."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", *options],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A folder in which a test of a group failed and another passed, and what pytest printed."""
    folder = tmp_path_factory.mktemp("failed")
    group = "import pytest\n\n@pytest.mark.xdist_group('one')\n"
    (folder / "test_it.py").write_text(f"{group}def test_it():\n    assert False\n", encoding="utf-8")
    (folder / "test_other.py").write_text("def test_other():\n    pass\n", encoding="utf-8")
    return folder, pytest_of(folder, "--numprocesses", "1", "--dist", "loadgroup", "-v")


def test_a_group_of_tests_goes_to_one_worker(failed):
    """pytest-xdist 3.8 tells so by the tests' names, which pytest 9.2 keeps as they were."""
    _, printed = failed
    assert "test_it.py::test_it@one" in printed, printed


def test_what_failed_in_a_group_is_run_again(failed):
    """pytest-xdist names a test after its group, so only a run with groups finds it again."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (again,) = re.findall(r"pytest tests/integration (.*--numprocesses 1 .*--last-failed \S+ none)", makefile)
    folder, printed = failed
    assert "1 failed, 1 passed" in printed, printed
    printed = pytest_of(folder, *shlex.split(again.replace("$(1)", "not time")))
    assert "1 failed" in printed, printed
    assert "1 passed" not in printed
