"""Several runs as one summary per backend, and what is refused."""

from dataclasses import replace

import pytest
from msgspec import structs

from harness.errors import SpecError
from harness.report.charts import charts
from harness.report.findings.conclusion import orders
from harness.report.findings.several import several
from harness.report.view import groups, labels
from harness.verdicts.baseline import Run, compare_runs
from harness.verdicts.knee import knees
from tests.factories.summaries import summary, verdict
from tests.unit.verdicts.test_baseline import manifest
from tests.unit.verdicts.test_knee import at
from tests.unit.verdicts.test_pairs import cells


def run(name, *measured, created="2026-11-20T08:00:00+00:00", **changes):
    found = [made for group in measured for made in group]
    return Run(name, manifest(created_utc=created, **changes), summary(*found, run=name), {})


def made(*runs):
    return several(runs, compare_runs(runs))


FAILED = verdict("INVALID", "failed-requests", "40 of 400", "1%", "")
EIGHT = {"kind": "concurrency", "value": 8}
BASE = run("base", cells("vllm", 100), cells("tgi", 150))
NEW = run("new", cells("vllm", 112), cells("tgi", 150.1), created="2026-11-27T08:00:00+00:00")


def test_each_backend_is_named_with_the_day_of_its_run():
    found = made(BASE, NEW)
    assert labels(found.whole) == [
        "vllm, 2026-11-20", "vllm, 2026-11-27", "tgi, 2026-11-20", "tgi, 2026-11-27",
    ]  # fmt: skip
    assert list(found.families) == ["vllm", "tgi"]


def test_the_conclusion_is_of_the_verdicts_between_the_runs():
    family = made(BASE, NEW).families["vllm"]
    (group,) = groups(family)
    primary = orders(family, group)[0]
    assert primary.groups == (("vllm, 2026-11-20",), ("vllm, 2026-11-27",))
    (pair,) = primary.pairs
    assert (pair.ahead, pair.state) == ("vllm, 2026-11-20", "separated")
    assert pair.times.estimate == pytest.approx(1.12, rel=0.01)


@pytest.mark.parametrize(
    ("created", "names"),
    [
        (("2026-11-20T08:00:00", "2026-11-20T09:30:00"), ["2026-11-20 08:00", "2026-11-20 09:30"]),
        (
            ("2026-11-20T08:00:00", "2026-11-20T08:00:30"),
            ["2026-11-20 08:00 aaaaaa", "2026-11-20 08:00 bbbbbb"],
        ),
    ],
)
def test_runs_of_one_day_are_told_apart(created, names):
    runs = [
        run(f"run-{letter * 6}", cells("vllm", 100 + place), created=created[place])
        for place, letter in enumerate("ab")
    ]
    assert list(made(*runs).names.values()) == names


def test_what_cannot_be_compared_is_on_no_axis():
    other = run("other", cells("vllm", 90), host__cpu="another", created="2026-11-28T08:00:00+00:00")
    found = made(BASE, NEW, other)
    assert "vllm, 2026-11-28" not in labels(found.whole)
    (refused,) = found.refused
    assert refused.a.run == "other"
    assert "CPU" in refused.refused


def test_runs_of_which_nothing_can_be_compared_are_an_error_with_the_reason():
    other = run("other", cells("vllm", 90), host__cpu="another")
    with pytest.raises(SpecError, match=r"cannot be compared: .*CPU.*EPYC \| another") as raised:
        made(BASE, other)
    assert "--force" in raised.value.hint


def test_other_requests_are_refused_as_other_machines_are():
    other = run("other", cells("vllm", 90, work="x"), created="2026-11-28T08:00:00+00:00")
    with pytest.raises(SpecError, match="cannot be compared: other requests") as raised:
        made(BASE, other)
    assert "--force" in raised.value.hint


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"validity": FAILED}, "5 of 5 failed"), ({"load": EIGHT}, "no load point in common")],
)
def test_force_is_no_hint_where_it_would_compare_nothing(changes, why):
    other = run("other", cells("vllm", 90, **changes), created="2026-11-28T08:00:00+00:00")
    with pytest.raises(SpecError, match=why) as raised:
        made(BASE, other)
    assert raised.value.hint == "`bench compare RUN RUN` lists every difference"


def test_forced_runs_are_drawn():
    other = run("other", cells("vllm", 90), host__cpu="another", created="2026-11-28T08:00:00+00:00")
    runs = [BASE, other]
    found = several(runs, compare_runs(runs, force=True))
    assert "vllm, 2026-11-28" in labels(found.whole)


def test_backends_that_only_one_run_has_are_compared_with_each_other():
    new = run("new", cells("sglang", 80), created="2026-11-27T08:00:00+00:00")
    found = made(replace_cells(BASE, "vllm"), new)
    assert list(found.families) == [""]
    assert labels(found.whole) == ["vllm, 2026-11-20", "sglang, 2026-11-27"]


def test_the_knee_of_each_run_lies_on_its_own_curve():
    days = {
        "2026-11-20T08:00:00+00:00": [(0.5, 0.8), (2, 0.0)],
        "2026-11-27T08:00:00+00:00": [(0.5, 0.8), (1, 0.8), (2, 0.0)],
    }
    runs = []
    for day, curve in days.items():
        found = [at(size, rate, repeat) for repeat in range(3) for size, rate in curve]
        runs.append(run(day, found, created=day))
        runs[-1] = replace(runs[-1], summary=structs.replace(runs[-1].summary, knees=knees(found)))
    chart = next(one for one in charts(made(*runs).whole, {}) if one.name == "cache-load-working-set")
    marks = {line.label: line.points[0].x for line in chart.lines if line.role == "knee"}
    assert marks == {"vllm, 2026-11-20": pytest.approx(1), "vllm, 2026-11-27": pytest.approx(2**0.5)}


def replace_cells(whole, label):
    kept = [cell for cell in whole.cells if cell.label == label]
    return replace(whole, summary=structs.replace(whole.summary, cells=tuple(kept)))
