"""The contributor's pages name what is there, and CI runs the lanes of the gate."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


PAGES = ["CONTRIBUTING.md", "docs/architecture.md"]
PAGES += [f"docs/contributing/{path.name}" for path in sorted((ROOT / "docs" / "contributing").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_every_path_and_target_it_names_is_there(page):
    words = re.findall(r"`([^`\n]+)`", text(page))
    paths = [word for word in words if re.match(r"(harness|tests|docs|results|\.github|\.ci)/", word)]
    assert len(paths) > 3
    missing = [path for path in paths if not list(ROOT.glob(path.rstrip("/")))]
    assert missing == []
    made = {target for word in words for target in re.findall(r"\bmake ([a-z-]+)", word)}
    assert made <= TARGETS


def test_the_workflow_runs_every_lane_of_the_gate():
    prepared = {"environment", "engines-installed"}  # what each job does on its own
    gate = set(re.findall(r"make ([a-z-]+)", text(".ci/lanes.toml").partition("[[gate]]")[2])) - prepared
    workflow = text(".github/workflows/ci.yml")
    commands = " ".join(re.findall(r"run: make ([a-z -]+)$", workflow, re.MULTILINE)).split()
    lanes = set(re.findall(r"\{ lane: ([a-z-]+)", workflow)) | set(commands)
    only_there = {"cluster", "engines-slow", "integration-long", "soak", "studies-quick", "trackers"}
    parts = {"engines-once": "engines"}  # of the gate, of which the workflow runs the whole
    whole = {parts.get(lane, lane) for lane in gate}
    assert lanes == whole | only_there, "its lanes run side by side, so one more costs no time"
    assert gate | prepared <= TARGETS


def test_every_night_runs_the_lanes_of_the_night():
    night = text(".ci/lanes.toml").partition("[[night]]")[2].partition("[[gate]]")[0]
    lanes = re.findall(r"make ([a-z-]+)", night)
    assert lanes
    assert set(lanes) <= TARGETS
    assert "limit_s" in night
    assert "run: make night" in text(".github/workflows/nightly.yml")
