"""What a helper process says of itself, also where the kernel says less."""

import pytest

from harness.host import helper_process


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
