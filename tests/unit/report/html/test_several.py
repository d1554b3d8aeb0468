"""The page of several runs."""

from dataclasses import replace

from harness.report.html.several import page
from harness.verdicts.baseline import compare_runs
from tests.factories.summaries import summary
from tests.unit.verdicts.test_baseline import run
from tests.unit.verdicts.test_pairs import cells


def test_what_an_older_run_lacks_is_not_counted_for_the_newest():
    def drawn(name, day, *measured):
        made = run(name, *measured, created_utc=f"2026-11-{day}T08:00:00+00:00")
        return replace(made, summary=summary(*made.cells))

    whole = cells("vllm", 100), cells("tgi", 150)
    runs = [drawn("base", 20, *whole), drawn("older", 21, cells("vllm", 100)), drawn("newest", 22, *whole)]
    made = page(runs, compare_runs(runs))
    assert "measurement missing" not in made
    assert "missing: tgi: not in this run" in made
    fewer = [runs[0], runs[2], drawn("last", 23, cells("vllm", 100))]
    assert "<li>1 measurement missing.</li>" in page(fewer, compare_runs(fewer))
