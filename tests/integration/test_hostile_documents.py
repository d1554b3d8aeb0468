"""Commands on a run with one changed document take it or refuse it in one line, never with a traceback."""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.factories.shapes import SUBJECTS, Folders, judge


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    room = tmp_path_factory.mktemp("shapes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.report.plots.draw", lambda *_arguments, **_options: [])
        patch.setenv("BENCH_CACHE", str(room / "cache"))
        yield Folders(room / "results")


@pytest.mark.parametrize("subject", [one for one in SUBJECTS if one.slow], ids=lambda one: one.name)
def test_a_command_does_too(subject, folders):
    @settings(suppress_health_check=list(HealthCheck), max_examples=2, derandomize=True)
    @given(subject.cases(folders))
    def check(case):
        judge(subject, folders, case)

    check()
