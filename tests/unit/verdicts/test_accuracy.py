"""The gate on lost accuracy: what it compares, what it fails on, and that it does not pass over gaps."""

import pytest

from harness.model import Agreement, ComparedLabel
from harness.verdicts.accuracy import METRIC, compared, drops
from tests.factories.documents import made

NEW, OLD = ComparedLabel(run="tuesday", label="engine"), ComparedLabel(run="monday", label="engine")


def agreement(unloaded, saturated=None, sha256="same", **more):
    conditions = {"unloaded": {"marks": unloaded}, "saturated": {"marks": saturated or unloaded, **more}}
    return made(Agreement, backends={"engine": conditions}, sha256=sha256)


def rows(now, before):
    return list(compared(NEW, OLD, (now, "engine"), (before, "engine"), 1))


def gate(now, before):
    return [(row.kind, row.metric) for row in drops(rows(now, before))]


ALL, SOME_LOST, FEW = "1" * 600, ("1" * 9 + "0") * 60, "1" * 30


def test_equal_answers_pass():
    assert gate(agreement(ALL), agreement(ALL)) == []


def test_a_loss_fails_in_each_condition_with_its_figures():
    assert gate(agreement(SOME_LOST), agreement(ALL)) == [("accuracy", METRIC)] * 2
    assert gate(agreement(ALL, SOME_LOST), agreement(ALL)) == [("accuracy", METRIC)]
    (row,) = drops(rows(agreement(ALL, SOME_LOST), agreement(ALL)))
    assert row.why.startswith("under load: loses ")
    assert (row.run, row.label) == ("tuesday", "engine")


def test_too_few_questions_exclude_nothing():
    assert gate(agreement(FEW), agreement(FEW)) == [("undecided", METRIC)] * 2


@pytest.mark.parametrize(
    ("now", "before", "why"),
    [
        (agreement(ALL), agreement(ALL, sha256="other"), "other questions were asked"),
        (None, agreement(ALL), "no questions were asked of the new one"),
        (agreement(ALL), None, "no questions were asked of the baseline"),
        (agreement("-" * 600), agreement(ALL), "no question was answered by both"),
        (agreement("0" * 600), agreement("0" * 600), "no answer is right"),
    ],
)
def test_what_cannot_be_compared_fails_too(now, before, why):
    found = rows(now, before)
    assert [one.why for one in found] == [why] * 2
    assert gate(now, before) == [("not compared", METRIC)] * 2


def test_other_loads_are_not_compared_under_load():
    now = agreement(ALL, load={"kind": "concurrency", "value": 8})
    found = rows(now, agreement(ALL, load={"kind": "concurrency", "value": 4}))
    assert [one.why for one in found][1] == "asked under other loads"


def test_runs_without_questions_have_no_rows():
    assert rows(None, None) == []


def test_each_row_of_the_gate_says_how_it_was_asked_and_why_it_is_there():
    asked = {value: {"load": {"kind": "concurrency", "value": value}} for value in (4, 8)}
    found = drops(rows(agreement(FEW, ALL, **asked[8]), agreement(FEW, ALL, **asked[4])))
    (alone, loaded) = [(row.kind, row.why) for row in found]
    assert alone[0] == "undecided"
    assert alone[1].startswith("one at a time: ")
    assert loaded == ("not compared", "under load: asked under other loads")
    whole = list(drops(rows(agreement(ALL, sha256="other"), agreement(ALL))))
    assert [row.why for row in whole] == [
        "one at a time: other questions were asked",
        "under load: other questions were asked",
    ]
    assert {(row.run, row.label, row.load) for row in whole} == {("tuesday", "engine", None)}


def test_the_backend_that_was_asked_nothing_is_named():
    """Also where its run asked another backend."""
    new, old = ComparedLabel(run="tuesday", label="now"), ComparedLabel(run="monday", label="engine")
    asked, nobody = (agreement(ALL), "engine"), (agreement(ALL), "now")
    assert [row.why for row in compared(new, old, nobody, asked, 1)] == ["no questions were asked of now"] * 2
    assert [row.why for row in compared(old, new, asked, (None, "now"), 1)] == [
        "no questions were asked of now"
    ] * 2
    assert list(compared(new, old, nobody, (None, "engine"), 1)) == []


def test_a_row_goes_from_the_old_answers_to_the_new_ones():
    """Under load one of ten is lost, which the first 200 of 600 questions decide."""
    alone, loaded = rows(agreement(ALL, SOME_LOST), agreement(ALL))
    assert (alone.a, alone.b, alone.under_load, loaded.under_load) == (NEW, OLD, False, True)
    assert (alone.change.lost, alone.change.gained, alone.change.verdict) == (0, 0, "same")
    assert (loaded.change.lost, loaded.change.gained, loaded.change.compared) == (20, 0, 200)
    assert loaded.change.change.estimate == pytest.approx(-0.1)
    assert loaded.change.under_load
    assert gate(agreement(ALL), agreement(ALL, SOME_LOST)) == []  # a gain fails nothing


def test_every_pair_that_is_compared_has_a_part_of_the_level():
    """The first look at equal answers, which decides, has a tenth of 5%."""
    asked = agreement(ALL), "engine"
    for pairs, level in ((0, 0.005), (1, 0.005), (2, 0.0025)):
        found, _ = compared(NEW, OLD, asked, asked, pairs)
        assert found.change.compared == 200
        assert found.change.level == pytest.approx(level)
