"""Published runs: documents are read as they were written, and every figure comes out of the records."""

import json
import math
import re
import shlex
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import Summary, as_json, from_json
from harness.store import RunFolder
from harness.store.migration import upgraded
from harness.summary import summarise_folder
from tests.long import others_long

# Of each version, and of what is measured in other ways: a GPU, classes of requests, recordings.
OFTEN = {
    "20261120T070251Z-shared-prefix-a8d2cb",
    "20261125T120542Z-shared-prefix-7a5980",
    "20261126T090830Z-shared-prefix-fb5180",
    "20261126T125825Z-victim-probe-460660",
    "20261126T131142Z-audio-in-595d9e",
    "20261126T161117Z-shared-prefix-1f7e1c",
}
FOLDERS = [path.parent for path in sorted(Path(__file__).parents[2].glob("results/published/*/summary.json"))]
PUBLISHED = [*others_long(FOLDERS, lambda folder: folder.name in OFTEN)]

# What no version before 0.2 wrote.
NEW = re.compile(
    r"\.(null_reasons\.)?ttft_parts(\.\w+)?$|\.reasons\[\d+\]\.(metrics\[\d+\]|failure|requests_needed|change\..+)$|\.warnings\[\d+\]\.(backend|change\..+)$"
    r"|^\.per_user\[\d+\]\."
)


def test_the_runs_that_are_checked_often_are_there():
    assert {folder.name for folder in FOLDERS} >= OFTEN


def figures(value, place=""):
    """Every number, word and null with its path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from figures(below, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for number, below in enumerate(value):
            yield from figures(below, f"{place}[{number}]")
    else:
        yield place, value


def alike(value, other):
    """Whether they are equal, but for what the vector unit of another processor rounds differently."""
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-12)
    return bool(value == other)


def documents(folder):
    """Each that has a type, as it is read."""
    run = RunFolder(folder)
    yield "summary.json", run.read_summary()
    yield "manifest.json", run.read_manifest()
    for cell in run.cells():
        name = f"cells/{cell}/cell.json"
        yield name, run.read_cell(cell)[1]
    if run.has("workload.json"):
        yield "workload.json", run.read_cards()
    for path in folder.glob("probe-*.json"):
        yield path.name, run.read_probe(path.stem.removeprefix("probe-"))


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_document_of_a_published_run_is_read_as_it_was_written(folder):
    for name, document in documents(folder):
        written = upgraded(json.loads((folder / name).read_text(encoding="utf-8")), type(document))
        read = dict(figures(as_json(document)))
        known = [(place, value) for place, value in figures(written) if place != ".schema"]
        assert len(known) > 10
        assert [place for place, value in known if place not in read or read[place] != value] == [], name


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_figure_of_a_published_run_comes_out_of_its_records_again(folder):
    written = RunFolder(folder).read_summary()
    again = summarise_folder(RunFolder(folder))
    made, own = dict(figures(as_json(again))), dict(figures(as_json(written)))
    differ = [place for place in own.keys() | made.keys() if not alike(own.get(place), made.get(place))]
    assert [place for place in differ if place in own or not NEW.search(place)] == []
    assert from_json(as_json(again), Summary) == again


def test_the_page_on_comparisons_shows_what_is_printed(capsys, monkeypatch):
    root = Path(__file__).parents[2]
    page = (root / "docs" / "compare.md").read_text(encoding="utf-8")
    command, shown = re.search(
        r"A real one, [^`]*`bench (compare [^`]*)`[^`]*```\n(.*?)```", page, re.DOTALL
    ).groups()
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(shlex.split(command)) == ExitCode.OK
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in map(str.strip, shown.splitlines()) if line not in ("", "…", *printed)] == []
