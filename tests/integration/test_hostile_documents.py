"""Commands on a run with one changed document take it or refuse it in one line, never with a traceback."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.factories.shapes import SUBJECTS, Folders, judge
from tests.long import others_long

SLOW = [one for one in SUBJECTS if one.slow]
OFTEN = {"manifest, to reports", "cell facts, to reports", "summary, to reports", "history, to drift"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    room = tmp_path_factory.mktemp("shapes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.report.plots.draw", lambda *_arguments, **_options: [])
        patch.setenv("BENCH_CACHE", str(room / "cache"))
        yield Folders(room / "results")


def test_the_subjects_that_are_checked_often_are_there():
    assert {one.name for one in SLOW} >= OFTEN


@pytest.mark.parametrize(
    "subject", [*others_long(SLOW, lambda one: one.name in OFTEN)], ids=lambda one: one.name
)
def test_a_command_does_too(subject, folders):
    @settings(suppress_health_check=list(HealthCheck), max_examples=2, derandomize=True)
    @given(subject.cases(folders))
    def check(case):
        judge(subject, folders, case)

    check()
