"""`bench report RUN RUN --html` and `bench compare --html`: one page of several run folders."""

import shutil

import pytest
from msgspec.structs import replace

from harness.cli.main import main
from harness.errors import ExitCode
from harness.summary import summarise_folder
from tests.factories.runs import TWO, Shape, make_run

SMALL = Shape(TWO[:1], concurrency=(2,), repeats=3, requests=12)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run on two days."""
    room = tmp_path_factory.mktemp("runs")
    return [str(_dated(room / day, day).path) for day in ("2026-11-20", "2026-11-27")]


def _dated(root, day, shape=SMALL):
    folder = make_run(root, shape)
    folder.write_json(
        "manifest.json", {**folder.read_json("manifest.json"), "created_utc": f"{day}T08:00:00"}
    )
    return folder


@pytest.mark.parametrize("command", ["report", "compare"])
def test_the_page_has_every_run_on_one_axis(runs, tmp_path, capsys, command):
    page = tmp_path / "page.html"
    assert main([command, *runs, "--html", str(page)]) == ExitCode.OK
    text = page.read_text(encoding="utf-8")
    assert "shared-prefix: 2 runs compared" in text
    assert text.count("llamacpp, 2026-11-20") > 3
    assert "llamacpp, 2026-11-27" in text
    answer = "is not slower than in the run of 2026-11-20 by more than 5%"
    assert answer in text
    assert answer in capsys.readouterr().out


def test_what_the_course_leaves_out_is_named(runs, tmp_path):
    first_lost = _dated(tmp_path / "other", "2026-11-28", SMALL)
    shutil.rmtree(first_lost.path / "cells" / (lost := first_lost.read_manifest().order[0]))
    manifest, plan = first_lost.read_json("manifest.json"), first_lost.read_plan()
    first_lost.write_plan(replace(plan, blocks=plan.blocks[1:]))
    first_lost.write_json(
        "manifest.json", {**manifest, "order": [name for name in manifest["order"] if name != lost]}
    )
    first_lost.write_summary(summarise_folder(first_lost))
    page = tmp_path / "page.html"
    assert main(["report", *runs, str(first_lost.path), "--html", str(page)]) == ExitCode.OK
    said = f"llamacpp c2 of {first_lost.run_id} is not in the history: without its first repeat"
    assert said in page.read_text(encoding="utf-8")


def test_what_cannot_be_compared_is_refused_with_the_reason(runs, tmp_path, capsys):
    other = _dated(tmp_path / "other", "2026-11-28", Shape(TWO[:1], concurrency=(4,), repeats=3, requests=12))
    page = tmp_path / "page.html"
    assert main(["report", runs[0], str(other.path), "--html", str(page)]) == ExitCode.USAGE
    assert "these runs cannot be compared: no load point in common" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not page.exists()


def test_one_run_has_its_own_page(runs, tmp_path, capsys):
    assert main(["report", runs[0], "--html", str(tmp_path / "page.html")]) == ExitCode.USAGE
    assert "one run has its own page" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--html", "p.html", "--json"], "--html: not with --json"),
        (["--html", "p.html", "--as", "vllm"], "--html: not with --as"),
        (["--html", "p.html", "-v"], "--html: not with -v"),
        (["--html", "p.html", "--price-per-hour", "2"], "--html: not with a price"),
        (["--as", "vllm", "--price-per-hour", "2"], "--as: not with a price"),
        (["--json"], "--json: one document is of one run"),
    ],
)
def test_flags_that_would_have_no_effect_are_refused(runs, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert main(["report", *runs, *words]) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert said in " ".join(f"{printed.err} {printed.out}".split())  # with --json it is a document
    assert "verdict" not in printed.out
    assert not list(tmp_path.iterdir())


def test_a_run_is_compared_with_itself_by_nobody(runs, capsys):
    """Such a gate could not fail."""
    assert main(["compare", runs[0], f"{runs[0]}/.", "--fail-on", "slower"]) == ExitCode.USAGE
    assert "is the same run twice" in capsys.readouterr().err
