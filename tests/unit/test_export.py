"""`bench export`: the rows of runs, as other programs read them."""

import csv
import io
import json

import pytest
from test_query import OTHER, RUN, results

from harness.cli.main import main
from harness.errors import ExitCode
from harness.store import RunFolder

__all__ = ["results"]


def export(capsys, *words):
    code = main(["export", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_cells_are_those_of_the_summaries_in_the_order_of_the_runs(capsys, results):
    code, out, err = export(capsys, OTHER, RUN, "--out", results)
    assert (code, err) == (ExitCode.OK, "")
    wanted = [
        (run, cell["cell"], cell["ttft_ms"]["p50"])
        for run in (OTHER, RUN)
        for cell in json.loads((results / run / "summary.json").read_text())["cells"]
    ]
    found = [(row["run"], row["cell"], float(row["ttft_ms_p50"] or "nan")) for row in read_csv(out)]
    assert [one[:2] for one in found] == [one[:2] for one in wanted]
    assert found[0] == wanted[0]


@pytest.mark.parametrize("what", ["requests", "events"])
def test_records_are_exported_in_both_formats_alike(capsys, results, tmp_path, what):
    file = tmp_path / "rows.jsonl"
    words = (results / RUN, "--what", what)
    assert export(capsys, *words, "--format", "jsonl", "--to", file) == (ExitCode.OK, "", "")
    _code, out, _err = export(capsys, *words, "--format", "csv")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows = read_csv(out)
    assert [list(line) for line in lines[:1]] == [list(rows[0])]
    assert len(lines) == len(rows)
    folder = RunFolder(results / RUN)
    records = [folder.read_cell(name)[0] for name in folder.cells()]
    assert len(lines) == sum(len(getattr(one, what)) for one in records)
    first = getattr(records[0], what)
    name = "sent_ns" if what == "requests" else "stamp_ns"
    assert [line[name] for line in lines[:5]] == [int(value) for value in first[name][:5]]


def test_what_cannot_be_read_or_written_is_one_error(capsys, results, tmp_path):
    code, out, err = export(capsys, "nosuch", "--out", results)
    assert (code, out) == (ExitCode.USAGE, "")
    assert "nosuch" in err
    code, _out, err = export(capsys, results / RUN, "--to", tmp_path / "no" / "such" / "folder.csv")
    assert code == ExitCode.SETUP
    assert "folder.csv" in err
    cell = next((results / RUN / "cells").iterdir()) / "requests.parquet"
    cell.write_bytes(b"PAR1 damaged")
    code, out, err = export(capsys, results / RUN)
    assert (code, out) == (ExitCode.USAGE, "")
    assert RUN in err
