"""What `load` takes, what it refuses, and that a comparison is that of `bench compare`."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import llm_servebench as sb
from harness import __version__
from harness.cli.main import main
from harness.model import as_json
from tests.bench.audit.gates import change_json, mend
from tests.factories.runs import Shape, make_run
from tests.unit.python.conftest import ENGINES

CELLS = len(ENGINES)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A cell of each engine, in place of the eighteen of other files: each test loads it, some five times."""
    return made(tmp_path_factory.mktemp("runs"))


def made(root, engines=ENGINES, repeats=1):
    shape = Shape(engines=engines, concurrency=(1,), repeats=repeats, requests=6, output_tokens=4)
    folder = make_run(root, shape)
    mend(folder.path)
    return folder


def test_tables_of_the_working_directory_have_one_name_of_the_run(copied, monkeypatch):
    monkeypatch.chdir(copied.path)
    run = sb.load(".")
    assert {*run.cells()["run"], *run.requests()["run"]} == {copied.path.name}


def test_a_run_is_found_by_its_path_its_name_and_the_beginning_of_its_name(copied):
    by_path = sb.load(copied.path)
    assert by_path.path == copied.path
    for name in (copied.path.name, copied.path.name[:8], str(copied.path)):
        assert sb.load(name).name == by_path.name
    assert sb.load(copied.path.name, out=str(copied.path.parent)).name == by_path.name
    assert [path.name for path in sb.runs()] == [copied.path.name]
    assert sb.runs("nowhere") == []
    assert repr(by_path) == (
        f"<Run {copied.path.name}: shared-prefix, llamacpp, vllm@eager, tgi, {CELLS} cells>"
    )


def nothing(folder):
    shutil.rmtree(folder.path)


def no_run(folder):
    nothing(folder)
    folder.path.mkdir()


def a_file(folder):
    nothing(folder)
    folder.path.write_text("")


def half_a_run(folder):
    (folder.path / "summary.json").unlink()


def no_cells(folder):
    shutil.rmtree(folder.path / "cells")
    mend(folder.path)


def a_changed_figure(folder):
    change_json(folder.path / "summary.json", lambda summary: summary["cells"][0].update(window_s=1.0))


def a_changed_record(folder):
    place = folder.cell_path(folder.cells()[0]) / "events.parquet"
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)


def no_records(folder):
    (folder.cell_path(folder.cells()[0]) / "requests.parquet").unlink()


def a_link(folder):
    place = folder.path / "manifest.json"
    place.rename(folder.path.parent / "elsewhere.json")
    place.symlink_to("../elsewhere.json")


def another_schema(folder):
    change_json(folder.path / "manifest.json", lambda manifest: manifest.update(schema=99))
    mend(folder.path)


SPOILED = {
    nothing: "no such run",
    no_run: "has no manifest.json: not a run folder",
    a_file: "is a file, not the folder of a run",
    half_a_run: "has no summary.json",
    no_cells: "was planned and is missing, and 3 more",
    a_changed_figure: "summary.json is damaged",
    a_changed_record: "events.parquet is damaged",
    no_records: "requests.parquet is missing",
    a_link: "is a link, which could lead out of the folder",
    another_schema: "schema 99",
}


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_a_folder_that_is_not_a_whole_run_is_one_error_with_its_place(copied, spoil):
    spoil(copied)
    with pytest.raises(sb.BenchError, match=SPOILED[spoil]) as raised:
        sb.load(copied.path)
    error = raised.value
    assert str(copied.path) in str(error)
    assert "\n" not in str(error)
    assert getattr(error, "__notes__", []) == ([f"hint: {error.hint}"] if error.hint else [])


@pytest.mark.parametrize("spoil", [a_changed_record, no_records])
def test_a_run_that_does_not_verify_is_given_only_to_whom_accepts_it(copied, spoil):
    spoil(copied)
    with pytest.raises(sb.DamagedError, match="does not verify") as raised:
        sb.load(copied.path)
    assert "unverified=True" in raised.value.hint
    with pytest.warns(sb.LoadWarning, match="NOT VERIFIED") as warned:
        run = sb.load(copied.path, unverified=True)
    assert {Path(one.filename).name for one in warned} == {"test_load.py"}
    assert repr(run).endswith("NOT VERIFIED>")
    assert len(run.cells()) == CELLS
    assert not run.verified
    with pytest.raises(sb.DamagedError, match=r"\.parquet"):
        (run.events if spoil is a_changed_record else run.requests)()


def test_a_summary_that_is_not_what_was_written_is_never_believed(copied):
    a_changed_figure(copied)
    with pytest.raises(sb.DamagedError, match=r"summary\.json") as raised:
        sb.load(copied.path)
    assert "unverified" not in raised.value.hint
    with pytest.raises(sb.DamagedError, match=r"summary\.json"):
        sb.load(copied.path, unverified=True)


def test_a_run_of_another_version_is_computed_again_and_says_so(copied):
    """The made-up runs say that another commit wrote them."""
    honest = sb.load(copied.path).cells()
    change_json(copied.path / "summary.json", lambda summary: summary["cells"][0]["ttft_ms"].update(p50=1.0))
    mend(copied.path)
    with pytest.warns(sb.LoadWarning, match="values? not as in its summary.json"):
        run = sb.load(copied.path)
    assert run.cells().equals(honest)
    with pytest.warns(sb.LoadWarning, match="NOT VERIFIED"):
        forged = sb.load(copied.path, unverified=True)
    assert forged.cells().ttft_p50[0] == 0.001


def test_a_comparison_is_that_of_the_command(tmp_path, monkeypatch, capsys):
    """Of runs with repeats, which have verdicts."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    run = made(tmp_path, ENGINES[:2], repeats=3).path
    newer = tuple(replace(engine, version="2") for engine in ENGINES[:2])
    other = run.with_name("20261121T000000Z-shared-prefix-000000")
    made(tmp_path / "other", newer, repeats=3).path.rename(other)
    main(["compare", str(run), str(other), "--json"])
    printed = json.loads(capsys.readouterr().out)
    loaded = sb.load(run)
    compared = sb.compare(loaded, other)
    assert json.loads(json.dumps(as_json(compared.conclusion()))) == printed.pop("conclusion")
    assert json.loads(json.dumps(as_json(compared.document))) == printed
    verdicts = compared.verdicts()
    assert len(verdicts) == sum(len(pair["findings"]) for pair in printed["pairs"])
    assert set(verdicts.a) == {f"{other.name}/{label}" for label in ("llamacpp", "vllm@eager")}
    first = printed["pairs"][0]["findings"][0]
    assert verdicts.value_a[0] == pytest.approx(first["values"][0] / 1e3)
    assert compared.refused == ()
    alone = sb.compare(loaded)
    assert {row.b.rpartition("/")[2] for row in alone.verdicts().itertuples()} == {"llamacpp"}


@pytest.mark.parametrize("floor", [-0.01, float("nan"), float("inf")])
def test_a_floor_is_a_share_from_0_on(copied, floor):
    with pytest.raises(sb.BenchError, match=r"^floor: must be a share from 0 on, such as 0\.02, not "):
        sb.compare(copied.path, floor=floor)


def test_a_single_run_of_one_backend_is_compared_with_nothing(tmp_path):
    """The comparison was empty; the command gave an error."""
    with pytest.raises(sb.BenchError, match="only one backend: nothing to compare"):
        sb.compare(made(tmp_path, ENGINES[:1]).path)


def test_a_run_is_not_compared_with_itself(copied):
    """It was "not slower", whatever happened to the server."""
    run = sb.load(copied.path)
    with pytest.raises(sb.BenchError, match="is the same run twice"):
        sb.compare(run, copied.path)


def test_importing_loads_nothing_heavy_and_the_version_is_that_of_bench():
    code = (
        "import sys, llm_servebench as sb\nassert set(sb.__all__) <= set(dir(sb))\nprint(sb.__version__)\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, loaded = done.stdout.splitlines()
    assert version == __version__
    for heavy in ("numpy", "pandas", "duckdb", "matplotlib", "httpx"):
        assert f"'{heavy}'" not in loaded


def test_the_checkout_puts_nothing_else_on_the_import_path():
    """An editable installation adds the folder that holds the package: it holds nothing but that package."""
    folder = Path(sb.__file__).parents[1]
    assert [path.name for path in folder.iterdir() if path.name != "__pycache__"] == ["llm_servebench"]
