"""The order of the unit tests, and what Python's collector need not look at in them."""

import gc
from pathlib import Path

import pytest

# Files whose tests take seconds each. Begun first, so that no worker is left with one at the end.
_LONG = """
seal baseline extremes notebook queues load verified exchange frames page_server
""".split()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem.removeprefix("test_") not in _LONG)


# Modules and tests stay to the end: the collector would go over all of them again and again.
gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def no_limit_of_cpu_time(monkeypatch):
    """Tests that say how many CPUs there are mean it, also in a container with a limit."""
    monkeypatch.setattr("harness.host.cpus.OWN_CGROUPS", Path("/nowhere"))
