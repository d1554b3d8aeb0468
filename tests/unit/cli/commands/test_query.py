"""`bench query`: one statement that reads, values as a table and a document show them, what is left out."""

import errno
import json
import os
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from harness.cli.commands.query import _views_in, _word, json_row
from harness.cli.main import main
from harness.errors import ExitCode
from harness.host import descriptors
from harness.report.samples import tpot_ms_by_seq
from harness.store import RunFolder, parquet, seal
from harness.store.confined import Confined
from harness.store.database import database
from tests.factories.runs import TWO, Shape, copy_of, make_run


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    make_run(root, Shape(TWO[:1], concurrency=(2,), requests=4, output_tokens=2))
    return root


def query(capsys, results, sql, *words):
    code = main(["query", sql, "--out", str(results), *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (1.23456, "1.235"),
        (-0.000123456, "-0.0001235"),
        (12345.6, "12346"),
        (-1234.5678, "-1235"),
        (123456, "123456"),
        (True, "True"),
        ("two\n lines", "two lines"),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 39 + "…"),
    ],
)
def test_a_cell_of_the_table_is_short_and_keeps_its_size(value, text):
    assert _word(value) == text


def test_a_table_in_a_pipe_has_one_line_for_each_row(capsys, results):
    code, out, _ = query(capsys, results, "select * from cells")
    assert code == ExitCode.OK
    header, *rows = out.splitlines()
    assert len(header) > 1000
    assert len(rows) == 1


def test_a_table_ends_at_200_rows_and_says_how_many_more_there_are(capsys, results):
    code, out, err = query(capsys, results, "select i, i / 8 as share from range(250) t(i)")
    assert code == ExitCode.OK
    lines = out.splitlines()
    assert lines[0].split() == ["i", "share"]
    assert [lines[1].split(), lines[-1].split()] == [["0", "0"], ["199", "24.88"]]
    assert err == "50 more rows: --csv or --json prints all\n"
    assert query(capsys, results, "select i from range(201) t(i)")[2].startswith("1 more row: --csv")
    _code, out, err = query(capsys, results, "select i from range(250) t(i)", "--csv")
    assert (out.splitlines()[0], len(out.splitlines()), err) == ("i", 251, "")


def test_no_row_is_said_and_is_an_empty_list(capsys, results):
    nothing = "select run, cell from cells where false"
    assert query(capsys, results, nothing)[1] == "run  cell\n(no rows)\n"
    assert query(capsys, results, nothing, "--csv")[1] == "run,cell\n"
    assert query(capsys, results, nothing, "--json")[1] == "[]\n"


def test_numbers_of_a_document_are_numbers_and_what_json_has_no_form_for_is_null(capsys, results):
    sql = "select 1.50 as a, 'inf'::double as b, 'nan'::double as c, 9007199254740993 as d, 'é' as e"
    _code, out, _err = query(capsys, results, sql, "--json")
    assert json.loads(out) == [{"a": 1.5, "b": None, "c": None, "d": 9007199254740993, "e": "é"}]
    assert json_row(["a", "b"], [None, "é"]) == '{"a": null, "b": "é"}'


def test_a_decimal_of_more_digits_than_a_number_has_is_text(capsys, results):
    sql = "select 0.1::decimal(4, 1) as a, 12345678901234567890.5::decimal(38, 1) as b"
    _code, out, _err = query(capsys, results, sql, "--json")
    assert json.loads(out) == [{"a": 0.1, "b": "12345678901234567890.5"}]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select 1; select 2", "error: SQL: must be one SELECT statement"),
        ("drop view cells", "error: SQL: must be one SELECT statement"),
        ("", "error: SQL: must be one SELECT statement"),
        ("select ttft from cells", '"ttft"'),
        ("selec 1", "error: SQL: "),
    ],
)
def test_a_mistake_in_the_sql_is_one_line_and_says_where_columns_are_listed(capsys, results, sql, says):
    code, out, err = query(capsys, results, sql)
    assert (code, out) == (ExitCode.USAGE, "")
    error, hint = err.splitlines()
    assert says in error
    assert hint.startswith("hint: ")
    assert "LINE 1" not in error


@pytest.mark.parametrize(
    ("sql", "view"),
    [
        ("select value from estimates", "estimates"),
        ("select requests_ko FROM Cells", "Cells"),
        ("selec 1", "requests"),
    ],
)
def test_a_mistake_leads_to_the_columns_of_the_view_that_was_read(capsys, results, sql, view):
    _code, _out, err = query(capsys, results, sql)
    assert f'`bench query "describe {view}"` lists columns' in err


def test_a_run_that_is_named_twice_is_read_once(capsys, results):
    (run,) = (path.name for path in results.iterdir())
    words = ("--run", run, "--run", str(results / run), "--json")
    assert json.loads(query(capsys, results, "select count(*) as n from cells", *words)[1]) == [{"n": 1}]


def test_copies_of_a_run_are_two_runs_with_rows_of_their_own(capsys, results, tmp_path):
    """Rows of requests are joined with their cell by run and name: of equal names each had two."""
    (run,) = results.iterdir()
    words = ("--run", str(run), "--run", str(copy_of(RunFolder(run), tmp_path).path), "--json")
    sql = "select run, count(*) as n from requests group by run order by run"
    rows = json.loads(query(capsys, results, sql, *words)[1])
    assert rows == [{"run": run.name, "n": 8}, {"run": f"{run.name} (2)", "n": 8}]


def test_a_run_has_its_own_name_under_a_link_and_as_the_working_directory(
    capsys, results, tmp_path, monkeypatch
):
    (run,) = results.iterdir()
    (tmp_path / run.name).symlink_to(run)
    (tmp_path / "latest").symlink_to(run)
    named = [{"run": run.name, "n": 1}]
    sql = "select run, count(*) as n from cells group by run"
    assert json.loads(query(capsys, tmp_path, sql, "--json")[1]) == named
    monkeypatch.chdir(run)
    assert json.loads(query(capsys, results, sql, "--run", ".", "--json")[1]) == named


def test_a_run_whose_name_is_not_utf8_is_left_out(capsys, results, tmp_path):
    (run,) = results.iterdir()
    copied = copy_of(RunFolder(run), tmp_path).path
    other = tmp_path / "run\udcfe"
    other.symlink_to(copied)
    assert json.loads(query(capsys, tmp_path, "select count(*) as n from cells", "--json")[1]) == [{"n": 1}]
    other.unlink()
    copied.rename(other)
    code, _out, err = query(capsys, tmp_path, "select count(*) as n from cells")
    assert code == ExitCode.USAGE
    assert err.splitlines()[0].endswith("run\\udcfe': has a name that is not UTF-8")


@pytest.mark.parametrize("most", [1 << 20, 1])
def test_a_folder_of_runs_may_have_any_name(capsys, results, tmp_path, monkeypatch, most):
    (run,) = results.iterdir()
    odd = tmp_path / "all\udcfe"
    odd.mkdir()
    copy_of(RunFolder(run), odd)
    monkeypatch.chdir(odd)
    monkeypatch.setattr("harness.store.database.descriptors.allow_all", lambda: most)
    assert json.loads(query(capsys, ".", "select count(*) as n from requests", "--json")[1]) == [{"n": 8}]


def test_too_few_open_files_are_put_down_to_the_machine_and_not_to_the_run(capsys, results, monkeypatch):
    def refuse(_files, _name):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Confined, "opened", refuse)
    code, _out, err = query(capsys, results, "select 1")
    assert code == ExitCode.SETUP
    assert err.splitlines() == [
        "error: too many open files",
        "hint: raise the limit of open files, as `ulimit -n 4096` does",
    ]


@pytest.mark.parametrize("cell", ["", "000-a[b]*=1-c2-r0"])
def test_more_files_than_may_be_open_are_opened_when_their_rows_are_read(
    capsys, results, tmp_path, monkeypatch, cell
):
    """A cell whose name DuckDB would take for a pattern, or for keys of a partition, has its own rows too."""
    (run,) = results.iterdir()
    copied = copy_of(RunFolder(run), tmp_path)
    if cell:
        (copied.path / seal.FILE).unlink(missing_ok=True)
        copied.cell_path(copied.cells()[0]).rename(copied.cell_path(cell))
    sql = "select cell, seq, outcome, kind, stamp_ns from requests join events using (run, cell, seq)"
    held = query(capsys, tmp_path, f"{sql} order by all", "--csv")
    assert (held[0], held[1].count("\n") > 8) == (ExitCode.OK, True)
    opened = Counter()

    def by_name(files, name):
        opened[name] += 1
        return plainly(files, name)

    plainly = Confined.opened
    monkeypatch.setattr(descriptors, "allow_all", lambda: descriptors.SPARE)
    monkeypatch.setattr(Confined, "opened", by_name)
    before = len(list(Path("/dev/fd").iterdir()))
    with database([copied], tpot_ms_by_seq, ["requests", "events"]) as (_connected, faults):
        assert not faults
        assert len(list(Path("/dev/fd").iterdir())) - before == (2 if cell else 0)
    assert {name.rpartition("/")[2] for name in opened} >= {"requests.parquet", "events.parquet"}
    assert query(capsys, tmp_path, f"{sql} order by all", "--csv") == held


def test_a_cell_that_was_being_written_has_no_rows_and_no_fault(capsys, results, tmp_path):
    (run,) = results.iterdir()
    copied = copy_of(RunFolder(run), tmp_path)
    whole = query(capsys, tmp_path, "select run, cell, count(*) from requests group by all")
    assert whole[0] == ExitCode.OK
    begun = copied.path / "cells" / "begun"
    begun.mkdir()
    (begun / "requests.parquet").write_bytes(b"PAR1")
    assert query(capsys, tmp_path, "select run, cell, count(*) from requests group by all") == whole


def test_no_link_is_followed_where_files_are_opened_by_name(capsys, results, tmp_path, monkeypatch):
    (run,) = results.iterdir()
    copied = copy_of(RunFolder(run), tmp_path)
    (copied.path / seal.FILE).unlink(missing_ok=True)
    (file,) = copied.path.glob("cells/*/requests.parquet")
    file.rename(tmp_path / "elsewhere.parquet")
    file.symlink_to(tmp_path / "elsewhere.parquet")
    monkeypatch.setattr(descriptors, "allow_all", lambda: descriptors.SPARE)
    code, out, err = query(capsys, tmp_path, "select * from requests")
    assert (code, out) == (ExitCode.USAGE, "")
    assert "requests.parquet: is a link" in err


@pytest.mark.parametrize(
    ("sql", "views"),
    [
        ("select 1", ("requests", "events", "telemetry")),
        ("select * from cells join verdicts using (run)", ()),
        ("select * from asked", ("asked",)),
        ("select * from Requests join cells using (run, cell)", ("requests", "events")),
        ("select * from requests join asked using (run, cell, seq)", ("requests", "events", "asked")),
        ("select max(value) from telemetry", ("telemetry",)),
    ],
)
def test_the_files_of_the_views_that_sql_names_are_opened(sql, views):
    assert _views_in(sql) == views


def test_memory_that_ran_out_is_put_down_to_the_machine_and_not_to_the_run(capsys, results, monkeypatch):
    """A machine without memory left all runs out, as damaged ones."""

    def refuse(_connected, _places):
        raise duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure")

    monkeypatch.setattr(parquet, "check_sizes", refuse)
    code, _out, err = query(capsys, results, "select 1")
    assert (code, err.splitlines()[0]) == (ExitCode.SETUP, "error: no memory is left")


def test_a_file_for_which_there_is_no_memory_is_not_damaged(results, monkeypatch):
    def refuse(*_more):
        raise duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure")

    folder = RunFolder(next(results.iterdir()))
    monkeypatch.setattr(parquet, "opened", refuse)
    with pytest.raises(MemoryError):
        folder.read_cell(folder.cells()[0])
    its_own_limit = duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block of size 8")
    assert parquet.check_memory(its_own_limit) is None


def test_a_run_of_another_user_is_left_out_with_a_warning_and_no_folder_of_theirs_is(
    capsys, results, tmp_path, monkeypatch
):
    """Their runs were left out silently: a count over all runs was one over some."""
    (run,) = results.iterdir()
    copied = copy_of(RunFolder(run), tmp_path)
    theirs, home = tmp_path / "20261130T142320Z-fixed-length-7a9584", tmp_path / "home"
    home.mkdir()
    copy_of(RunFolder(run), tmp_path / "more").path.rename(theirs)
    readable, opened = Path.stat, os.open

    def stat(path, **more):
        if path.parent in (theirs, home):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return readable(path, **more)

    def open_it(path, *more, **rest):
        if path == theirs:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *more, **rest)

    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(os, "open", open_it)
    code, out, err = query(capsys, tmp_path, "select run from cells", "--csv")
    assert (code, out.splitlines()) == (ExitCode.OK, ["run", copied.run_id])
    assert err == f"warning: run left out: {theirs}/cells: cannot be read: Permission denied\n"
    code, _out, err = query(capsys, tmp_path, "select 1", "--run", theirs.name)
    assert code == ExitCode.SETUP
    assert err.splitlines() == [
        f"error: {theirs}: may not be read: permission denied",
        f"hint: a run is made for its owner alone, who can share it: `chmod -R a+rX {theirs}`",
    ]


def test_a_folder_without_runs_is_an_error(capsys, tmp_path):
    code, _out, err = query(capsys, tmp_path, "select 1")
    assert code == ExitCode.USAGE
    assert err.splitlines()[0] == f"error: {tmp_path}: no runs here"


def test_json_has_each_column_or_none(capsys, results):
    code, out, _err = query(capsys, results, "select 1 as a, 2 as a", "--json")
    assert code == ExitCode.USAGE
    assert "two columns have the name a" in json.loads(out)["error"]
    assert query(capsys, results, "select 1 as a, 2 as a", "--csv")[1] == "a,a\n1,2\n"


def test_what_a_value_holds_is_json_too(capsys, results):
    sql = "select ['nan'::double, 1.0] as l, {'x': 'inf'::double} as s, map {'k': 'nan'::double} as m"
    _code, out, _err = query(capsys, results, sql, "--json")
    assert json.loads(out, parse_constant=pytest.fail) == [
        {"l": [None, 1.0], "s": {"x": None}, "m": {"k": None}}
    ]
