"""The recording of the README: the command that it is made of has a limit."""

import sys

import pytest

from tests.unit.test_site import recording
from tests.waiting import in_time


def test_a_command_that_does_not_end_is_no_recording(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "LIMIT_S", 0.2)
    command = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    with pytest.raises(SystemExit, match="ended with -9"):
        in_time(lambda: recording.recorded(command, tmp_path))
