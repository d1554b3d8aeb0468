"""Columns of a file, a part of the rows at a time."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from harness.store import parquet
from harness.store.confined import Confined

ROWS = 7
FILE = "some.parquet"


@pytest.fixture
def files(tmp_path):
    """Three row groups."""
    made = Confined(tmp_path)
    numbers, kinds = np.arange(ROWS), np.array([0, 1, 1, 0, 1, 0, 0])
    parts = (
        {"n": parquet.integers(numbers[rows], 6), "kind": parquet.named(kinds[rows], ["a", "b"])}
        for rows in (slice(0, 3), slice(3, 6), slice(6, None))
    )
    parquet.write(made, FILE, parts)
    return made


@pytest.mark.parametrize("most", [1, 2, 3, 4, ROWS, 100])
def test_parts_are_in_order_whatever_the_row_groups(files, monkeypatch, most):
    monkeypatch.setattr(parquet, "_GROUP", most)
    with parquet.reading(files, FILE) as source:
        wanted = {"n": "coalesce(n, -1)", "kind": parquet.code_of("kind", ["b", "a"])}
        parts = list(source.groups(wanted))
    assert [len(part["n"]) for part in parts] == [most] * (ROWS // most) + [ROWS % most] * (ROWS % most > 0)
    assert np.concatenate([part["n"] for part in parts]).tolist() == [0, 1, 2, 3, 4, 5, -1]
    assert np.concatenate([part["kind"] for part in parts]).tolist() == [1, 0, 0, 1, 0, 1, 1]


def test_a_null_is_refused(files):
    with pytest.raises(ValueError, match="a row has no n"), parquet.reading(files, FILE) as source:
        list(source.groups({"n": "n"}))


def test_a_name_that_is_none_of_them_is_refused(files):
    with pytest.raises(ValueError, match="'b'"), parquet.reading(files, FILE) as source:
        list(source.groups({"kind": parquet.code_of("kind", ["a", "c"])}))


@pytest.mark.parametrize("rows", [ROWS + 1, ROWS - 1, 1])
def test_a_file_that_declares_more_rows_than_it_has_or_fewer_is_refused(files, rows):
    declared = rf"{rows} rows are declared"
    with pytest.raises(ValueError, match=declared), parquet.reading(files, FILE) as source:
        list(replace(source, rows=rows).groups({"n": "coalesce(n, -1)"}))


def test_a_file_is_read_without_pandas(files, tmp_path):
    """It takes a second to load, and every report, comparison and check of a run begins with a file."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom harness.store import parquet\n"
        "from harness.store.confined import Confined\n"
        "with parquet.reading(Confined(Path(sys.argv[1])), sys.argv[2]) as source:\n"
        "    read = list(source.groups({'n': 'coalesce(n, -1)'})), source.texts(['kind'])\n"
        "print(len(read[1][0]), 'pandas' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), FILE], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(ROWS), "False"]
