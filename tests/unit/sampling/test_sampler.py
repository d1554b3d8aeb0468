"""How one source is read: asked again where it failed, and what is said of it."""

import threading
from types import SimpleNamespace

import pytest

from harness.host.access import Access
from harness.sampling import sampler
from harness.sampling.job import Exporter, SourceFacts, Watch
from harness.sampling.sampler import Runner, next_beat_s, sources
from harness.sampling.sources import UnavailableError, UnreadableError
from harness.sampling.spill import Spill
from harness.sampling.watcher import read_spill


class Source:
    """Each read does the next of `deeds`: a value to put, or an error to raise; then the last again.

    `enough` is set when `reads` of them put a value.
    """

    period_s = 0.001
    missing, about = {"b": "not offered"}, {"devices": 1}

    def __init__(self, *deeds, opening=None):
        self.deeds, self.opening, self.closed = list(deeds), opening, False
        self.reads, self.enough = 0, threading.Event()

    def open(self):
        if self.opening:
            raise self.opening

    def read(self, put):
        deed = self.deeds.pop(0) if len(self.deeds) > 1 else self.deeds[0]
        if isinstance(deed, Exception):
            raise deed
        put("a", deed)
        self.reads -= 1
        if self.reads <= 0:
            self.enough.set()

    def close(self):
        self.closed = True


@pytest.fixture
def spill(tmp_path):
    made = Spill(tmp_path)
    yield made
    made.close()


def until_later():
    threading.Event().wait(0.003)


def run(source, spill, reads=0):
    ended, source.reads = threading.Event(), reads
    runner = Runner(source, spill, ended)
    runner.opened.wait(timeout=30)
    assert reads == 0 or source.enough.wait(timeout=30)
    ended.set()
    runner.thread.join(timeout=30)
    assert not runner.thread.is_alive()
    return runner.report()


def test_a_source_is_read_until_the_end_and_once_more(spill, tmp_path):
    source = Source(1.0, 2.0)
    facts = run(source, spill, reads=3)
    spill.flush()
    values = read_spill(tmp_path, 0).series["a"].values
    assert len(values) == facts.reads >= 4
    assert (values[0], values[1]) == (1.0, 2.0)
    assert (facts.failures, facts.unavailable, facts.failing_since_ns) == (0, "", None)
    assert (facts.missing, facts.about) == ({"b": "not offered"}, {"devices": 1})
    assert source.closed


def test_a_source_fails_since_its_first_read_that_failed(spill):
    ended = threading.Event()
    runner = Runner(Source(UnreadableError("gone")), spill, ended)
    runner.opened.wait(timeout=30)
    first_ns = runner.facts.failing_since_ns
    ended.set()
    runner.thread.join(timeout=30)
    facts = runner.report()
    assert facts.failures >= 2
    assert facts.failing_since_ns == first_ns
    assert first_ns is not None


def test_a_read_that_fails_is_counted_and_the_next_one_ends_the_failing(spill):
    facts = run(Source(UnreadableError("busy"), 1.0), spill, reads=1)
    assert (facts.failures, facts.last_failure, facts.failing_since_ns) == (1, "busy", None)


def test_a_source_that_cannot_be_closed_was_read(spill, monkeypatch):
    """NVML of a GPU that was lost may refuse it."""
    raised, source = [], Source(1.0)
    monkeypatch.setattr(threading, "excepthook", raised.append)
    source.close = lambda: source.gone
    facts = run(source, spill, reads=2)
    assert (facts.failures, raised) == (0, [])


def test_an_error_that_nobody_foresaw_is_a_read_that_failed(spill, monkeypatch):
    """A driver's field in a new form: the reader's thread ended, and nothing said that its samples did."""
    monkeypatch.setattr("harness.sampling.sampler._RETRY_S", 0.001)
    facts = run(Source(1.0, ValueError("field"), 2.0, 3.0), spill, reads=2)
    assert (facts.failures, facts.last_failure) == (1, "ValueError('field')")
    assert run(Source(1.0, ValueError("field")), spill, reads=1).failing_since_ns is not None


def test_a_source_that_fails_to_the_end_says_since_when(spill):
    facts = run(Source(UnreadableError("gone")), spill)
    assert facts.reads == 0
    assert facts.failures >= 2
    assert facts.failing_since_ns is not None


@pytest.mark.parametrize("opening", [None, UnavailableError("none here")])
def test_whoever_waits_for_a_source_to_open_reads_how_it_went(spill, monkeypatch, opening):
    facts, seen = SourceFacts(), []

    class Opened(threading.Event):
        def set(self):
            seen.append(facts.unavailable)
            super().set()

    ended = threading.Event()
    monkeypatch.setattr(sampler, "threading", SimpleNamespace(Event=Opened, Thread=threading.Thread))
    runner = Runner(Source(1.0, opening=opening), spill, ended, facts)
    runner.opened.wait(timeout=30)
    ended.set()
    runner.thread.join(timeout=30)
    assert seen == [str(opening or "")]


def test_a_source_that_takes_too_long_to_open_is_not_one_that_failed(spill):
    """A driver takes seconds for each GPU that nobody holds open."""
    opens = threading.Event()
    source = Source(1.0)
    source.open = lambda: opens.wait(timeout=30)
    runner = Runner(source, spill, threading.Event())
    assert runner.report().unavailable == "it was not opened in time"
    opens.set()
    assert runner.opened.wait(timeout=30)
    runner.ended.set()
    runner.thread.join(timeout=30)
    assert (runner.report().unavailable, runner.report().failures) == ("", 0)


def test_a_read_that_does_not_end_is_one_that_failed(spill, monkeypatch):
    """As in a driver that hangs: the thread never comes back."""
    monkeypatch.setattr(sampler, "_HUNG_NS", -1)
    begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()
    source = Source(1.0)
    monkeypatch.setattr(source, "read", lambda _put: (begun.set(), goes_on.wait(timeout=30)))
    runner = Runner(source, spill, ended)
    assert begun.wait(timeout=30)
    ended.set()
    for _ in ("when the others are ready", "at the end"):
        facts = runner.report()
        assert (facts.failures, facts.last_failure) == (1, "a read did not come to its end")
        assert facts.failing_since_ns is not None
    goes_on.set()
    runner.thread.join(timeout=30)
    assert runner.report().failures == 0


@pytest.mark.parametrize(
    ("took_s", "next_s"),
    [
        (0.01, 10.1),  # on the beat
        (0.05, 10.1),
        (0.08, 10.16),  # half of the time at work
        (0.5, 11.0),
        (30.0, 41.0),  # one that hung
    ],
)
def test_a_slow_source_rests_for_as_long_as_its_read_took(took_s, next_s):
    assert next_beat_s(10.0, 0.1, began_s=10.0, now_s=10.0 + took_s) == pytest.approx(next_s)


def test_beats_that_were_missed_are_not_made_up_for():
    assert next_beat_s(10.0, 0.1, began_s=12.0, now_s=12.0) == 12.0


def test_reads_that_compute_take_cpu_time_and_those_that_wait_do_not(spill):
    """A driver may do either: only the first costs the machine a share of a core."""

    class Slow(Source):
        def __init__(self, wait):
            super().__init__(1.0)
            self.wait = wait

        def read(self, put):
            self.wait()
            super().read(put)

    computing = run(Slow(lambda: sum(range(300_000))), spill, reads=3)
    waiting = run(Slow(until_later), spill, reads=3)
    assert computing.cpu_s > waiting.cpu_s > 0


def test_a_source_that_is_not_there_says_why_and_is_not_read(spill):
    facts = run(Source(1.0, opening=UnavailableError("no driver")), spill)
    assert (facts.unavailable, facts.reads) == ("no driver", 0)


def test_an_engine_elsewhere_has_no_gpus_of_ours():
    here, there = (sources(Watch(bench_pid=1, engine_here=one)) for one in (True, False))
    assert set(here) - set(there) == {"nvidia", "nvidia-slow", "amd"}
    assert "engine" not in here


@pytest.mark.parametrize("count", [1, 2])
def test_what_costs_more_is_read_less_often(count):
    made = sources(Watch(bench_pid=1, hz=20.0, exporters=(Exporter("http://127.0.0.1:9", Access()),) * count))
    periods = {name: source.period_s for name, source in made.items()}
    assert periods["nvidia"] == 0.05 < periods["processes"] < periods["engine"] < periods["nvidia-slow"]
