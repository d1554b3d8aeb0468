"""What Linux says of the machine's CPUs."""

import pytest

from harness.host import cpus

WAITED = "some avg10=2.97 avg60=39.79 avg300=67.37 total=15845933387\nfull avg10=0.00 total=7\n"


@pytest.mark.parametrize(("text", "seconds"), [(WAITED, 15845.933387), ("", 0.0), (None, 0.0)])
def test_the_time_in_which_tasks_waited_for_a_cpu_is_in_seconds(tmp_path, monkeypatch, text, seconds):
    """It is 0 where the kernel does not count it."""
    file = tmp_path / "cpu"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(cpus, "PRESSURE", file)
    assert cpus.waited_for_cpu_s() == seconds
