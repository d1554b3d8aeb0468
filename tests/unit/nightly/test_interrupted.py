"""A night that is interrupted stops the run under way, waits for it, and begins no other."""

import json
import signal
import subprocess
from types import SimpleNamespace

import pytest

from harness.errors import ExitCode
from harness.nightly import load_suite, spend
from harness.nightly.page import verdict
from tests.bench.audit.gates import change_json
from tests.factories.runs import SMALL, make_run

RUN = '[[run]]\nscenario = "fixed-length"\nbackends = ["truth"]\nconcurrency = [1]\n'
SUITE = f'[suite]\nname = "mine"\npurpose = "x"\nbudget_minutes = 3\n{RUN}{RUN}'


class Interrupted:
    """A run during which the night is interrupted; it ends some time after it was told to."""

    def __init__(self, made, deaf, prints):
        self.told, self.waits, self._deaf, self.returncode = [], [], deaf, None
        self._prints = prints
        made.append(self)

    def communicate(self, timeout=None):
        self.waits.append(timeout)
        if not self.told:
            raise KeyboardInterrupt
        if self._deaf and timeout is not None:
            raise subprocess.TimeoutExpired("bench", timeout)
        return self._prints, None

    def send_signal(self, number):
        self.told.append(number)

    def kill(self):
        self.told.append(signal.SIGKILL)


@pytest.fixture
def spent(tmp_path, monkeypatch):
    """The interrupted night of a suite, and its one run."""

    def spend_it(suite, note, *, deaf=False, prints=""):
        runs = []
        room = "harness.nightly.run_suite"
        popen = {"Popen": lambda *_, **__: Interrupted(runs, deaf, prints)}
        started = SimpleNamespace(**vars(subprocess) | popen)
        monkeypatch.setattr(f"{room}.subprocess", started)
        monkeypatch.setattr(f"{room}._expected_s", lambda _command: None)
        monkeypatch.setattr(f"{room}.asked_to_stop", list)
        (tmp_path / "mine.toml").write_text(suite, encoding="utf-8")
        night = spend(load_suite(str(tmp_path / "mine.toml")), tmp_path / "results", note)
        (run,) = runs
        return night, run

    return spend_it


@pytest.mark.parametrize("deaf", [False, True])
def test_the_run_is_told_to_stop_and_waited_for(spent, deaf):
    """One that does not stop within its time is killed: its engine must be gone before the night is."""
    noted = []
    night, run = spent(SUITE, noted.append, deaf=deaf)
    assert run.told == [signal.SIGINT, *([signal.SIGKILL] if deaf else [])]
    assert len(run.waits) == 2 + deaf
    assert (night.interrupted, night.exit_code) == (True, ExitCode.INTERRUPTED)
    assert [(step.state, step.why) for step in night.steps] == [("interrupted", "nothing was measured")]
    assert verdict(night).endswith(" The night was interrupted. Runs missing: 2 of 2.")
    assert len(noted) == 1


@pytest.mark.parametrize(
    ("state", "do"),
    [
        ("interrupted", "`bench resume {}` measures the rest"),
        ("complete", "every cell was measured; `bench report {}` makes the report"),
    ],
)
def test_the_page_says_what_a_run_that_was_cut_short_lacks(spent, tmp_path, state, do):
    run = make_run(tmp_path / "results", SMALL)
    for name in ("manifest.json", "summary.json"):
        change_json(run.path / name, lambda document: document.update(state=state))
    night, _ = spent(SUITE, lambda _: None, prints=json.dumps({"run": run.run_id}))
    assert [(step.state, step.why) for step in night.steps] == [("interrupted", do.format(run.path))]


def test_a_budget_beyond_what_the_system_waits_for_is_waited_for(spent):
    """poll(2) takes 2**31 ms, which are 35,791 minutes."""
    _, run = spent(SUITE.replace("budget_minutes = 3", "budget_minutes = 99999"), lambda _: None)
    assert run.waits[0] * 1000 < 2**31
