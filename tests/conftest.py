import os

import pytest
from hypothesis import settings

# How long one example takes says how busy the machine is, not whether the code is right. The same examples
# are drawn each time, so that a failure is of the change; the workflow looks for new ones.
settings.register_profile("quick", deadline=None, max_examples=10, derandomize=True)
settings.register_profile("ci", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of a test's own cache, not made yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("BENCH_CACHE", str(folder))
    return folder


@pytest.fixture
def without_plots(monkeypatch):
    """Reports without matplotlib's pictures, which take seconds each: for tests of everything else."""
    monkeypatch.setattr("harness.report.plots.draw", lambda *_arguments, **_options: [])


@pytest.fixture
def few_plots(monkeypatch):
    """Of matplotlib's pictures the first chart and the timelines: for tests of what every picture has."""
    from harness.report import plots

    whole = plots.draw

    def draw(summary, charts, *others):
        return whole(summary, list(charts)[:1], *others)

    monkeypatch.setattr(plots, "draw", draw)
