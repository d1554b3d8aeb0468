"""`bench export` and `bench query` over a made-up run: what each format holds, one name for the folder."""

import csv
import errno
import io
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from harness.cli.commands.export import EXCHANGE, WHAT
from harness.cli.main import main
from harness.errors import ExitCode, StorageError, writing
from harness.imports import read
from harness.store import seal
from tests.factories.runs import Engine, Shape, copy_of, edit_summary, make_run

HOSTILE = "=HYPERLINK(1)"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    engines = (Engine("llamacpp", text=HOSTILE), Engine("vllm", step_ms=20, track="gguf-q4_1"))
    shape = Shape(engines=engines, concurrency=(2,), repeats=3, requests=5, output_tokens=3)
    return make_run(tmp_path_factory.mktemp("runs"), shape)


def export(capsys, *words):
    code = main(["export", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_what_cannot_be_written_is_an_error_of_the_place_and_a_defect_stays_one(tmp_path):
    """`writing` is around code that also computes what is written."""
    no_folder = "cannot be written: No such file or directory"
    with pytest.raises(StorageError, match=no_folder), writing("here"):
        (tmp_path / "no" / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written: embedded null byte"), writing("a\0b"):
        Path("a\0b").write_text("")
    with pytest.raises(ValueError, match="invalid literal"), writing("here"):
        int("x")


@pytest.mark.parametrize("what", WHAT)
def test_every_table_is_the_same_in_every_format(capsys, made, tmp_path, what):
    file = tmp_path / "rows.parquet"
    words = (made.path, "--what", what)
    assert export(capsys, *words, "--format", "parquet", "--to", file) == (ExitCode.OK, "", "")
    _code, text, _err = export(capsys, *words, "--format", "jsonl")
    lines = [json.loads(line) for line in text.splitlines()]
    frame = pd.read_parquet(file)
    found = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    assert found == lines
    assert lines
    _code, text, _err = export(capsys, *words)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [list(row) for row in rows] == [list(line) for line in lines]
    assert [row["run"] for row in rows] == [line["run"] for line in lines]


def test_parquet_keeps_integers_and_texts_as_they_are(capsys, made, tmp_path):
    """pandas makes floats of integers with nulls unless the file says otherwise."""
    file = tmp_path / "requests.parquet"
    export(capsys, made.path, "--what", "requests", "--format", "parquet", "--to", file)
    frame = pd.read_parquet(file)
    assert str(frame.cached_tokens.dtype) == "Int32"
    assert str(frame.sent_ns.dtype) == "Int64"
    assert HOSTILE in set(frame.text)
    _code, text, _err = export(capsys, made.path, "--what", "requests")
    assert f"'{HOSTILE}" in {row["text"] for row in csv.DictReader(io.StringIO(text))}


def test_parquet_replaces_a_file_when_the_new_one_is_whole(capsys, made, tmp_path):
    file = tmp_path / "cells.parquet"
    file.write_text("kept")
    damaged = tmp_path / "run"
    shutil.copytree(made.path, damaged)
    next(damaged.glob("cells/*/requests.parquet")).write_bytes(b"PAR1 damaged")
    code, _out, err = export(capsys, damaged, "--format", "parquet", "--to", file)
    assert (code, "requests.parquet" in err) == (ExitCode.USAGE, True)
    assert file.read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells.parquet", "run"]
    assert export(capsys, made.path, "--format", "parquet", "--to", file)[0] == ExitCode.OK
    assert len(pd.read_parquet(file)) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells.parquet", "run"]


def test_rows_replace_a_file_when_all_are_written(capsys, made, tmp_path, monkeypatch):
    file = tmp_path / "cells.csv"
    file.write_text("kept")

    def fill_the_disk(names, rows, stream):
        stream.write("half a row")
        stream.flush()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("harness.cli.commands.export.write_csv", fill_the_disk)
        code, out, err = export(capsys, made.path, "--to", file)
    assert (code, out, file.read_text()) == (ExitCode.SETUP, "", "kept")
    assert err.startswith(f"error: {file}: no space left on the disk")
    assert [path.name for path in tmp_path.iterdir()] == ["cells.csv"]
    assert export(capsys, made.path, "--to", file)[0] == ExitCode.OK
    assert file.read_text().startswith("run,")


def test_rows_are_written_through_a_link(capsys, made, tmp_path):
    (tmp_path / "link.csv").symlink_to("file.csv")
    assert export(capsys, made.path, "--to", tmp_path / "link.csv")[0] == ExitCode.OK
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "file.csv").read_text().startswith("run,")


@pytest.mark.parametrize(
    ("to", "code", "says"),
    [
        ("-", ExitCode.USAGE, "binary and needs a file"),
        (".", ExitCode.USAGE, "is no file that can be replaced"),
        ("/dev/null", ExitCode.USAGE, "is no file that can be replaced"),
        ("no/such/folder.parquet", ExitCode.SETUP, "cannot be written"),
    ],
)
def test_where_parquet_cannot_be_written_is_one_error(capsys, made, tmp_path, monkeypatch, to, code, says):
    monkeypatch.chdir(tmp_path)
    found, out, err = export(capsys, made.path, "--format", "parquet", "--to", to)
    assert (found, out) == (code, "")
    assert err.startswith("error: ")
    assert says in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["summary.json", "--format", "jsonl"], ["table.parquet"], ["cells", "--format", "mlperf"]]
)
def test_no_file_of_a_run_is_replaced(capsys, made, tmp_path, words):
    """Its figures were lost, with exit code 0."""
    run, (to, *more) = copy_of(made, tmp_path), words
    sums = {
        name: run.files.sha256(name) for pattern in ("*", "cells/*/*") for name in run.files.names(pattern)
    }
    seal.begin(run.files)
    seal.enter(run.files, sums)
    code, out, err = export(capsys, run.path, "--to", run.path / to, *more)
    assert (code, out) == (ExitCode.USAGE, "")
    assert f"error: --to {run.path / to}: would be a file of the run {run.path}\n" in err
    assert seal.faults(run.files) == (len(sums), [])


@pytest.mark.parametrize(
    ("name", "begins"),
    [("x.parquet", b"PAR1"), ("X.PARQUET", b"PAR1"), ("x.jsonl", b"{"), ("x.txt", b"run,")],
)
def test_a_file_has_the_format_that_its_name_ends_with(capsys, made, tmp_path, name, begins):
    file = tmp_path / name
    assert export(capsys, made.path, "--to", file) == (ExitCode.OK, "", "")
    assert file.read_bytes().startswith(begins)


def test_a_file_of_json_is_no_csv(capsys, made, tmp_path):
    file = tmp_path / "x.json"
    code, _out, err = export(capsys, made.path, "--to", file)
    assert (code, file.exists()) == (ExitCode.USAGE, False)
    assert f"--to {file}: rows are no JSON document\nhint: --format jsonl" in err
    assert export(capsys, made.path, "--format", "jsonl", "--to", file) == (ExitCode.OK, "", "")


def test_a_file_for_parquet_is_proposed_by_the_name_of_its_rows(capsys, made):
    _code, _out, err = export(capsys, made.path, "--format", "parquet", "--what", "requests", "--to", "-")
    assert "hint: --to requests.parquet" in err


def query(capsys, sql, *words):
    assert main(["query", sql, "--json", *map(str, words)]) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


def test_cells_say_what_was_measured_and_verdicts_are_those_of_the_summary(capsys, made):
    words = ("--out", made.path.parent)
    (cell,) = query(
        capsys, "select distinct scenario, model, weights, quantisation, launch, hardware from cells", *words
    )
    assert cell == {
        "scenario": "shared-prefix",
        "model": "smollm2-135m-instruct",
        "weights": "gguf-q4_1",
        "quantisation": "Q4_1",
        "launch": "process",
        "hardware": "Generated CPU, 2 cores",
    }
    found = query(capsys, "select a, b, metric, verdict, ratio from verdicts", *words)
    assert found == [
        {
            "a": one.a,
            "b": one.b,
            "metric": one.metric,
            "verdict": one.verdict,
            "ratio": one.ratio.estimate if one.ratio else None,
        }
        for one in made.read_summary().comparison
    ]


def test_a_run_with_a_file_less_is_left_out_whole(capsys, made, tmp_path):
    kept, without = tmp_path / "kept", tmp_path / "without"
    for copy in (kept, without):
        shutil.copytree(made.path, copy)
    sorted(without.glob("cells/*/events.parquet"))[-1].unlink()
    assert (
        main(["query", "select distinct run from requests", "--json", "--out", str(tmp_path)]) == ExitCode.OK
    )
    said = capsys.readouterr()
    assert json.loads(said.out) == [{"run": "kept"}]
    assert said.err.count("warning: run left out: ") == 1
    assert "events.parquet: cannot be read" in said.err


@pytest.mark.parametrize(("sql", "rows"), [("select a from Verdicts", 0), ("select 1 from cells", 6)])
def test_figures_are_read_without_a_file_of_records(capsys, made, tmp_path, sql, rows):
    """Ten thousand runs took minutes to open."""
    run = copy_of(made, tmp_path)
    for file in run.path.glob("cells/*/*.parquet"):
        file.unlink()
    assert len(query(capsys, sql, "--out", tmp_path)) >= rows
    assert main(["query", f"{sql}, Events", "--out", str(tmp_path)]) == ExitCode.USAGE
    assert "no run can be read" in capsys.readouterr().err


def test_the_former_name_of_the_results_folder_is_taken_and_not_shown(capsys, made):
    assert query(capsys, "select count(*) as n from cells", "--results", made.path.parent) == [{"n": 6}]
    for command in ("query", "tune"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = capsys.readouterr().out
        assert "--out DIR" in shown
        assert "--results" not in shown
    assert main(["completion", "bash"]) == ExitCode.OK
    assert "--results" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", EXCHANGE)
def test_cells_of_a_scripted_server_say_so_wherever_they_go(capsys, made, tmp_path, monkeypatch, kind):
    """A format of others has no place for it: it is said here, and by what imports them again."""
    monkeypatch.setattr("harness.report.build", lambda _folder: [])  # read by nobody here
    code, _out, err = export(capsys, made.path, "--format", kind, "--to", tmp_path)
    assert code == ExitCode.OK
    assert err.startswith(f"{made.run_id}: SIMULATED: no inference engine was measured")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 6
    assert all(taken.simulated for file in files for taken in read(file)[1])
    assert main(["import", str(files[0]), "--out", str(tmp_path / "out"), "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["simulated"] is True


@pytest.mark.parametrize("kind", EXCHANGE)
def test_documents_of_two_copies_of_a_run_are_all_written(capsys, made, tmp_path, kind):
    words = ("--format", kind, "--to", tmp_path / "documents")
    export(capsys, made.path, copy_of(made, tmp_path).path, *words)
    assert len(list((tmp_path / "documents").iterdir())) == 2 * len(made.cells())


@pytest.mark.parametrize("kind", EXCHANGE)
def test_a_run_without_a_cell_makes_no_folder(capsys, made, tmp_path, kind):
    run = copy_of(made, tmp_path)
    edit_summary(run, cells=[])
    code, _out, err = export(capsys, run.path, "--format", kind, "--to", tmp_path / "written")
    assert (code, "no cell was measured" in err) == (ExitCode.USAGE, True)
    assert not (tmp_path / "written").exists()


def test_a_document_is_written_in_the_folder_and_nowhere_else(capsys, made, tmp_path):
    """Whoever sends a run names its cells, and may send a folder next to it."""
    run, to = copy_of(made, tmp_path), tmp_path / "to"
    cells = run.read_json("summary.json")["cells"]
    edit_summary(run, cells=[{**cells[0], "cell": "/../../victim"}])
    (to / f"{run.run_id}.").mkdir(parents=True)
    code, _out, err = export(capsys, run.path, "--format", "mlperf", "--to", to)
    assert (code, "is not the name of a file in the folder" in err) == (ExitCode.USAGE, True)
    assert not (tmp_path / "victim.json").exists()
