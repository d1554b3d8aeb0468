"""A damaged file of a run is named and left out: no byte of it changes a figure in silence."""

import json
import os
import random
import threading
from contextlib import suppress

import numpy as np
import pytest

from harness.cli.main import main
from harness.errors import DamagedError, ExitCode
from harness.records.request_table import NUMBERS, RequestTable
from harness.records.series import Samples, Telemetry
from harness.store import RunFolder, seal
from harness.store.history import history_path
from harness.summary import summarise_folder
from tests.factories.recorded import facts, records
from tests.factories.runs import SMALL, copy_of, make_run

ROWS = [{"sent": 0, "texts": [3, 5]}, {"sent": 1, "texts": [4, 9]}]
CELLS = ("000-llamacpp-c2-r0", "001-llamacpp@no-prefix-cache-c2-r0")


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """With checksums."""
    folder = make_run(tmp_path_factory.mktemp("runs"), SMALL)
    seal.begin(folder.files)
    files = [path for path in folder.path.rglob("*") if path.is_file() and path.name != seal.FILE]
    names = [path.relative_to(folder.path).as_posix() for path in files]
    seal.enter(folder.files, {name: folder.files.sha256(name) for name in names})
    return folder


@pytest.fixture
def run(whole_run, tmp_path, without_plots):
    """A copy to be damaged."""
    return copy_of(whole_run, tmp_path)


@pytest.fixture
def folder(tmp_path):
    made = RunFolder.create(tmp_path, "x")
    made.write_json("manifest.json", {"a": 1})
    telemetry = Telemetry({"a": Samples(np.array([1]), np.array([2.0]))})
    made.write_cell(records(*ROWS), facts(cell="000-x"), telemetry)
    return made


def problems(folder):
    return {fault.path: fault.what for fault in seal.faults(folder.files)[1]}


def flip(path, rng):
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def summarised(folder):
    """Its cells, and what is said of those left out; of a folder that cannot be read at all why."""
    try:
        found = summarise_folder(folder)
    except DamagedError as error:
        return [], str(error)
    return found.cells, str(found.warnings)


def test_every_file_is_entered_as_it_is_written(folder):
    names = {path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file()}
    count, faults = seal.faults(folder.files)
    assert (count, faults) == (len(names - {seal.FILE}), [])
    cell = {
        f"cells/000-x/{name}"
        for name in ("cell.json", "events.parquet", "requests.parquet", "telemetry.parquet")
    }
    assert names - {seal.FILE} == cell | {"manifest.json"}


@pytest.mark.parametrize("name", ["cell.json", "requests.parquet", "events.parquet"])
@pytest.mark.parametrize("damage", ["flip", "empty", "half", "gone"])
def test_a_damaged_file_of_a_cell_leaves_that_cell_out_and_says_so(run, name, damage):
    whole = run.read_summary()
    path = run.cell_path(CELLS[0]) / name
    if damage == "gone":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(
            {
                "flip": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
                "empty": b"",
                "half": data[: len(data) // 2],
            }[damage]
        )
    assert list(problems(run)) == [f"cells/{CELLS[0]}/{name}"]
    found = summarise_folder(run)
    assert [cell.cell for cell in found.cells] == [CELLS[1]]
    assert found.cells[0].ttft_ms == whole.cells[1].ttft_ms
    if (damage, name) != ("gone", "cell.json"):  # then there is no such cell
        (warning,) = [one for one in found.warnings if one.code == "cell-damaged"]
        assert f"{CELLS[0]}/{name}" in warning.text


def test_flips_anywhere_are_never_silent(run, capsys):
    """Each file, several places: the figures are the same, or a file is named; never a traceback.

    The commands find a file by its checksum, wherever it is flipped; the checksums themselves are parsed, and
    there the place matters.
    """
    rng = random.Random(0)
    argument, figures = str(run.path), ["compare", str(run.path), "--json", "--force"]
    main(figures)
    compared = capsys.readouterr().out
    whole = {cell.cell: cell for cell in summarise_folder(run).cells}
    files = [run.path / name for name in json.loads((run.path / seal.FILE).read_bytes())["files"]]
    for path in [*files, run.path / seal.FILE]:
        for number in range(3):
            data = path.read_bytes()
            flip(path, rng)
            cells, said = summarised(run)
            assert all(whole[cell.cell] == cell for cell in cells)
            assert len(cells) == len(whole) or path.name in said
            if number and path.name != seal.FILE:
                assert list(problems(run)) == [path.relative_to(run.path).as_posix()]
            else:
                assert main(["verify", argument]) in (ExitCode.LIMIT_FAILED, ExitCode.USAGE)
                verified = capsys.readouterr()
                assert path.name in verified.out + verified.err
                if main(figures) != ExitCode.USAGE:
                    assert capsys.readouterr().out == compared
                else:
                    assert path.name in capsys.readouterr().err
            path.write_bytes(data)
    assert main(["verify", argument]) == ExitCode.OK


def test_a_report_of_a_damaged_cell_names_it(run):
    (run.cell_path(CELLS[0]) / "requests.parquet").write_bytes(b"torn")
    assert main(["report", str(run.path)]) == ExitCode.OK
    for name in ("table.txt", "table.md", "report.html"):
        text = (run.path / name).read_text(encoding="utf-8")
        assert "cell-damaged" in text
        assert CELLS[0] in text
    assert list(problems(run)) == [f"cells/{CELLS[0]}/requests.parquet"]  # the new summary.json is entered


def test_claims_of_a_damaged_run_say_so(run, capsys):
    (run.cell_path(CELLS[0]) / "requests.parquet").write_bytes(b"torn")
    assert main(["claims", str(run.path)]) == ExitCode.OK
    assert f"{CELLS[0]}/requests.parquet" in capsys.readouterr().err


def test_a_damaged_run_is_not_added_to_the_history(run, capsys):
    (run.cell_path(CELLS[0]) / "requests.parquet").write_bytes(b"torn")
    assert main(["history", str(run.path), "--out", str(run.path.parent)]) == ExitCode.USAGE
    assert f"{CELLS[0]}/requests.parquet" in capsys.readouterr().err
    assert not history_path(run.path.parent).exists()


def test_telemetry_and_workload_are_checked_too(folder):
    numbers = [-1 if name == "expected" else 4 for name in NUMBERS]
    place = folder.write_requested("c1-r0", RequestTable.of([(numbers, "", ())], []))
    asked = facts(cell="000-x", workload__file=place)
    assert folder.read_requested(asked) is not None
    for name in (place, "cells/000-x/telemetry.parquet"):
        (folder.path / name).unlink()
    with pytest.raises(DamagedError, match=r"c1-r0.* is missing"):
        folder.read_requested(asked)
    with pytest.raises(DamagedError, match=r"telemetry\.parquet: is missing"):
        folder.read_telemetry("000-x")


@pytest.mark.parametrize("step", range(1, 5))
def test_whenever_a_write_is_cut_off_nothing_counts_as_damaged(folder, monkeypatch, step):
    """As by kill -9 before the rename of the n-th file that is written."""
    renames = 0

    def cut_off(*names, **folders):
        nonlocal renames
        renames += 1
        if renames == step:
            raise KeyboardInterrupt
        return replace(*names, **folders)

    replace = os.replace
    monkeypatch.setattr(os, "replace", cut_off)
    for value in range(2, 9):
        with suppress(KeyboardInterrupt):
            folder.write_json("manifest.json", {"a": value})
        if renames >= step:
            break
    monkeypatch.undo()
    assert problems(folder) == {}
    kept = folder.read_json("manifest.json")["a"]
    for value in (10, 11):
        folder.write_json("manifest.json", {"a": value})
        assert problems(folder) == {}
    assert kept in range(1, 9)


def test_an_older_version_of_a_file_is_not_taken_for_it(folder):
    old = (folder.path / "manifest.json").read_bytes()
    for value in (2, 3):
        folder.write_json("manifest.json", {"a": value})
    (folder.path / "manifest.json").write_bytes(old)
    assert list(problems(folder)) == ["manifest.json"]


def test_a_cell_set_aside_keeps_its_checksums(folder):
    place = folder.set_aside("000-x")
    assert problems(folder) == {}
    (folder.path / place / "events.parquet").write_bytes(b"")
    assert list(problems(folder)) == [f"{place}/events.parquet"]


def test_a_file_that_bench_did_not_write_is_told(folder):
    (folder.path / "cells" / "000-x" / "extra.parquet").write_bytes(b"x")
    assert problems(folder) == {"cells/000-x/extra.parquet": "was not written by bench"}


def test_a_report_beside_the_run_loses_no_checksum(folder):
    def write(name):
        for value in range(20):
            folder.write_json(f"{name}.json", {"a": value})

    threads = [threading.Thread(target=write, args=(f"x{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems(folder) == {}
    assert seal.faults(folder.files)[0] == 5 + 4


def test_checksums_are_parsed_again_only_where_another_process_wrote_them(folder, monkeypatch):
    """To parse them after every cell would take a time that grows with the square of the cells."""
    parse, parsed = seal._parsed, []
    monkeypatch.setattr(seal, "_parsed", lambda data: parsed.append(data) or parse(data))
    for value in range(3):
        folder.write_json(f"x{value}.json", {"a": value})
        folder.read_json(f"x{value}.json")
    assert parsed == []
    other = (folder.path / seal.FILE).read_bytes() + b"\n"
    (folder.path / seal.FILE).write_bytes(other)
    folder.write_json("y.json", {"a": 1})
    assert parsed == [other]
    assert problems(folder) == {}
    assert seal.faults(folder.files)[0] == 5 + 4


@pytest.fixture
def cut_off(tmp_path):
    """A run that ended before its last manifest: its cells are lines after the document."""
    made = RunFolder.create(tmp_path, "y")
    made.write_json("manifest.json", {"a": 1})
    for number in range(3):
        made.write_cell(records(*ROWS), facts(cell=f"00{number}-x"))
    return made


def test_a_cell_adds_a_line_to_the_checksums_and_a_manifest_makes_one_document(cut_off):
    """To write all of them for every cell would take a time that grows with the square of the cells."""
    path = cut_off.path / seal.FILE
    assert path.read_bytes().partition(b"\n}\n")[2].count(b"\n") == 3
    assert problems(cut_off) == {}
    count = seal.faults(cut_off.files)[0]
    cut_off.write_json("manifest.json", {"a": 2})
    assert len(json.loads(path.read_bytes())["files"]) == count
    assert problems(cut_off) == {}


def test_a_line_of_checksums_that_was_cut_off_enters_nothing(cut_off):
    path = cut_off.path / seal.FILE
    path.write_bytes(path.read_bytes()[:-20])
    cell = [f"cells/002-x/{name}" for name in ("cell.json", "events.parquet", "requests.parquet")]
    assert problems(cut_off) == dict.fromkeys(cell, "was not written by bench")
    cut_off.write_cell(records(*ROWS), facts(cell="002-x"))
    cut_off.write_cell(records(*ROWS), facts(cell="003-x"))
    assert problems(cut_off) == {}


def test_a_flip_in_a_line_of_checksums_is_never_silent(cut_off):
    path = cut_off.path / seal.FILE
    data = path.read_bytes()
    start = data.index(b"\n}\n") + 3
    for place in range(start, len(data), 41):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(DamagedError, match=r"checksums\.json: is damaged itself"):
            seal.faults(cut_off.files)


def test_a_folder_of_before_is_read_unchecked(folder, capsys):
    (folder.path / seal.FILE).unlink()
    folder.write_json("manifest.json", {"a": 2})
    assert not (folder.path / seal.FILE).exists()
    assert folder.read_json("manifest.json")["a"] == 2
    assert main(["verify", str(folder.path)]) == ExitCode.USAGE
    assert "checksums.json" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cells", "manifest.json/x", "x" * 5000])
def test_a_name_that_is_no_file_is_missing(folder, name):
    sums = {name: ["0" * 64]}
    seal._write(folder.files, sums)
    assert [(fault.path, fault.what) for fault in seal.faults(folder.files)[1] if fault.path == name] == [
        (name, "is missing")
    ]


@pytest.mark.parametrize("name", ["", "/etc/hosts", "../other/summary.json", "cells/../../x", "a\0b"])
def test_checksums_that_name_what_lies_elsewhere_are_damaged(folder, name):
    seal._write(folder.files, {name: ["0" * 64]})
    with pytest.raises(DamagedError, match=r"checksums\.json: is damaged itself"):
        seal.faults(folder.files)
