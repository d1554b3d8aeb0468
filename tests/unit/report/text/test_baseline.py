"""The lines of `bench compare` that name what is compared."""

from harness.model.baseline import ComparedRun
from harness.report.text.baseline import run_words


def test_a_run_of_another_tool_is_said_to_be_imported_once():
    run = ComparedRun(
        name="a",
        run="a",
        created_utc="2026-11-29T05:02:21+00:00",
        hostname=None,
        scenario="imported",
        state="complete",
        simulated=False,
        imported=("imported from aiperf 0.13.0 (records); client not verified",),
    )
    assert run_words(run) == (
        "a 2026-11-29T05:02:21+00:00 complete imported from aiperf 0.13.0 (records); client not verified"
    )
