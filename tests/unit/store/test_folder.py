import errno
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.lib.recfunctions import drop_fields

from harness.errors import DamagedError, SetupError, SpecError
from harness.model import as_json
from harness.model.schema import RUN_FORMAT
from harness.records.layout import UNKNOWN, Outcome
from harness.records.request_table import NUMBERS, Expected, RequestTable
from harness.records.series import Samples, Telemetry
from harness.store import RunFolder, columns, open_run, parquet, samples, seal, stored_runs
from harness.store.confined import Confined
from harness.summary import summarise_folder
from tests.factories.documents import changed
from tests.factories.recorded import facts, records
from tests.factories.runs import copy_of

ROWS = [{"texts": [5, 9], "prompt": 7}, {"sent": None, "outcome": Outcome.DROPPED, "tokens": -1}]

OLD = {
    "requests": "b12ee53cd1ec",
    "events": "7d5a1655c5f5",
    "texts": "dc827ec855c9",
    "telemetry": "4691e35dd54d",
}


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path, "demo")


def equal(one, other):
    assert (one.requests == other.requests).all()
    assert (one.events == other.events).all()
    assert (one.texts, one.finish_reasons, one.errors) == (other.texts, other.finish_reasons, other.errors)


def test_records_come_back_as_they_were(folder):
    made = records(*ROWS)
    folder.write_cell(made, facts(cell="000-x"))
    back, told = folder.read_cell("000-x")
    equal(made, back)
    assert told == facts(cell="000-x")
    assert folder.cells() == ["000-x"]


def test_long_cells_are_written_in_pieces(folder, monkeypatch):
    monkeypatch.setattr(columns, "EVENTS_PER_ROW_GROUP", 3)
    made = records(*[{"texts": [1, 2, 3, 4]}] * 5)
    folder.write_cell(made, facts(cell="000-x"))
    equal(made, folder.read_cell("000-x")[0])


def test_a_cell_without_requests_can_be_stored(folder):
    folder.write_cell(records(), facts(cell="000-x"))
    assert len(folder.read_cell("000-x")[0].requests) == 0


def test_other_tools_read_names_and_nulls_not_codes(folder):
    folder.write_cell(records(*ROWS), facts(cell="000-x"))
    path = str(folder.cell_path("000-x") / "requests.parquet")
    rows = duckdb.execute("select outcome, sent_ns, phase from read_parquet($1)", [path]).fetchall()
    assert rows == [("ok", 0, "measure"), ("dropped", None, "measure")]


@pytest.mark.parametrize("group", [1, 100])
def test_pandas_keeps_integers_with_nulls(folder, monkeypatch, group):
    import pandas as pd  # half a second

    monkeypatch.setattr(columns, "EVENTS_PER_ROW_GROUP", group)
    folder.write_cell(records(*ROWS), facts(cell="000-x"))
    requests = pd.read_parquet(folder.cell_path("000-x") / "requests.parquet", engine="pyarrow")
    assert str(requests["sent_ns"].dtype) == "Int64"
    assert str(requests["worker"].dtype) == "Int16"
    assert requests["sent_ns"].isna().tolist() == [False, True]
    assert requests["outcome"].tolist() == ["ok", "dropped"]
    events = pd.read_parquet(folder.cell_path("000-x") / "events.parquet", engine="pyarrow")
    assert str(events["stamp_ns"].dtype) == "Int64"


def test_each_piece_of_a_long_cell_is_a_row_group_in_its_order(folder, monkeypatch):
    monkeypatch.setattr(columns, "EVENTS_PER_ROW_GROUP", 3)
    made = records(*[{"texts": [1, 2, 3, 4]}] * 5)
    folder.write_cell(made, facts(cell="000-x"))
    path = str(folder.cell_path("000-x") / "events.parquet")
    seqs = duckdb.execute("select seq from read_parquet($1)", [path]).fetchall()
    assert [seq for (seq,) in seqs] == made.events["seq"].tolist()
    assert [one.name for one in folder.cell_path("000-x").iterdir() if one.name.startswith(".")] == []


def test_a_name_with_wildcards_and_quotes_is_a_name(tmp_path):
    folder = RunFolder.create(tmp_path, "a[b]*'c é")
    made = records(*ROWS)
    folder.write_cell(made, facts(cell="000-x"))
    equal(made, folder.read_cell("000-x")[0])


def test_any_text_comes_back(folder):
    made = replace(records(*ROWS), texts=["a\0b\n'\"é😀", ""], errors=["", "NULL"])
    folder.write_cell(made, facts(cell="000-x"))
    equal(made, folder.read_cell("000-x")[0])


ADDED = ["replica", "first_reasoning_ns", "first_answer_ns", "reasoning_tokens"]  # since those sums


def digests(values):
    return hashlib.sha256(values).hexdigest()[:12]


def test_a_cell_that_fastparquet_wrote_is_read_bit_for_bit():
    """Of a published run, written with snappy by 0.1; the sums are of what fastparquet itself read."""
    files = Confined(Path(__file__).parent)
    back = columns.read_records(files, "parquet_data", closed_loop=True)
    series = samples.read_telemetry(files, "parquet_data").series
    texts = [list(back.texts), list(back.finish_reasons), list(back.errors), list(back.tool_calls)]
    read = {
        "requests": digests(drop_fields(back.requests, ADDED).tobytes()),
        "events": digests(back.events.tobytes()),
        "texts": digests(json.dumps(texts).encode()),
        "telemetry": digests(b"".join(s.at_ns.tobytes() + s.values.tobytes() for s in series.values())),
    }
    assert read == OLD
    assert all((back.requests[name] == UNKNOWN).all() for name in ADDED)


@pytest.fixture(scope="module")
def unsealed(tmp_path_factory):
    """A cell as of before 0.2: its files alone tell what is wrong with them."""
    folder = RunFolder.create(tmp_path_factory.mktemp("runs"), "demo")
    telemetry = Telemetry({"a": Samples(np.arange(9), np.arange(9.0))})
    folder.write_cell(records(*ROWS), facts(cell="000-x"), telemetry)
    (folder.path / seal.FILE).unlink()
    return folder


def test_samples_are_read_into_as_much_memory_each_however_many_series_there_are(tmp_path):
    count, files = 100, Confined(tmp_path)

    def bytes_per_sample(names):
        numbered = {str(n): Samples(np.arange(count), np.full(count, n)) for n in range(names)}
        files.make_folder("cell")
        samples.write_telemetry(Telemetry(numbered), files, "cell")
        tracemalloc.start()
        try:
            found = samples.read_telemetry(files, "cell").series
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert all((found[name].values == int(name)).all() for name in numbered)
        return most / (names * count)

    assert bytes_per_sample(160) < 1.5 * bytes_per_sample(40)


@pytest.mark.parametrize("name", ["requests", "events", "telemetry"])
@pytest.mark.parametrize("damage", ["empty", "cut", "other", "inside", "footer", "columns", "kinds"])
def test_a_damaged_file_is_one_error(unsealed, tmp_path, name, damage):
    folder = copy_of(unsealed, tmp_path)
    path = folder.cell_path("000-x") / f"{name}.parquet"
    data = path.read_bytes()
    broken = {
        "empty": b"",
        "cut": data[: len(data) // 2],
        "other": b"not parquet at all",
        "inside": data[:4] + bytes(len(data) // 3) + data[4 + len(data) // 3 :],
        "footer": data[:-40] + b"\xff" * 32 + data[-8:],
    }
    if damage in broken:
        path.write_bytes(broken[damage])
    else:
        name_of_first = "series" if damage == "kinds" else "x"
        duckdb.execute(f"copy (select 'a' as {name_of_first}, 'text' as seq, 'b' as at_ns) to '{path}'")
    with pytest.raises(SpecError, match="cannot be read"):
        folder.read_telemetry("000-x") if name == "telemetry" else folder.read_cell("000-x")


def test_a_sample_of_a_series_without_a_name_is_one_error(unsealed, tmp_path):
    folder = copy_of(unsealed, tmp_path)
    path = folder.cell_path("000-x") / "telemetry.parquet"
    rows = "select * from (values ('a', 0, 1.0), (null, 1, 2.0)) as t(series, at_ns, value)"
    duckdb.execute(f"copy ({rows}) to '{path}' (format parquet)")
    with pytest.raises(SpecError, match="a row has no series"):
        folder.read_telemetry("000-x")


@pytest.mark.parametrize("calls", ["[1]", "{}", "[", '[{"id": "c", "name": ["x"], "arguments": ""}]'])
def test_what_is_no_tool_call_is_one_error(folder, calls):
    folder.write_cell(replace(records(*ROWS), tool_calls=["", calls]), facts(cell="000-x"))
    with pytest.raises(SpecError, match="cannot be read"):
        folder.read_cell("000-x")


@pytest.fixture
def cell_asked(folder):
    """Of a measured cell that was asked what lies in this file."""
    folder.write_cell(records(*ROWS), facts(cell="000-x"))
    return lambda file: facts(cell="000-x", workload=changed(facts().workload, file=file))


@pytest.mark.parametrize(
    ("expected", "which", "why"),
    [
        ([Expected("label", {"labels": ["a"]})], 0, "missing required field `label`"),
        ([Expected("regex", 5)], 0, "Expected `str`, got `int`"),
        ([Expected("choice", 5)], 0, "Expected `array`, got `int`"),
        ([Expected("tool_call", ["look"])], 0, "Expected `object`, got `array`"),
        ([Expected("tongue", "x")], 0, "Invalid enum value 'tongue'"),
        ([Expected("json_object", None, 5)], 0, "Expected `str`, got `int`"),
        ([Expected("json_object")], 1, "nothing that is expected of an answer"),
        ([], 0, "nothing that is expected of an answer"),
    ],
)
def test_what_no_answer_can_be_held_to_is_one_error(folder, cell_asked, expected, which, why):
    numbers = [which if name == "expected" else -1 for name in NUMBERS]
    file = folder.write_requested("x", RequestTable.of([(numbers, "", ())], expected))
    with pytest.raises(SpecError, match=f"cannot be read: .*{why}"):
        folder.read_requested(cell_asked(file))


@pytest.mark.parametrize(
    ("times", "spaces"), [(100_001, 0), (65, 1 << 20), (1, 8 << 20)], ids=["lines", "bytes", "a long line"]
)
def test_a_small_workload_that_grows_is_one_error(folder, cell_asked, times, spaces):
    file = folder.write_requested("x", RequestTable.of([([-1] * len(NUMBERS), "", ())], []))
    *head, request = gzip.decompress((folder.path / file).read_bytes()).splitlines()
    lines = [*head, *[request + b" " * spaces] * times]
    (folder.path / file).write_bytes(gzip.compress(b"\n".join(lines), 1))
    (folder.path / seal.FILE).unlink()  # as of a run of before 0.2
    with pytest.raises(SpecError, match="hold more than a workload of this size can"):
        folder.read_requested(cell_asked(file))


def test_a_cell_in_flight_is_not_a_cell(folder):
    (folder.cell_path("000-x")).mkdir()
    columns.write_records(records(*ROWS), folder.files, "cells/000-x")
    assert folder.cells() == []


def test_what_is_not_finite_is_null(folder):
    folder.write_json(
        "x.json", {"a": float("nan"), "b": np.float64("inf"), "c": np.int64(3), "d": (1, np.arange(2))}
    )
    assert folder.read_json("x.json") == {
        "schema": RUN_FORMAT,
        "a": None,
        "b": None,
        "c": 3,
        "d": [1, [0, 1]],
    }


def test_a_full_disk_is_said_and_leaves_the_old_file(folder, monkeypatch):
    folder.write_json("x.json", {"a": 1})

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SetupError, match="no space left") as caught:
        folder.write_json("x.json", {"a": 2})
    assert "--out" in caught.value.hint
    assert folder.read_json("x.json")["a"] == 1
    with pytest.raises(SetupError, match="no space left"):
        folder.write_cell(records(*ROWS), facts(cell="000-x"))
    assert folder.cells() == []
    assert not list(folder.path.rglob(".*"))


def test_a_disk_that_is_full_for_duckdb_is_said(folder, monkeypatch):
    """/dev/full takes nothing, in the system's own words."""

    monkeypatch.setattr(parquet, "by_descriptor", lambda _descriptor: "/dev/full")
    with pytest.raises(SetupError, match="no space left"):
        folder.write_cell(records(*ROWS), facts(cell="000-x"))
    assert not list(folder.path.rglob(".*"))


def test_a_run_is_found_by_path_name_or_beginning(folder, tmp_path):
    assert open_run(str(folder.path), tmp_path) == folder
    assert open_run(folder.run_id, tmp_path) == folder
    assert open_run(folder.run_id[:20], tmp_path) == folder
    with pytest.raises(SpecError, match="no such run"):
        open_run("nothing", tmp_path)
    RunFolder.create(tmp_path, "demo")
    with pytest.raises(SpecError, match="matches several runs"):
        open_run("2", tmp_path)
    (folder.path / "manifest.json").touch()
    with pytest.raises(SpecError, match="is a file, not the folder of a run") as caught:
        open_run(str(folder.path / "manifest.json"), tmp_path)
    assert caught.value.hint == f"the folder of its run is {folder.path}"


def test_a_run_is_found_by_its_age(tmp_path, monkeypatch):
    """A renamed run has no time in its name, and the folder of the history is no run."""
    names = [f"2026112{day}T101500Z-demo-00000{day}" for day in (1, 2, 3)]
    for name in (*names, "zero", "history"):
        (tmp_path / name).mkdir()
        if name != "history":
            (tmp_path / name / "manifest.json").touch()
    for before, name in enumerate(reversed(names)):
        assert open_run(f"latest~{before}", tmp_path).run_id == name
    assert open_run("latest", tmp_path).run_id == names[-1]
    monkeypatch.chdir(tmp_path.parent)
    assert open_run(f"{tmp_path.name}/latest~1", Path("elsewhere")).run_id == names[1]
    with pytest.raises(SpecError, match=r"latest~3: 3 runs in "):
        open_run("latest~3", tmp_path)
    with pytest.raises(SpecError, match="no run in elsewhere"):
        open_run("latest", Path("elsewhere"))
    with pytest.raises(SpecError, match="no such run"):
        open_run("latest~", tmp_path)
    (tmp_path.parent / "latest").touch()  # nor is a file of that name, whatever runs there are
    with pytest.raises(SpecError):
        open_run("latest", tmp_path)
    (tmp_path.parent / "latest").unlink()
    (tmp_path.parent / "latest").mkdir()  # a folder of that name is what it says
    assert open_run("latest", tmp_path).path == Path("latest")


def test_runs_of_one_second_are_in_the_order_in_which_they_were_written(tmp_path):
    """`bench compare latest~1 latest` gave the sign of a difference by chance after two quick imports."""
    names = [f"20261121T101500Z-{scenario}-00000{number}" for number, scenario in enumerate("cab")]
    for at_s, name in enumerate(names):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").touch()
        os.utime(tmp_path / name / "manifest.json", (at_s, at_s))
    assert [open_run(f"latest~{before}", tmp_path).run_id for before in (2, 1, 0)] == names
    assert [run.run_id for run in stored_runs(tmp_path)] == names, "`bench list runs` had another order"


def test_what_is_a_part_of_a_run_names_the_folder_of_the_run(folder, tmp_path, monkeypatch):
    (folder.path / "manifest.json").touch()
    cell = folder.path / "cells" / "000-x-c1-r0"
    cell.mkdir(parents=True)
    (cell / "cell.json").touch()
    monkeypatch.chdir(cell)
    for path in (cell / "cell.json", cell, cell.parent, "cell.json", "."):
        with pytest.raises(SpecError, match=r"not the folder of a run|is a part of a run") as caught:
            open_run(str(path), tmp_path)
        assert caught.value.hint == f"the folder of its run is {folder.path}"
    with pytest.raises(SpecError, match="is a part of a run, not its folder"):
        open_run(f"{folder.run_id}/cells", tmp_path)
    assert open_run(str(folder.path), tmp_path) == folder


def test_the_history_next_to_runs_is_none(tmp_path):
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "runs.jsonl").touch()
    with pytest.raises(SpecError, match="is the history of runs, and none itself") as caught:
        open_run(str(tmp_path / "history"), tmp_path)
    assert caught.value.hint == f"name runs alone: {tmp_path}/2*"


def test_a_folder_of_runs_is_none(folder, tmp_path):
    (folder.path / "manifest.json").touch()
    with pytest.raises(SpecError, match="holds runs, and is none itself") as caught:
        open_run(str(folder.path.parent), tmp_path)
    assert caught.value.hint == f"name one of them: `bench list runs --out {folder.path.parent}`"
    spaced = tmp_path / "my runs"
    (spaced / "run").mkdir(parents=True)
    (spaced / "run" / "manifest.json").touch()
    with pytest.raises(SpecError) as caught:
        open_run(str(spaced), tmp_path)
    assert caught.value.hint == f"name one of them: `bench list runs --out '{spaced}'`"


def test_folders_that_are_not_runs(tmp_path, folder):
    with pytest.raises(SpecError, match=r"has no manifest\.json"):
        RunFolder(tmp_path).read_json("manifest.json")
    (folder.path / seal.FILE).unlink()
    (folder.path / "manifest.json").write_text("{")
    with pytest.raises(SpecError, match="cannot be read"):
        folder.read_json("manifest.json")
    (folder.path / "manifest.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(SpecError, match="schema 99; this version reads schemas 1 to 2"):
        folder.read_json("manifest.json")


def test_a_folder_is_held_by_one_and_who_asks_takes_it_from_nobody(folder):
    with folder.held():
        assert folder.is_held
        with pytest.raises(SpecError, match="another bench is measuring this run"), folder.held():
            pass
    assert folder.is_held is False
    asking = os.open(folder.path, os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    threading.Timer(0.05, os.close, [asking]).start()
    with folder.held():
        assert folder.is_held


def test_a_copy_of_a_cell_is_no_cell_of_its_own(folder):
    (folder.path / seal.FILE).unlink()  # as of a run of before 0.2
    folder.write_cell(records(*ROWS), facts(cell="000-x"))
    shutil.copytree(folder.cell_path("000-x"), folder.cell_path("000-x (copy)"))
    with pytest.raises(SpecError, match=r"000-x \(copy\): is of the cell 000-x"):
        folder.read_cell("000-x (copy)")


def test_a_damaged_cell_says_which(folder):
    folder.write_cell(records(*ROWS), facts(cell="000-x"))
    (folder.cell_path("000-x") / "events.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedError, match=r"000-x/events\.parquet: is damaged"):
        folder.read_cell("000-x")
    (folder.path / seal.FILE).unlink()
    with pytest.raises(SpecError, match="records cannot be read"):
        folder.read_cell("000-x")


def test_the_summary_is_recomputed_from_the_folder_alone(folder):
    made = records(
        *[
            {"sent": 10 * i, "texts": [10 * i + 3, 10 * i + 5, 10 * i + 7], "prompt": 50, "cached": 25}
            for i in range(40)
        ]
    )
    folder.write_cell(made, facts(cell="000-x-c1-r0", planned=40))
    folder.write_json(
        "manifest.json",
        {
            "run": folder.run_id,
            "created_utc": "2026-11-20T08:00:00+00:00",
            "state": "complete",
            "backends": {"x": {}},
            "warnings": [],
            "workload_sha256": "0" * 64,
            "scenario": {"scenario": {"name": "demo", "purpose": "p"}},
            "model": {"name": "m", "title": "M"},
        },
    )
    summary = summarise_folder(folder)
    (cell,) = summary.cells
    assert (summary.state, summary.simulated) == ("complete", True)
    assert cell.ttft_ms.p50 == 3
    assert cell.ttft_ms.p99 is None
    assert cell.null_reasons["ttft_ms.p99"] == "40 samples; p99 needs 299"
    assert cell.tpot_ms.p90 == 2
    assert cell.e2e_ms.mean == 7
    assert cell.prefix_cache_hit_rate == 0.5
    assert as_json(cell.requests) == {
        "planned": 40,
        "unsent": 0,
        "sent": 40,
        "ok": 40,
        "failed": 0,
        "dropped": 0,
        "cancelled": 0,
        "resent": None,
        "warmup": 0,
        "outcomes": {"ok": 40},
    }
    assert as_json(cell.output_tokens) == {
        "total": 120,
        "source": "usage",
        "tokens_per_event": 1.0,
        "unknown_gaps": 0,
    }

    folder.write_cell(made, facts(cell="001-x-c8-r0"))
    (folder.cell_path("001-x-c8-r0") / "events.parquet").write_bytes(b"PAR1")
    damaged = summarise_folder(folder)
    assert damaged.cells == summary.cells
    assert [warning.code for warning in damaged.warnings] == ["cell-damaged"]
