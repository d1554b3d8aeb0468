"""`bench query`: SQL over runs, through the whole command."""

import csv
import gzip
import io
import json
import shlex
import shutil
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.store import RunFolder
from tests.factories.runs import TWO, Shape, make_run
from tests.long import others_long

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "results" / "published"
RUN = "20261120T123837Z-shared-prefix-8511d8"
OTHER = "20261120T070251Z-shared-prefix-a8d2cb"
CLASSED = "20261127T091907Z-speculative-a4206e"  # requests of two classes


@pytest.fixture
def results(tmp_path):
    """The first four cells of two runs of 0.1."""
    for name in (RUN, OTHER):
        left = shutil.ignore_patterns("plots", "logs", "report.html", "workloads", "00[4-9]-*", "01?-*")
        shutil.copytree(PUBLISHED / name, tmp_path / name, ignore=left)
    return tmp_path


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A run that is read in milliseconds, for what fails whatever the runs are."""
    above = tmp_path_factory.mktemp("results")
    make_run(above, Shape(TWO[:1], (1,), requests=8))
    return above


def query(capsys, *words):
    code = main(["query", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def rows(capsys, results, sql, *words):
    code, out, err = query(capsys, sql, "--json", "--out", results, *words)
    assert (code, err) == (ExitCode.OK, "")
    return json.loads(out)


def test_cells_are_those_of_the_summaries(capsys, results):
    found = rows(capsys, results, "select * from cells order by run, cell")
    wanted = [
        (
            run,
            cell["cell"],
            cell["label"],
            cell["load"]["value"],
            cell["validity"]["verdict"],
            cell["ttft_ms"],
        )
        for run in (OTHER, RUN)
        for cell in json.loads((results / run / "summary.json").read_text())["cells"]
    ]
    assert [
        (one["run"], one["cell"], one["label"], one["load_value"], one["validity"], one["ttft_ms_p50"])
        for one in found
    ] == [(*one[:-1], one[-1]["p50"]) for one in sorted(wanted, key=lambda one: one[:2])]


def test_requests_of_old_folders_start_where_bench_counts_from(capsys, results):
    """Their files have no start_ns, and nothing that only 0.2 records."""
    folder = RunFolder(results / RUN)
    cell = folder.cells()[0]
    sql = f"select start_ns, retransmits from requests where cell = '{cell}' order by seq"
    found = rows(capsys, results, sql, "--run", RUN)
    assert [one["start_ns"] for one in found] == folder.read_cell(cell)[0].requests["start_ns"].tolist()
    assert {one["retransmits"] for one in found} == {None}


@pytest.mark.parametrize("view", ["requests", "events", "telemetry"])
def test_each_row_has_its_run_and_cell(capsys, results, view):
    found = rows(capsys, results, f"select distinct run, cell from {view} order by all")
    wanted = sorted((path.parts[-4], path.parts[-2]) for path in results.glob(f"*/cells/*/{view}.parquet"))
    assert wanted
    assert [(one["run"], one["cell"]) for one in found] == wanted


def test_integers_are_exact_and_csv_has_a_header(capsys, results):
    sql = "select max(stamp_ns) as last, null as nothing, 'a,b' as word, 9007199254740993 as big from events"
    code, out, _err = query(capsys, sql, "--csv", "--out", results)
    assert code == ExitCode.OK
    header, values = csv.reader(io.StringIO(out))
    assert header == ["last", "nothing", "word", "big"]
    assert int(values[0]) > 0
    assert values[1:] == ["", "a,b", "9007199254740993"]


def test_a_table_fits_in_80_columns_and_says_what_it_leaves_out(capsys, results, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = query(capsys, "select * from requests limit 250", "--out", results)
    assert code == ExitCode.OK
    assert max(map(len, out.splitlines())) <= 80
    assert "50 more rows" in err


def test_no_rows_are_said(capsys, results):
    assert "(no rows)" in query(capsys, "select run from cells where false", "--out", results)[1]
    assert rows(capsys, results, "select run from cells where false") == []


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("selec 1", None),
        ("selec 1", "--json"),
        ("selec 1", "--csv"),
        ("select nothing from cells", None),
        ("", None),
        ("select 1; select 2", None),
        ("copy cells to 'x.csv'", None),
        ("create table x as select 1", None),
        ("set threads = 4", None),
        ("select * from read_csv('/etc/passwd')", None),
        ("select * from 'http://127.0.0.1:1/x.parquet'", None),
        ("select cast('a' as integer)", None),  # while rows are fetched
        ("select cast('a' as integer)", "--json"),
        ("select cast('a' as integer)", "--csv"),
    ],
)
def test_what_cannot_be_asked_is_one_error(capsys, small, sql, form):
    words = [sql, "--out", small, *([form] if form else [])]
    code, out, err = query(capsys, *words)
    assert code == ExitCode.USAGE
    assert len([line for line in err.splitlines() if line.startswith("error: SQL: ")]) == 1
    assert "\\n" not in err
    if form == "--json":
        assert json.loads(out)["error"].startswith("SQL: ")
    else:
        assert out == ""


CLASSES = """select kind, turn, count(*) as requests, sum(max_tokens) as most, max(session) as session
    from requests join asked using (run, cell, seq) group by all order by kind, turn"""


def test_requests_are_told_apart_by_what_they_asked(capsys):
    """Their figures by class and turn, which the file of requests does not have."""
    run, lines = PUBLISHED / CLASSED, []
    for file in sorted(run.glob("workloads/*.jsonl.gz")):
        lines += [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()[1:]]
    found = rows(
        capsys, PUBLISHED, "select * from asked where cell like '000-%' order by seq", "--run", CLASSED
    )
    assert [row["seq"] for row in found] == list(range(len(found)))
    names = ("kind", "session", "turn", "max_tokens", "content_tokens", "at_ns")
    kept = [tuple(line.get(name) for name in names) for line in lines]
    assert {tuple(row[name] for name in names) for row in found} <= set(kept)
    assert len({row["kind"] for row in found}) > 1
    counted = rows(capsys, PUBLISHED, CLASSES, "--run", CLASSED)
    sent = rows(capsys, PUBLISHED, "select count(*) as n from requests", "--run", CLASSED)
    assert sum(row["requests"] for row in counted) == sent[0]["n"]
    assert rows(capsys, PUBLISHED, "select * from asked", "--run", OTHER) == []  # it kept none


def test_the_list_of_views_is_whole(capsys, small):
    """Also those whose files a query that does not name them leaves unread."""
    names = {row["name"] for row in rows(capsys, small, "show tables")}
    assert {"cells", "verdicts", "requests", "events", "telemetry", "asked"} <= names


def test_a_run_with_a_damaged_workload_is_left_out_whole(capsys, tmp_path):
    shutil.copytree(PUBLISHED / CLASSED, tmp_path / CLASSED, ignore=shutil.ignore_patterns("plots", "logs"))
    shutil.copytree(PUBLISHED / RUN, tmp_path / RUN, ignore=shutil.ignore_patterns("plots", "logs"))
    file = next((tmp_path / CLASSED).glob("workloads/*.jsonl.gz"))
    file.write_bytes(file.read_bytes()[:-9])
    runs = "select distinct run from cells union select run from asked"
    code, out, err = query(capsys, "--out", tmp_path, "--json", runs)
    assert (code, json.loads(out)) == (ExitCode.OK, [{"run": RUN}])
    assert f"warning: run left out: {file}" in err


def test_a_query_changes_nothing(capsys, results):
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    rows(capsys, results, "select count(*) from events e join requests r using (run, cell, seq)")
    some = next(results.glob("*/cells/*/events.parquet"))
    assert query(capsys, f"copy cells to '{some}'", "--out", results)[0] == ExitCode.USAGE
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*")} == before


def damage(results, what):
    if what == "summary":
        (results / OTHER / "summary.json").write_text("{")
    else:
        next((results / OTHER / "cells").glob(f"*/{what}.parquet")).write_bytes(b"not parquet at all")


@pytest.mark.parametrize("what", ["summary", "requests", "events"])
def test_a_damaged_run_is_left_out_with_a_warning(capsys, results, what):
    damage(results, what)
    sql = "select distinct run from cells union select distinct run from requests"
    code, out, err = query(capsys, sql, "--json", "--out", results)
    assert code == ExitCode.OK
    assert [one["run"] for one in json.loads(out)] == [RUN]
    assert err.startswith("warning: ")
    assert OTHER in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("what", ["summary", "requests", "events"])
def test_a_damaged_run_that_was_named_is_an_error(capsys, results, what):
    damage(results, what)
    code, _out, err = query(capsys, "select 1", "--out", results, "--run", RUN, "--run", OTHER)
    assert code == ExitCode.USAGE
    assert OTHER in err


def test_no_run_is_an_error(capsys, tmp_path):
    code, _out, err = query(capsys, "select 1", "--out", tmp_path)
    assert code == ExitCode.USAGE
    assert "no runs here" in err


def test_only_damaged_runs_are_an_error(capsys, results):
    shutil.rmtree(results / RUN)
    damage(results, "summary")
    code, _out, err = query(capsys, "select 1", "--out", results)
    assert code == ExitCode.USAGE
    assert "no run can be read" in err


def documented():
    """The commands that are shown with what they print."""
    for block in (ROOT / "docs" / "query.md").read_text().split("```\n$ bench ")[1:]:
        command, shown = block.partition("\n```")[0].rsplit('"\n', 1)
        yield shlex.split(f'{command}"'), shown


DOCUMENTED = list(documented())


@pytest.mark.parametrize(
    ("words", "shown"), list(others_long(DOCUMENTED, lambda *case: case in DOCUMENTED[:2]))
)
def test_the_page_shows_what_bench_prints(capsys, monkeypatch, words, shown):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) == ExitCode.OK
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown.splitlines()
