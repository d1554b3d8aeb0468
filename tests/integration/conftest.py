import os
from contextlib import contextmanager

import psutil
import pytest

from harness.host import helper_process
from tests.integration import helpers

# Begun first, so that no worker is left with a long test at the end.
_LONG = """
hostile_documents nights engines_install stopping verdicts tune cache_state html plots simulate apis doctor
not_linux frozen damaged full agreement_run trace_run
""".split()
BUSY_S = 1.0  # CPU time of another process that is worth a line


def pytest_itemcollected(item):
    """Tests that share a fixture of module scope go to one worker, which makes it once."""
    made = item._fixtureinfo.name2fixturedefs.values()
    if any(fixture.scope == "module" for some in made for fixture in some):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _LONG)


def others():
    """CPU seconds so far of every process outside this test run, by pid and command."""
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    found = {}
    for process in psutil.process_iter(["pid", "cmdline", "cpu_times"]):
        times, words = process.info["cpu_times"], process.info["cmdline"]
        if process.pid not in own and times and words:
            found[process.pid, " ".join(words)[:100]] = times.user + times.system
    return found


def pytest_sessionstart(session):
    session.config.stash[_OTHERS] = others()


_OTHERS = pytest.StashKey()


def pytest_terminal_summary(terminalreporter, config):
    """A claim about time that failed may be the work of other processes: they are named."""
    failed = [one for one in terminalreporter.stats.get("failed", []) if "time" in one.keywords]
    if not failed:
        return
    before = config.stash.get(_OTHERS, {})
    spent = {who: seconds - before.get(who, 0.0) for who, seconds in others().items()}
    busy = sorted(((seconds, who) for who, seconds in spent.items() if seconds > BUSY_S), reverse=True)
    terminalreporter.section("other load during the tests of time")
    for seconds, (pid, command) in busy[:10]:
        terminalreporter.line(f"{seconds:.0f} CPU s: {pid} {command}")
    if not busy:
        terminalreporter.line("none: the failure is the test's own, or the code's")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """A bench remarks on engines that others of the same cache run: here those of tests next to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_helpers():
    """Load workers and samplers of this process start without importing: helpers.py.

    Begun here, in the main thread: the kernel kills a helper when the thread that began its starter ends, as
    that of a lost node does.
    """
    helpers.of_this_process()
    with pytest.MonkeyPatch.context() as patch:
        for name in helpers.USERS:
            patch.setattr(f"{name}.spawn", lambda *job: helpers.of_this_process().spawn(*job))
        yield


@pytest.fixture
def fresh_helpers(monkeypatch):
    """For tests that know them by their command lines."""
    for name in helpers.USERS:
        monkeypatch.setattr(f"{name}.spawn", helper_process.spawn)


@contextmanager
def inside(folder):
    """In this folder, with a cache of its own and room for backends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BENCH_CACHE", str(folder / "cache"))
        (folder / "backends").mkdir()
        yield folder


@pytest.fixture
def here(tmp_path):
    """An empty directory to run in, with a cache of its own and room for backends."""
    with inside(tmp_path) as folder:
        yield folder
