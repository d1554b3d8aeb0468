"""What a helper process says of itself, also where the kernel says less."""

import re
from pathlib import Path

import pytest

from harness.host import helper_process

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
        (CODE, "*.py", r'[^\[(]*"-m",\s*"harness'),
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
