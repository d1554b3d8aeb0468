"""What a run learns from a sampler that never starts, dies, or says all it has; no process is started."""

from multiprocessing import Pipe
from subprocess import TimeoutExpired
from types import SimpleNamespace

import pytest

from harness.sampling import watcher
from harness.sampling.job import Report, SourceFacts, Watch
from harness.sampling.spill import NAMES

FACTS = {"system": SourceFacts(reads=3, failures=1, failing_since_ns=3_000_000_000)}
REPORT = Report(FACTS, cpu_s=0.25, wall_s=5.0, peak_rss_bytes=9, stalls=((2_500_000_000, 40_000_000),))


@pytest.fixture
def sampler(monkeypatch):
    """Its end of the pipe: what is sent there before, the watcher finds."""
    here, there = Pipe()
    process = SimpleNamespace(ended=False)
    process.kill, process.wait = lambda: setattr(process, "ended", True), lambda timeout=None: None
    monkeypatch.setattr(watcher, "spawn", lambda module: (process, here))
    yield SimpleNamespace(pipe=there, process=process)
    there.close()


def test_without_a_watch_nothing_is_started_and_the_record_says_so():
    with watcher.Watcher(None) as one:
        one.idle()
        assert one.stop(0).series == {}
    assert not one.sampled.requested
    assert "--sample-hz 0" in one.sampled.problem


def test_what_a_whole_sampler_says_is_on_the_clock_of_the_cell(sampler):
    sampler.pipe.send(("ready", FACTS))
    sampler.pipe.send(REPORT)
    with watcher.Watcher(Watch(bench_pid=1)) as one:
        one.stop(t0_ns=1_000_000_000)
    assert sampler.pipe.recv().folder.name.startswith("bench-scratch-samples-")
    assert sampler.pipe.recv() == "stop"
    assert one.sampled.problem is None
    assert one.sampled.sampler == {"cpu_s": 0.25, "wall_s": 5.0, "peak_rss_bytes": 9}
    assert one.sampled.sources["system"].failing_since_s == 2.0
    assert [(stall.at_s, stall.lasted_ms) for stall in one.sampled.stalls] == [(1.5, 40.0)]
    assert sampler.process.ended


def test_a_sampler_that_is_ready_too_late_is_heard_all_the_same(sampler, monkeypatch):
    """What it says first is then not what it was asked for at the end."""
    monkeypatch.setattr(watcher, "_START_S", 0.0)
    with watcher.Watcher(Watch(bench_pid=1)) as one:
        assert one.sampled.problem == "the sampler did not start"
        sampler.pipe.send(("ready", FACTS))
        sampler.pipe.send(REPORT)
        one.stop(t0_ns=1_000_000_000)
    assert (one.sampled.problem, one.sampled.sampler["wall_s"]) == (None, 5.0)


def test_a_sampler_that_dies_before_it_is_ready_did_not_start(sampler):
    sampler.pipe.close()
    with watcher.Watcher(Watch(bench_pid=1)) as one:
        assert one.stop(0).series == {}
    assert one.sampled.problem == "the sampler did not start"


def test_a_sampler_that_dies_on_its_way_was_killed_and_its_sources_stay(sampler):
    sampler.pipe.send(("ready", FACTS))
    with watcher.Watcher(Watch(bench_pid=1)) as one:
        sampler.pipe.close()
        one.stop(0)
    assert one.sampled.problem == "the sampler was killed"
    assert one.sampled.sources["system"].reads == 3


def test_a_sampler_that_cannot_be_killed_holds_up_no_run(sampler):
    """The kernel ends no process that waits in a driver that hangs."""

    def wait(timeout=None):
        assert timeout is not None
        raise TimeoutExpired("sampler", timeout)

    sampler.process.wait = wait
    sampler.pipe.send(("ready", FACTS))
    with watcher.Watcher(Watch(bench_pid=1)):
        pass
    assert sampler.process.ended


@pytest.mark.parametrize(("series", "waits"), [("gpu.0.energy_j", 1), ("gpu.0.power_w", 1), ("cpu.share", 0)])
def test_an_idle_engine_is_looked_at_only_where_energy_is_measured(sampler, monkeypatch, series, waits):
    slept = []
    monkeypatch.setattr(watcher, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=slept.append))
    sampler.pipe.send(("ready", FACTS))
    with watcher.Watcher(Watch(bench_pid=1)) as one:
        (one._folder / NAMES).write_text(f"{series}\n", encoding="utf-8")
        one.idle()
    assert slept == [watcher.IDLE_S] * waits
