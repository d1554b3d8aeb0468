"""The gate on lost accuracy: what it compares, what it fails on, and that it does not pass over gaps."""

import pytest

from harness.model import Agreement, ComparedLabel
from harness.verdicts.accuracy import METRIC, compared, drops
from tests.factories.documents import made

NEW, OLD = ComparedLabel(run="tuesday", label="engine"), ComparedLabel(run="monday", label="engine")


def agreement(unloaded, saturated=None, sha256="same", **more):
    conditions = {
        "unloaded": {"marks": unloaded},
        "saturated": {"marks": saturated or unloaded, **more},
    }
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
        (None, agreement(ALL), "no questions were asked of engine"),
        (agreement("-" * 600), agreement(ALL), "no question was answered by both"),
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
