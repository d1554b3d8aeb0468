"""`bench verify`: the lines of every kind of finding, a seal of one run, and what has no checksums."""

import json

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.run.keep import verified
from harness.run.keep.differences import Difference
from harness.run.keep.verified import Verified
from harness.store import RunFolder, seal
from harness.store.seal import Fault

WHOLE = Verified(files=7, faults=(), missing=(), recorded=False, seal="5f2b")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Folders with checksums, by name, and what is found of each: everything is identical."""
    found = {"a": WHOLE, "b": WHOLE}
    for name in found:
        folder = RunFolder(tmp_path / name)
        folder.path.mkdir()
        seal.begin(folder.files)
    monkeypatch.setattr(verified, "verify", lambda folder: found[folder.run_id])
    monkeypatch.chdir(tmp_path)
    return found


def said(capsys, *words):
    """Exit code, and the lines of each stream."""
    code = main(["verify", *words])
    printed = capsys.readouterr()
    return code, printed.out.splitlines(), printed.err.splitlines()


def changed(**changes):
    return Verified(**{"files": 7, "faults": (), "missing": (), "recorded": False, "seal": "5f2b", **changes})


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (WHOLE, ["a: 7 files are as they were written; every figure is identical", "a: seal 5f2b"]),
        (
            changed(recorded=True, added=3, priced=True),
            [
                "a: 7 files are as they were written, and as this machine recorded them; every figure is "
                "identical; values that are new in this version: 3",
                "a: its costs are at a price that it got after the run; no record can show it",
                "a: seal 5f2b",
            ],
        ),
        (
            changed(faults=(Fault("cells/x/cell.json", "is damaged"),), missing=("no whole records of x",)),
            ["a/cells/x/cell.json is damaged", "a: no whole records of x"],
        ),
        (
            changed(reworded=tuple(Difference(f"warnings[{n}].text", "old", "new") for n in range(22))),
            [
                *(
                    f"a: text of another version: warnings[{n}].text: old stored, new from the records"
                    for n in range(20)
                ),
                "a: and 2 more texts of another version",
                "a: 7 files are as they were written; every figure is identical",
                "a: seal 5f2b",
            ],
        ),
        (
            changed(
                differences=(Difference("cells[x].e2e_ms.p50", 70.0, 100.0),),
                other_version=True,
                made_by="0.1.0",
            ),
            [
                "a: cells[x].e2e_ms.p50: 70 stored, 100 from the records (-30%)",
                "a: was measured by 0.1.0, whose rules may differ: `bench report` computes it again",
            ],
        ),
    ],
)
def test_each_finding_is_a_line_with_the_name_of_its_run(runs, capsys, found, lines):
    runs["a"] = found
    code, out, err = said(capsys, "a")
    assert code == (ExitCode.OK if found.whole else ExitCode.LIMIT_FAILED)
    assert (out, err) == (lines, [])


@pytest.mark.parametrize(("count", "last"), [(20, "a: cells[19]: 1 stored, 2 from the records (-50%)"),
                                             (21, "a: and 1 more value"),
                                             (25, "a: and 5 more values")])  # fmt: skip
def test_very_many_differences_are_counted(runs, capsys, count, last):
    runs["a"] = changed(differences=tuple(Difference(f"cells[{index}]", 1, 2) for index in range(count)))
    _code, out, _err = said(capsys, "a")
    assert len(out) == min(count, 21)
    assert out[-1] == last
    _code, out, _err = said(capsys, "a", "--json")
    assert len(json.loads("".join(out))["a"]["differences"]) == count


def test_one_run_that_differs_fails_all_and_hides_none(runs, capsys):
    runs["a"] = changed(faults=(Fault("plan.json", "is missing"),))
    code, out, _err = said(capsys, "a", "b")
    assert code == ExitCode.LIMIT_FAILED
    assert out == [
        "a/plan.json is missing",
        "b: 7 files are as they were written; every figure is identical",
        "b: seal 5f2b",
    ]


@pytest.mark.parametrize(("given", "code"), [("5f2b", ExitCode.OK), ("9999", ExitCode.LIMIT_FAILED)])
def test_a_run_that_agrees_with_itself_may_not_be_the_one_that_was_sealed(runs, capsys, given, code):
    found, out, _err = said(capsys, "a", "--seal", given)
    assert found == code
    assert ("a: is not what was sealed: its seal is 5f2b" in out) is (code != ExitCode.OK)
    found, out, err = said(capsys, "a", "--seal", given, "--json")
    assert (found, json.loads("".join(out))["a"]["state"]) == (code, "identical")
    assert ("a: is not what was sealed: its seal is 5f2b" in err) is (code != ExitCode.OK)


def test_a_seal_is_of_one_run(runs, capsys):
    code, out, err = said(capsys, "a", "b", "--seal", "5f2b")
    assert (code, out) == (ExitCode.USAGE, [])
    assert err == ["error: --seal: is the seal of one run", "hint: verify the runs one by one"]


def test_a_folder_without_checksums_cannot_be_verified(runs, tmp_path, capsys):
    (tmp_path / "old").mkdir()
    code, out, err = said(capsys, "b", "old")
    assert (code, out) == (ExitCode.USAGE, [])
    assert err[0] == "error: old: has no checksums.json"


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (WHOLE, "identical"),
        (changed(missing=("no whole records",)), "cannot be computed again"),
        (changed(differences=(Difference("x", None, 2),)), "differs"),
        (changed(faults=(Fault("plan.json", "is missing"),), missing=("no plan",)), "differs"),
    ],
)
def test_the_document_has_the_state_and_every_finding(runs, capsys, found, state):
    runs["a"] = found
    _code, out, _err = said(capsys, "a", "--json")
    document = json.loads("".join(out))["a"]
    assert document["state"] == state
    assert document["faults"] == {fault.path: fault.what for fault in found.faults}
    assert document["missing"] == list(found.missing)
    assert [each["computed"] for each in document["differences"]] == [2] * len(found.differences)
    assert (document["files"], document["seal"]) == (7, "5f2b")


def test_one_entry_is_no_plural():
    assert Difference("cells", [1], []).text == "cells: 1 entry stored, 0 entries from the records"
