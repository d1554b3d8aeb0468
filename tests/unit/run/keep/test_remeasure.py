"""Cells that the client or the machine spoiled: set aside and measured again, twice at most."""

import pytest
from msgspec import structs

from harness.model import UNSET
from harness.run.keep.stored import set_aside
from harness.store import RunFolder
from tests.factories.documents import changed
from tests.factories.summaries import cell, verdict


class Warnings:
    def __init__(self):
        self.found = []

    def warn(self, warning):
        self.found.append(warning)


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path, "chat")


def measured(folder, code):
    made = cell("vllm", validity=verdict("INVALID", code, "95%", "80%", "free its core"))
    folder.cell_path(made.cell).mkdir()
    (folder.cell_path(made.cell) / "cell.json").write_text("{}")
    return made


def test_twice_and_no_more_and_all_is_kept(folder):
    warnings = Warnings()
    for number in (1, 2):
        made = measured(folder, "client-busy")
        again = f"{made.cell} was measured again: client-busy, 95%; limit 80%"
        assert set_aside(folder, warnings, made) == again
        assert folder.cells() == []
        assert (folder.path / "set-aside" / f"{made.cell}.{number}" / "cell.json").is_file()
        kept = f"set-aside/{made.cell}.{number}"
        why = f"free its core; put down to the client, not to the engine; see {kept}"
        assert warnings.found[-1].hint == why
    assert set_aside(folder, warnings, measured(folder, "client-busy")) is None
    assert folder.cells() == [made.cell]


def test_the_doubt_that_made_it_invalid_is_named_not_a_lesser_doubt_of_its_code(folder):
    made = measured(folder, "does-not-add-up")
    (spoiled,) = made.validity.reasons
    lesser = changed(spoiled, verdict="SUSPECT", measured="1%")
    again = changed(made, validity={"reasons": (lesser, spoiled)})
    assert set_aside(folder, Warnings(), again).endswith("does-not-add-up, 95%; limit 80%")


def test_a_cell_that_was_cut_short_is_measured_again_as_often(folder):
    warnings = Warnings()
    for _ in range(2):
        folder.set_aside(measured(folder, "client-busy").cell, cut_short=True)
    again = [set_aside(folder, warnings, measured(folder, "client-busy")) for _ in range(3)]
    assert [why is None for why in again] == [False, False, True]


@pytest.mark.parametrize("code", ["failed-requests", "engine-died", "too-few-samples"])
def test_what_is_not_the_clients_doing_stays(folder, code):
    made = measured(folder, code)
    assert set_aside(folder, Warnings(), made) is None
    assert folder.cells() == [made.cell]


@pytest.mark.parametrize(
    ("cause", "put_down"),
    [
        ("work", None),
        ("client", "; put down to the client, not to the engine"),
        ("either", ""),
        (UNSET, "; put down to the client, not to the engine"),
    ],
)
def test_who_broke_a_law_decides_whether_its_cell_is_measured_again(folder, cause, put_down):
    made, warnings = measured(folder, "does-not-add-up"), Warnings()
    (reason,) = made.validity.reasons
    made = changed(made, validity={"reasons": (structs.replace(reason, cause=cause),)})
    assert (set_aside(folder, warnings, made) is None) == (put_down is None)
    kept = f"set-aside/{made.cell}.1"
    assert [one.hint for one in warnings.found] == (
        [] if put_down is None else [f"free its core{put_down}; see {kept}"]
    )


@pytest.mark.parametrize(("seconds", "stays"), [(1_800.0, False), (1_801.0, True)])
def test_a_cell_of_more_than_half_an_hour_is_the_users_to_measure_again(folder, seconds, stays):
    made = changed(measured(folder, "client-busy"), sample={"seconds": seconds})
    warnings = Warnings()
    assert (set_aside(folder, warnings, made) is None) == stays
    assert len(warnings.found) == (not stays)
    assert folder.cells() == [made.cell] * stays


def test_a_valid_cell_stays(folder):
    assert set_aside(folder, Warnings(), cell("vllm")) is None
