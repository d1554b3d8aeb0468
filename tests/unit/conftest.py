"""What unit tests need not wait for: the disk, and Python's collector."""

import gc
import os
from pathlib import Path

import pytest

# Modules and tests stay to the end: the collector would go over all of them again and again.
gc.disable()

# Workers of pytest-xdist have 80 here, and a test would print other lines in one of them than alone.
os.environ.pop("COLUMNS", None)


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def pytest_sessionfinish():
    """Looks once for what was never closed: pytest does so ten times, over all that is left."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def no_limit_of_cpu_time():
    """Tests that say how many CPUs there are mean it, also in a container with a limit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.host.cpus.PROCESSES", Path("/nowhere"))
        yield


@pytest.fixture(autouse=True, scope="session")
def unsynced_files():
    """No unit test loses the power, and 2,400 calls of fsync wait 5 to 20 s for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield
