"""Rules for files of other tools: which of them apply, and what they advise."""

import pytest

from harness.model import Imported, IssueCode, Reason
from harness.records.layout import empty_requests
from harness.validity.imported import RULES, applies, for_another_client
from harness.validity.requests import RULES as OF_REQUESTS
from harness.validity.rule import Evidence
from tests.factories.documents import changed, made
from tests.factories.recorded import facts, view_of


def file(*known):
    return made(Imported, tool="aiperf", version="0.13.0", file="x.json", level="records", facts=list(known))


def test_the_hint_of_a_rule_says_that_it_names_flags_of_bench():
    reason = Reason(IssueCode.TOO_SHORT, "SUSPECT", "3 s", "10 s", "raise --seconds")
    assert for_another_client(reason) == Reason(
        IssueCode.TOO_SHORT, "SUSPECT", "3 s", "10 s", "with `bench run`: raise --seconds"
    )
    assert reason.hint == "raise --seconds"


def test_the_hint_about_the_client_is_of_bench_already():
    reason = Reason(IssueCode.CLIENT_UNVERIFIED, "SUSPECT", "", "", "`bench run` shows it")
    assert for_another_client(reason) == reason


@pytest.mark.parametrize(
    ("code", "known", "expected"),
    [
        (IssueCode.CLIENT_UNVERIFIED, (), True),
        (IssueCode.TOO_SHORT, (), False),
        (IssueCode.TOO_SHORT, ("times",), True),
        (IssueCode.RATE_MISSED, ("times",), False),
        (IssueCode.RATE_MISSED, ("load", "tokens", "times"), True),
        (IssueCode.CLIENT_BUSY, ("answers", "outcomes", "tokens", "times", "arrivals", "load"), False),
    ],
)
def test_a_rule_applies_if_the_file_has_all_that_it_looks_at(code, known, expected):
    assert applies(code, file(*known)) is expected


def test_every_rule_applies_to_what_bench_measured():
    assert all(applies(code, None) for code in IssueCode)


def test_failed_requests_of_a_summary_are_those_that_its_tool_counted():
    counted = changed(file("outcomes"), level="summary", answered=95, failed=5)
    (rule,) = (rule for rule in OF_REQUESTS if rule.code is IssueCode.FAILED_REQUESTS)
    ((found, _),) = rule.reasons(Evidence(view_of(empty_requests(0)), facts(imported=counted)))
    assert (found.measured, found.verdict) == ("5 of 100", "INVALID")


def test_a_file_of_another_tool_is_named_and_a_cell_of_bench_is_not():
    (rule,) = RULES
    nothing = view_of(empty_requests(0))
    ((found, _),) = rule.reasons(Evidence(nothing, facts(imported=file())))
    assert found.measured == "imported from aiperf 0.13.0 (records); client not verified"
    assert (found.code, found.verdict) == (IssueCode.CLIENT_UNVERIFIED, "SUSPECT")
    assert list(rule.reasons(Evidence(nothing, facts(imported=None)))) == []
