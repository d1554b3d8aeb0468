"""Every parser of foreign data takes it or refuses it in one line, never with a traceback.

A few cases each; `make chaos` draws 100,000.
"""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.bench.chaos.places import PLACES
from tests.factories.shapes import SUBJECTS, Folders, judge
from tests.integration.h2_cases import CASES, FLOODS

ROOT = Path(__file__).parents[2]


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


def test_what_was_tried_has_each_parser_each_place_and_every_hostile_server():
    text = (ROOT / "tests" / "bench" / "tried.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0].removeprefix("| ") for line in text.splitlines()}
    assert {one.name for one in (*SUBJECTS, *PLACES)} - rows == set()
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert f"\n{len(CASES) + len(FLOODS)} servers that mean harm" in page
