"""Every parser of foreign data takes it or refuses it in one line, never with a traceback.

A few cases each; `make chaos` draws 100,000.
"""

import pytest
from hypothesis import HealthCheck, given, settings

from tests.factories.shapes import SUBJECTS, Folders, judge


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    room = tmp_path_factory.mktemp("shapes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.report.plots.draw", lambda *_arguments, **_options: [])
        patch.setattr("harness.engines.speak.server._SETTLES_S", 0)  # how long a busy server is asked again
        patch.setenv("BENCH_CACHE", str(room / "cache"))
        yield Folders(room / "results")


@pytest.mark.parametrize("subject", [one for one in SUBJECTS if not one.slow], ids=lambda one: one.name)
def test_a_parser_takes_it_or_refuses_it_in_one_line(subject, folders):
    @settings(suppress_health_check=[HealthCheck.too_slow])
    @given(subject.cases(folders))
    def check(case):
        judge(subject, folders, case)

    check()
