"""What a helper process says of itself, also where the kernel says less."""

import re
from pathlib import Path

import pytest

from harness.host import helper_process, paths
from harness.mockserver.process import running
from harness.nightly.run_suite import _bench

CODE = Path(helper_process.__file__).parents[1]


@pytest.mark.parametrize("text", ["Name:\tpython\nVmRSS:\t    9 kB\n", None])
def test_the_peak_of_memory_is_known_without_a_line_of_the_kernel(tmp_path, monkeypatch, text):
    """gVisor has the file without the line; macOS has no such file."""
    status = tmp_path / "status"
    if text is not None:
        status.write_text(text)
    monkeypatch.setattr(helper_process, "STATUS", status)
    assert helper_process.peak_rss_bytes() > 1_000_000


def test_the_peak_of_memory_is_that_of_the_kernel_where_it_says_so(tmp_path, monkeypatch):
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t    9 kB\n")
    monkeypatch.setattr(helper_process, "STATUS", tmp_path / "status")
    assert helper_process.peak_rss_bytes() == 9 * 1024


@pytest.mark.parametrize(
    ("folder", "pattern", "start"),
    [
        (CODE, "*.py", r'(?<=[\[(])[^\[(]*"-m",\s*"harness'),
        (CODE.parent / "backends", "*.toml", r'program = \["\{(harness_)?python\}", .*"-m"'),
    ],
)
def test_a_module_in_the_working_directory_is_never_started_or_imported(folder, pattern, start):
    """A user's own `harness/`, or a `logging.py`, would come before ours and before Python's."""
    found = [
        (file.name, command[0])
        for file in folder.rglob(pattern)
        for command in re.finditer(start, file.read_text(encoding="utf-8"))
    ]
    assert len(found) >= 4
    assert [command for command in found if '"-P"' not in command[1]] == []


def test_a_checkout_that_is_not_installed_is_found(monkeypatch, tmp_path):
    """`python -m harness` there imports it from the working directory, which what it starts does not."""
    monkeypatch.setattr("harness.mockserver.process.subprocess.Popen", started)
    with pytest.raises(KeyError, match=re.escape(str(paths.CHECKOUT))), running():
        pass
    monkeypatch.chdir(paths.CHECKOUT)
    assert _bench()[1:] == ["-m", "harness"]
    monkeypatch.chdir(tmp_path)
    assert _bench()[1:] == ["-P", "-m", "harness"]


def started(*_command, env, **_options):
    raise KeyError(env["PYTHONPATH"])
