"""A night that is interrupted stops the run under way, waits for it, and begins no other."""

import signal
import subprocess
from types import SimpleNamespace

import pytest

from harness.errors import ExitCode
from harness.nightly import load_suite, spend

RUN = '[[run]]\nscenario = "fixed-length"\nbackends = ["truth"]\nconcurrency = [1]\n'
SUITE = f'[suite]\nname = "mine"\npurpose = "x"\nbudget_minutes = 3\n{RUN}{RUN}'


class Interrupted:
    """A run during which the night is interrupted; it ends some time after it was told to."""

    def __init__(self, made, deaf):
        self.told, self.waits, self._deaf, self.returncode = [], [], deaf, None
        made.append(self)

    def communicate(self, timeout=None):
        self.waits.append(timeout)
        if not self.told:
            raise KeyboardInterrupt
        if self._deaf and timeout is not None:
            raise subprocess.TimeoutExpired("bench", timeout)
        return "", None

    def send_signal(self, number):
        self.told.append(number)

    def kill(self):
        self.told.append(signal.SIGKILL)


@pytest.mark.parametrize("deaf", [False, True])
def test_the_run_is_told_to_stop_and_waited_for(tmp_path, monkeypatch, deaf):
    """One that does not stop within its time is killed: its engine must be gone before the night is."""
    runs, noted = [], []
    place = "harness.nightly.run_suite"
    started = SimpleNamespace(**{**vars(subprocess), "Popen": lambda *_, **__: Interrupted(runs, deaf)})
    monkeypatch.setattr(f"{place}.subprocess", started)
    monkeypatch.setattr(f"{place}._expected_s", lambda _command: None)
    monkeypatch.setattr(f"{place}.asked_to_stop", list)
    (tmp_path / "mine.toml").write_text(SUITE, encoding="utf-8")
    night = spend(load_suite(str(tmp_path / "mine.toml")), tmp_path / "results", noted.append)
    (run,) = runs
    assert run.told == [signal.SIGINT, *([signal.SIGKILL] if deaf else [])]
    assert len(run.waits) == 2 + deaf
    assert (night.interrupted, night.exit_code, night.steps) == (True, ExitCode.INTERRUPTED, ())
    assert len(noted) == 1
