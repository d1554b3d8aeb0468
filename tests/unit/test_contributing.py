"""The contributor's pages name what is there, and CI runs the lanes of the gate."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
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


def test_a_step_that_shows_what_it_keeps_has_the_exit_code_of_what_it_runs():
    """A step without a shell of its own has no pipefail: the code is that of `tee`."""
    steps = [step for path in WORKFLOWS for step in path.read_text(encoding="utf-8").split("\n      - ")]
    piped = [step for step in steps if "| tee" in step]
    assert piped
    assert [step for step in piped if "shell: bash" not in step] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_two_jobs_save_their_caches_under_one_key(path):
    """A key is written once: the second job would find what the first has saved."""
    saved = r"uses: actions/cache(?:/save)?@.*\n +with:\n +path: (.*)\n +key: (.*)\n"
    keys = re.findall(saved, path.read_text(encoding="utf-8"))
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_that_is_run_again_replaces_its_artefacts(path):
    steps = path.read_text(encoding="utf-8").split("\n      - ")
    uploads = [step for step in steps if "uses: actions/upload-artifact@" in step]
    assert all("          overwrite: true\n" in f"{step}\n" for step in uploads)


def test_a_night_keeps_its_own_runs_and_not_those_that_lie_next_to_them():
    """A checkout has the published runs; a machine of one's own has those of every night."""
    uploads = text(".github/workflows/nightly.yml").split("uses: actions/upload-artifact@")[1:]
    for upload in uploads:
        paths = re.search(r"path: \|\n((?: {12}.*\n)+)", upload)[1].split("\n")
        kept = {path.strip() for path in paths}
        assert "results" not in kept or "!results/published" in kept
    assert len(uploads) == 2
    assert "${{ steps.tonight.outputs.runs }}" in uploads[1]


def test_every_night_runs_the_lanes_of_the_night():
    night = text(".ci/lanes.toml").partition("[[night]]")[2].partition("[[gate]]")[0]
    lanes = re.findall(r"make ([a-z-]+)", night)
    assert lanes
    assert set(lanes) <= TARGETS
    assert "limit_s" in night
    assert "run: make night" in text(".github/workflows/nightly.yml")


def test_the_page_names_the_lanes_of_the_gate():
    row = re.search(r"^\| `make ci` \| (.*?) \|", text("CONTRIBUTING.md"), re.MULTILINE)[1]
    named = {word.removeprefix("make ") for word in re.findall(r"`([^`]+)`", row)}
    gate = re.findall(r"make ([a-z-]+)", text(".ci/lanes.toml").partition("[[gate]]")[2])
    assert named == set(gate) - {"environment", "engines-installed"}
