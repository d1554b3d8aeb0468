"""Nights of the scripted server and of files: a step is found when it has lasted, and not before."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from harness.cli.main import main
from harness.engines.start.ports import free_port
from harness.mockserver import running
from harness.nightly.suite import Entry
from harness.store.history import history_path, read_history
from tests.factories import foreign
from tests.integration import forks
from tests.waiting import until


def suite_of(folder, *runs):
    """The file of a suite with these runs."""
    suite = folder / "mine.toml"
    tables = "".join(f"[[run]]\n{run}\n" for run in runs)
    suite.write_text(f'[suite]\nname = "mine"\npurpose = "x"\nbudget_minutes = 3\n{tables}', encoding="utf-8")
    return suite


def night(results, *words):
    return main(["nightly", "truth", "--out", str(results), *words])


class Forked:
    """In place of the process of a run that the night starts: a fork, as tests start `bench` themselves."""

    def __init__(self, command, **_options):
        self._words = command[command.index("harness") + 1 :]

    def communicate(self, timeout):
        done = forks.run(self._words, dict(os.environ), limit_s=timeout)
        self.returncode = done.returncode
        return done.stdout, None


@pytest.fixture
def brief(tmp_path, monkeypatch):
    """A suite of one short run. Nobody asks before how long it takes, and it has no more than its load."""
    flags, load_alone = Entry.flags, ("--no-probe", "--no-agreement", "--no-report")
    monkeypatch.setattr("harness.nightly.run_suite._expected_s", lambda _command: None)
    forking = SimpleNamespace(**{**vars(subprocess), "Popen": Forked})
    monkeypatch.setattr("harness.nightly.run_suite.subprocess", forking)
    monkeypatch.setattr(Entry, "flags", lambda entry: [*flags(entry), *load_alone])
    return suite_of(
        tmp_path,
        'scenario = "fixed-length"\nbackends = ["truth"]\nconcurrency = [2]\nrequests = 8\n'
        'output_tokens = 4\nrepeats = 1\nset = ["load.warmup_requests=2", "load.min_answers=8"]',
    )


def test_the_history_has_a_line_per_backend_load_and_night(brief, tmp_path, capsys):
    results = tmp_path / "results"
    ttft_ms = 200
    slow = ("--engine-set", f"ttft_ms={ttft_ms}", "--engine-set", "gap_ms=60")  # also on a busy machine
    asked = ("nightly", str(brief), "--out", str(results), *slow)
    assert {main(asked) for _ in range(2)} <= {0, 4}  # how late the client is is not tested here
    assert "SIMULATED" in capsys.readouterr().out
    lines = (results / "history" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    assert len({entry["run"] for entry in entries}) == len(entries) == 2
    for entry in entries:
        assert (entry["label"], entry["load"]) == ("truth", {"kind": "concurrency", "value": 2})
        assert entry["metrics"]["ttft_ms.p50"]["interval"][1] >= ttft_ms


def test_a_server_that_is_down_costs_the_other_one_nothing(brief, tmp_path, capsys):
    """A night of two servers measured neither, so that nobody saw what became slower on the other one."""
    with running(ttft_ms=200, gap_ms=60) as server:  # no events share a read, also on a busy machine
        urls = [f"up=openai={server.url}", f"down=openai=http://127.0.0.1:{free_port('127.0.0.1')}"]
        brief.write_text(brief.read_text().replace('["truth"]', json.dumps(urls)))
        assert main(["nightly", str(brief), "--out", str(tmp_path / "results")]) == 3
    (failed,) = (line for line in capsys.readouterr().out.splitlines() if "| failed: " in line)
    assert "down: " in failed
    assert "Connection refused" in failed
    (entry,) = read_history(history_path(tmp_path / "results"))
    assert entry.label == "up"


@pytest.mark.long
def test_a_run_that_cannot_be_costs_the_others_nothing(tmp_path, capsys):
    good = 'scenario = "fixed-length"\nbackends = ["truth"]\nconcurrency = [2]\nrequests = 6'
    suite = suite_of(tmp_path, good.replace("truth", "nobody"), good)
    assert main(["nightly", str(suite), "--out", str(tmp_path / "results")]) == 2
    text = capsys.readouterr().out
    (nobody,), (truth,) = (
        re.findall(rf"^\| fixed-length: {name} \| [\d.]+ \| (.*) \|$", text, re.MULTILINE)
        for name in ("nobody", "truth")
    )
    assert nobody.startswith("failed: ")
    assert "unknown backend 'nobody'" in nobody
    assert truth.startswith("measured")
    assert "Runs missing: 1 of 2." in text


@pytest.mark.long
def test_a_load_that_the_server_refuses_fails_the_gate_and_is_not_measured_again(brief, tmp_path, capsys):
    """The TTFT is long next to the delays of a busy machine, so that no load is measured again for those."""
    out, text = tmp_path / "results", brief.read_text().replace("[2]", "[2, 4]")

    def measure(server):
        brief.write_text(text.replace('["truth"]', f'["truth={server.url}"]'))
        return main(["nightly", str(brief), "--out", str(out)])

    with running(ttft_ms=500, gap_ms=60) as server:
        assert measure(server) == 0
    capsys.readouterr()
    with running(ttft_ms=500, gap_ms=60, fault=["503:at=22:times=200"]) as server:  # after the load of 2
        assert measure(server) == 1
    text = capsys.readouterr().out
    assert "missing: fixed-length: truth c4: INVALID failed-requests" in text
    assert "missing: fixed-length: truth c2" not in text
    assert "| measured: SIMULATED; INVALID cells |" in text
    assert not list(out.glob("*/set-aside/*"))


def test_a_spent_budget_leaves_runs_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("harness.nightly.run_suite._expected_s", lambda _command: 60.0)
    assert night(tmp_path / "results", "--budget", "0.00001") == 1  # nothing was measured
    assert "left out" in capsys.readouterr().out


@pytest.fixture
def lasting(tmp_path):
    """One whose only run is under way, and would go on for long; started as by a shell in the background."""
    suite = suite_of(
        tmp_path,
        'scenario = "fixed-length"\nbackends = ["truth"]\nconcurrency = [1]\nrequests = 2000\n'
        'engine_set = ["ttft_ms=500"]',
    )
    out = tmp_path / "results"
    with subprocess.Popen(
        [sys.executable, "-m", "harness", "nightly", str(suite), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as night:
        try:
            until(lambda: list(out.glob("*/logs/*.log")), "an engine starts")
            time.sleep(2)
            yield night
        finally:
            night.kill()


def state(tmp_path):
    (manifest,) = tmp_path.glob("results/*/manifest.json")
    return json.loads(manifest.read_text(encoding="utf-8"))["state"]


@pytest.mark.long
def test_an_interrupted_night_ends_its_run_and_says_so(lasting, tmp_path):
    lasting.send_signal(signal.SIGINT)
    text, _ = lasting.communicate(timeout=60)
    assert lasting.returncode == 130
    assert "Runs missing: 1 of 1." in text
    assert state(tmp_path) == "interrupted"


@pytest.mark.long
def test_a_killed_night_ends_its_run_too(lasting, tmp_path):
    lasting.kill()
    until(lambda: state(tmp_path) != "running", "the run has ended")
    assert state(tmp_path) == "interrupted"


@pytest.mark.long
def test_nights_of_files_find_a_step_when_it_has_lasted_and_take_no_file_twice(tmp_path, capsys, monkeypatch):
    """Three files of vLLM each night; from the fourth on the server is 20% slower.

    The last of them writes the page of its job.
    """
    monkeypatch.chdir(tmp_path)
    suite = suite_of(tmp_path, 'backends = ["ours"]\nfiles = ["tonight/*.json"]')

    def measured(number, *words):
        slower = 1.2 if number >= 3 else 1.0
        for repeat in range(3):
            document = foreign.vllm(10 * number + repeat, slower=slower)
            document["date"] = f"202611{10 + number}-08000{repeat}"
            foreign.write(tmp_path / "tonight" / f"{repeat}.json", document)
        return main(["nightly", str(suite), "--out", str(tmp_path / "results"), *words])

    job = tmp_path / "page.md"
    job.write_text("before\n", encoding="utf-8")
    assert [measured(number) for number in range(5)] == [0] * 5
    assert measured(5, "--page", str(job)) == 1
    text = job.read_text(encoding="utf-8")
    assert text.startswith("before\n# Nightly: mine\n")
    assert "Worse for several nights: " in text
    assert "by one step, since" in text
    assert capsys.readouterr().out.endswith(text.removeprefix("before\n"))
    kept = sorted((tmp_path / "results" / "nightly").glob("*-mine.md"))
    assert kept[-1].read_text(encoding="utf-8") == text.removeprefix("before\n")
    assert main(["nightly", str(suite), "--out", str(tmp_path / "results")]) == 1
    assert "was read in an earlier night: nothing new was measured" in capsys.readouterr().out
