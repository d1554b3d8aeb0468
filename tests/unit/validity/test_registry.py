"""The registries of rules and notices: complete, stated in words, and what else follows from a rule."""

import ast
from pathlib import Path

import pytest

from harness.model import VERDICTS, IssueCode, Reason, Validity, as_json, from_json
from harness.validity import FAMILIES, RULES, blame, decisive, eases
from harness.validity.notices import NOTICES, OF_KIND
from tests.factories.summaries import verdict
from tests.sources import naming, tree

HARNESS = Path(__file__).resolve().parents[3] / "harness"
MADE_IN = {"Reason": {"validity/rule.py"}, "RunWarning": {"validity/notices.py"}}


def test_every_code_has_a_rule_or_a_notice_and_none_has_two():
    assert set(RULES) | {notice.code for notice in NOTICES} == set(IssueCode)
    assert sum(len(family.RULES) for family in FAMILIES) == len(RULES)
    named = [
        path.stem for path in (HARNESS / "validity").glob("*.py") if "\nRULES = " in path.read_text("utf-8")
    ]
    assert {family.__name__.rpartition(".")[2] for family in FAMILIES} == set(named)


def test_a_cell_lists_its_reasons_in_the_order_of_the_codes():
    assert list(RULES) == [code for code in IssueCode if code in RULES]


def test_a_rule_says_what_it_measures_and_what_to_do():
    assert [code for code, rule in RULES.items() if not all((rule.measures, rule.limit, rule.hint))] == []


def test_a_rule_lists_its_verdicts_once_suspect_before_invalid():
    listed = {code: list(rule.verdicts) for code, rule in RULES.items()}
    assert listed == {code: sorted({*rule.verdicts}, reverse=True) for code, rule in RULES.items()}


def test_only_a_front_can_be_left_out_of_a_measurement():
    assert [kind for kind, notice in OF_KIND.items() if "without it" in notice.hint] == ["front"]


def test_reasons_and_warnings_are_made_by_the_registries_alone():
    """So a code that is in no table cannot be told."""
    made = {kind: set() for kind in MADE_IN}
    for path in naming(HARNESS.rglob("*.py"), made):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in made:
                made[node.func.id].add(path.relative_to(HARNESS).as_posix())
    assert made == MADE_IN


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["failed-requests"], ("engine", "failed-requests")),
        (["schedule-lag"], ("client", "schedule-lag")),
        (["failed-requests", "client-busy"], ("client", "client-busy")),
        (["failed-requests", "slot-idle"], ("engine", "failed-requests")),
        (["slot-idle"], ("client", "slot-idle")),
        (["clock-step", "slot-idle"], ("machine", "clock-step")),
        (["client-busy", "engine-died"], ("engine", "engine-died")),
        (["schedule-lag", "machine-stalled", "failed-requests"], ("machine", "machine-stalled")),
        (["suspended", "machine-stalled", "engine-died"], ("engine", "engine-died")),
        (["client-stalled", "schedule-lag"], ("client", "client-stalled")),
        (["too-few-samples", "dropped-requests"], ("engine", "dropped-requests")),
        (["a-later-code"], ("work", "a-later-code")),
    ],
)
def test_who_is_to_blame(codes, expected):
    reasons = [one for code in codes for one in verdict("INVALID", code, "", "", "").reasons]
    assert blame(Validity.of(reasons)) == expected


def test_no_reason_is_left_out_for_the_sake_of_one_that_is_left_out_for_it():
    explained = {code: set(rule.explains) for code, rule in RULES.items() if rule.explains}
    assert set().union(*explained.values()) <= set(RULES)
    for code, others in explained.items():
        reached, ahead = set(), set(others)
        while ahead:
            reached |= ahead
            ahead = set().union(*(explained.get(other, set()) for other in ahead)) - reached
        assert code not in reached


def test_a_reason_that_is_left_out_adds_no_doubt_to_the_one_that_explains_it():
    for rule in RULES.values():
        for other in map(RULES.__getitem__, rule.explains):
            assert VERDICTS.index(rule.verdicts[-1]) >= VERDICTS.index(other.verdicts[-1])
            assert not rule.metrics or (other.metrics and set(other.metrics) <= set(rule.metrics))
            assert rule.verdicts[-1] == "INVALID" or rule.eases or not other.eases


@pytest.mark.parametrize(
    ("causes", "expected"),
    [(["either", "work"], "work"), (["work", "client"], "client"), (["either", "engine"], "engine")],
)
def test_the_cause_of_a_reason_counts_before_that_of_its_rule(causes, expected):
    reasons = [
        Reason(IssueCode.DOES_NOT_ADD_UP, "INVALID", f"law {number}", "", "", cause=cause)
        for number, cause in enumerate(causes)
    ]
    cause, reason = decisive(Validity.of(reasons))
    assert (cause, reason.measured) == (expected, f"law {causes.index(expected)}")


def test_doubts_beside_it_do_not_count_and_a_valid_cell_has_no_blame():
    reasons = [
        Reason(IssueCode.CLIENT_BUSY, "SUSPECT", "", "", ""),
        Reason(IssueCode.FAILED_REQUESTS, "INVALID", "", "", ""),
    ]
    assert blame(Validity.of(reasons)) == ("engine", "failed-requests")
    assert blame(Validity.of(reasons[:1])) is None


def test_the_decisive_reason_is_no_lesser_doubt_of_the_same_rule():
    reasons = [
        *verdict("SUSPECT", "failed-requests", "1 of 400", "", "").reasons,
        *verdict("INVALID", "failed-requests", "40 of 400", "", "").reasons,
    ]
    cause, reason = decisive(Validity.of(reasons))
    assert (cause, reason.measured) == ("engine", "40 of 400")
    assert decisive(Validity.of(reasons[:1])) is None


def test_only_a_doubt_that_can_make_a_load_look_easier_ends_a_search():
    assert eases(IssueCode.NOT_STEADY)
    assert not eases(IssueCode.CLIENT_BUSY)
    assert not eases(IssueCode("a-later-code"))


def test_a_code_of_another_version_is_read_and_written_as_it_is():
    reason = {"code": "a-later-code", "verdict": "SUSPECT", "measured": "", "limit": "", "hint": ""}
    read = from_json({"verdict": "SUSPECT", "reasons": [reason]}, Validity)
    assert list(as_json(read)["reasons"]) == [{**reason, "metrics": ()}]
    assert read.reasons[0].code not in list(IssueCode)
    with pytest.raises(ValueError, match="reasons"):
        from_json({"verdict": "SUSPECT", "reasons": [{**reason, "code": 3}]}, Validity)
