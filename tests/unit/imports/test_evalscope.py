"""Databases of `evalscope perf`: a file of SQLite is somebody's program, and only its rows are read."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness.cli.commands.imports import results_at
from harness.errors import SpecError
from harness.imports import read
from harness.records.layout import Outcome
from tests.factories import foreign
from tests.unit.imports.test_bad_files import refused

CAPTURE = Path(__file__).resolve().parents[2] / "captures" / "imports" / "evalscope"
NAMES = ("benchmark_data.db", "benchmark_summary.json", "benchmark_args.json")


@pytest.fixture
def database(tmp_path):
    for name in NAMES:
        shutil.copy(CAPTURE / name, tmp_path)
    return tmp_path / NAMES[0]


def change(path, *commands):
    with closing(sqlite3.connect(path)) as opened:
        for command in commands:
            opened.execute(command)
        opened.commit()


def test_a_database_alone_names_neither_its_load_nor_its_model(database):
    for name in NAMES[1:]:
        database.with_name(name).unlink()
    _, (taken,) = read(database)
    assert (taken.load_known, taken.load.point.label, taken.model) == (False, "u1", None)
    assert len(taken.records.requests) == 12


@pytest.mark.parametrize(("slots", "rate", "label"), [(-1, 10.0, "r10"), (8, -1.0, "c8"), (8, 10.0, "r10")])
def test_a_load_is_a_rate_or_a_number_of_users_and_minus_one_is_none(database, slots, rate, label):
    text = database.with_name(NAMES[1]).read_text()
    text = text.replace('"Concurrency": 4', f'"Concurrency": {slots}')
    database.with_name(NAMES[1]).write_text(text.replace('(req/s)": -1.0', f'(req/s)": {rate}'))
    for name in NAMES[:2]:
        _, (taken,) = read(database.with_name(name))
        assert taken.load.point.label == label
        assert taken.variant == ("max8" if label == "r10" and slots == 8 else "")


def test_failed_requests_stay_failed_and_one_without_text_is_empty(database):
    failed = "success = 0, latency = NULL, first_chunk_latency = NULL, completion_tokens = NULL"
    empty = "first_chunk_latency = 0, inter_token_latencies = '[]'"
    for row, values in ((2, failed), (3, empty)):
        change(database, f"UPDATE result SET {values} WHERE rowid = {row}")
    database.with_name(NAMES[1]).unlink()
    _, (taken,) = read(database)
    assert list(taken.records.requests["outcome"][:4]) == [
        Outcome.OK, Outcome.HTTP_ERROR, Outcome.EMPTY, Outcome.OK,
    ]  # fmt: skip


def test_an_answer_without_text_is_a_success_to_the_tool_and_its_ttft_is_zero(database):
    with closing(sqlite3.connect(database)) as opened:
        ((first_s,),) = opened.execute("SELECT first_chunk_latency FROM result WHERE rowid = 3")
    change(
        database, "UPDATE result SET first_chunk_latency = 0, inter_token_latencies = '[]' WHERE rowid = 3"
    )
    with pytest.raises(SpecError, match="Avg TTFT"):
        read(database)
    summary = database.with_name(NAMES[1])
    summary.write_text(summary.read_text().replace("102.88", f"{102.88 - 1e3 * first_s / 12:.2f}"))
    _, (taken,) = read(database)
    assert (taken.planned, taken.load.slots) == (12, 4)


CHANGES = [
    pytest.param("DELETE FROM result WHERE rowid = 5", "Success Requests", id="a row less"),
    pytest.param("DELETE FROM result", "holds no request", id="no row"),
    pytest.param("UPDATE result SET first_chunk_latency = first_chunk_latency * 2", "Avg TTFT", id="unit"),
    pytest.param("UPDATE result SET start_time = 'x'", "is not what evalscope perf writes", id="text"),
    pytest.param("UPDATE result SET start_time = 9e999", "not in the order", id="infinite"),
    pytest.param("UPDATE result SET inter_token_latencies = '[1,'", "inter_token_latencies", id="gaps"),
    pytest.param(
        "UPDATE result SET inter_token_latencies = '[-1e-3, 2e-3]'", "run backwards", id="backwards"
    ),
    pytest.param("UPDATE result SET completion_tokens = -4", "a count of -4", id="count"),
    pytest.param("UPDATE result SET latency = NULL", "latency is None", id="no latency"),
    pytest.param("UPDATE result SET is_stream = 0", "no answer has a first token", id="not streamed"),
    pytest.param("ALTER TABLE result DROP COLUMN is_stream", "no such column", id="other columns"),
    pytest.param("ALTER TABLE result RENAME TO r", "no such table", id="no table"),
]


@pytest.mark.parametrize(("command", "why"), CHANGES)
def test_rows_that_cannot_be_are_refused(database, command, why):
    change(database, command)
    assert why in refused(database)


VIEWS = [
    "WITH RECURSIVE n(v) AS (SELECT 1.0 UNION ALL SELECT v + 1 FROM n) SELECT v",
    "SELECT randomblob(1000000000)",
    "SELECT load_extension('x')",
    "SELECT v FROM other",
]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_in_place_of_the_table_is_not_run(database, view):
    columns = ("start_time", "inter_token_latencies", "success", "completed_time", "latency",
               "first_chunk_latency", "prompt_tokens", "completion_tokens", "is_stream")  # fmt: skip
    first, _, source = view.rpartition("SELECT ")
    value, _, table = source.partition(" FROM ")
    same = ", ".join(f"{value} AS {name}" for name in columns)
    table = f" FROM {table}" if table else " FROM n" if "RECURSIVE" in first else ""
    change(
        database, "ALTER TABLE result RENAME TO other", f"CREATE VIEW result AS {first}SELECT {same}{table}"
    )
    assert "is not what evalscope perf writes" in refused(database)


@pytest.mark.parametrize("kept", [20, 3000, 9000])
def test_a_database_that_was_cut_off(database, kept):
    database.write_bytes(database.read_bytes()[:kept])
    refused(database)


def test_a_database_that_was_not_closed(database):
    database.with_name("benchmark_data.db-journal").write_bytes(b"x")
    assert "was not closed: benchmark_data.db-journal" in refused(database)


def test_a_database_is_never_written(database):
    database.chmod(0o400)
    before = {path.name: path.read_bytes() for path in database.parent.iterdir()}
    read(database)
    assert {path.name: path.read_bytes() for path in database.parent.iterdir()} == before


def test_a_database_of_another_name_is_a_file_of_results_too(database):
    other = database.rename(database.with_name("monday.sqlite"))
    assert results_at(str(other)).files == [other]


def test_percentiles_alone_name_the_file_that_has_all(tmp_path):
    row = {"Percentiles": "50%", "Latency (s)": 0.1}
    with pytest.raises(SpecError, match="has the percentiles of evalscope perf alone") as caught:
        read(foreign.write(tmp_path / "benchmark_percentile.json", [row]))
    assert "import benchmark_summary.json" in caught.value.hint


def test_figures_of_answers_that_were_not_streamed_are_refused(tmp_path):
    text = (CAPTURE / NAMES[1]).read_text().replace('"Stream Requests": 12', '"Stream Requests": 0')
    (tmp_path / NAMES[1]).write_text(text)
    assert "no answer was streamed" in refused(tmp_path / NAMES[1])
