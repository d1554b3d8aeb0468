"""One browser for all tests, and the reports that several of them open."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as changed

from harness.nightly import Night, Step, drawn
from harness.nightly.suite import About, Entry, Suite
from harness.report import build, page_of_several
from harness.store import RunFolder
from harness.summary import FolderSamples
from harness.verdicts.baseline import Run, compare_runs
from harness.verdicts.history import drifts, series
from harness.verdicts.history_lines import entries
from tests.browser.chromium import Page
from tests.factories.runs import TWO, Shape, make_run

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"
TWO_ENGINES = "20261122T202156Z-shared-prefix-cd0015"
NINE_ENGINES = "20261124T023720Z-shared-prefix-8b803b"


def pytest_itemcollected(item):
    """Each report is made once: the tests that open them go to one worker, those of any other file too."""
    reports = {"test_accessible", "test_layout", "test_report_page"}
    item.add_marker(pytest.mark.xdist_group("reports" if item.path.stem in reports else item.path.stem))


@pytest.fixture(scope="session")
def page():
    with Page() as opened:
        yield opened


def rebuilt(root, run):
    """The report that this version makes of a published run."""
    folder = root / run
    shutil.copytree(PUBLISHED / run, folder)
    build(RunFolder(folder))
    return folder / "report.html"


@pytest.fixture(scope="session")
def two_engines(tmp_path_factory):
    return rebuilt(tmp_path_factory.mktemp("two"), TWO_ENGINES)


@pytest.fixture(scope="session")
def nine_engines(tmp_path_factory):
    return rebuilt(tmp_path_factory.mktemp("nine"), NINE_ENGINES)


@pytest.fixture(scope="session")
def several_runs(tmp_path_factory):
    """Seven runs of two engines on seven days; from the fifth on the first engine is a third slower."""
    root = tmp_path_factory.mktemp("several")
    runs = _runs(root)
    place = root / "several.html"
    place.write_text(page_of_several(runs, compare_runs(runs)), encoding="utf-8")
    return place


@pytest.fixture(scope="session")
def night(tmp_path_factory):
    """The last of the same runs, and one that the night had no time for."""
    root = tmp_path_factory.mktemp("night")
    runs = _runs(root)
    courses = series([entry for run in runs for entry in entries(run.manifest, run.summary)])
    entry = Entry(scenario="shared-prefix", backends=tuple(backend.label for backend in TWO))
    steps = (
        Step(entry, "measured", "", 0, 660.0, RunFolder(next((root / "7").iterdir()))),
        Step(entry, "left out", "3 min left, 9 min needed", 0, 0.0),
    )
    suite = Suite(About("chat", "Two engines, every night.", 20), (entry, entry))
    made = Night(suite, steps, tuple(drifts(courses)), len(runs), interrupted=False, courses=tuple(courses))
    place = root / "night.html"
    place.write_text(drawn(made), encoding="utf-8")
    return place


def _runs(root):
    return [_run(root / str(day), day) for day in range(1, 8)]


def _run(root, day):
    slower = 1.33 if day >= 5 else 1 + 0.002 * day
    first = replace(TWO[0], prefill_ms=TWO[0].prefill_ms * slower, version="b11600" if day >= 5 else "b11549")
    folder = make_run(root, Shape((first, TWO[1]), concurrency=(1, 4), repeats=3, requests=24))
    summary = folder.read_summary()
    manifest = changed(folder.read_manifest(), created_utc=f"2026-11-{day:02d}T05:17:44Z", run=f"run-{day}")
    summary = changed(summary, run=manifest.run)
    return Run(manifest.run, manifest, summary, FolderSamples(folder))
