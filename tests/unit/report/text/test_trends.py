"""A history as text: series with names of their own, and no answer where nothing can be judged."""

import pytest
from msgspec.structs import replace

from harness.report.text import trends
from harness.verdicts.history import drifts, series
from tests.unit.verdicts.test_history import HOST, history, night

OTHER = {**HOST, "cpu": "Xeon"}
FOUR = {"kind": "concurrency", "value": 4}


def printed(made):
    return trends.terminal(series(made), drifts(series(made))).splitlines()


def test_nothing_is_judged_before_two_levels_can_be_seen():
    (*_, last) = printed(history([100.0] * 3 + [150.0] * 2))
    assert last == "Nothing can be judged: the longest series has 5 runs, and two levels need 6."
    (*_, means, last) = printed(history([100.0] * 6))
    assert means.startswith("Each value is the geometric mean of a run's repeats; ")
    assert last == "No figure is at a worse level than its best."
    (*_, last) = printed([*history([100.0] * 6), *night(7, 100.0, host=OTHER)])
    assert last == "No figure is at a worse level than its best; 1 of 2 have too few runs to be judged."


@pytest.mark.parametrize(
    ("mine", "other", "words"),
    [
        ({}, {"host": OTHER}, ("EPYC", "Xeon")),
        ({}, {"host": {**HOST, "cpus_usable": 1}}, ("2 cores", "1 core")),
        ({}, {"host": {**HOST, "gpus": ["H100", "L4"]}}, ("no GPU", "H100 and L4")),
        ({}, {"workload_sha256": "ab" * 32}, ("requests 5f5f5f5f", "requests abababab")),
        ({}, {"host": OTHER, "workload_sha256": "ab" * 32},
         ("EPYC, requests 5f5f5f5f", "Xeon, requests abababab")),
        ({"host": {**HOST, "cpu_features": ["avx2"]}}, {"host": {**HOST, "cpu_features": ["avx2", "amx"]}},
         ("CPU with fewer instructions", "CPU with amx")),
        ({"host": {**HOST, "cpu_features": ["avx2", "amx"]}}, {},
         ("CPU instructions known", "CPU instructions not known")),
        ({"load": {**FOUR, "think_time_s": 0}}, {"load": {**FOUR, "think_time_s": 2}},
         ("think time 0 s", "think time 2 s")),
        ({"load": {**FOUR, "start": "spread"}}, {"load": FOUR, "host": OTHER},
         ("EPYC, start of the slots spread", "Xeon, start of the slots not given")),
        ({}, {"host": None}, ("EPYC, 2 cores", "CPU not known, cores not known")),
    ],
)  # fmt: skip
def test_series_of_one_name_say_what_differs(mine, other, words):
    made = [*night(0, 100.0, **mine), *night(1, 200.0, **other)]
    lines = printed(made)[:2]
    assert [line.partition("  ")[0] for line in lines] == [
        f"chat vllm c4 TTFT p50 ({word})" for word in words
    ]
    table = trends.markdown(series(made), drifts(series(made)))
    assert all(f"| chat vllm c4 TTFT p50 ({word}) |" in table for word in words)
    assert "Each value is the geometric mean of a run's repeats" in table


def test_what_became_worse_is_named_as_its_series_is():
    slower = [
        one for number, p50 in enumerate([100.0] * 3 + [150.0] * 3) for one in night(number, p50, host=OTHER)
    ]
    (*_, last, _since) = printed([*history([100.0] * 6), *slower])
    assert last.startswith(
        "chat vllm c4 TTFT p50 (Xeon): 50.0% worse than its best level, by one step, since"
    )


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("20261104T030000Z-chat-5f3cb7", "20261104T030000Z-chat-5f3cb7 (engine"),
        ("20261129T215830Z-imported-5f3cb7", "20261129T215830Z-imported-5f3cb7 (of 2026-11-04, engine"),
    ],
)
def test_a_run_has_the_day_of_its_measurement_where_its_name_has_that_of_an_import(run, words):
    made = history([100.0] * 3 + [150.0] * 3)
    (*_, last, _since) = printed([replace(one, run=run) if one.run == "run-03" else one for one in made])
    assert f"by one step, since {words}" in last


def test_each_figure_that_became_worse_is_a_paragraph_of_markdown():
    """Lines next to each other would run into one."""
    nights = enumerate([100.0] * 3 + [150.0] * 3)
    made = [one for number, p50 in nights for host in (HOST, OTHER) for one in night(number, p50, host=host)]
    _since, first, second, means, table = trends.markdown(series(made), drifts(series(made))).split("\n\n")
    assert first.startswith(r"**chat vllm c4 TTFT p50 (EPYC): 50.0% worse")
    assert second.startswith(r"**chat vllm c4 TTFT p50 (Xeon): 50.0% worse")
    assert (means, table[:10]) == (trends.EXPLAINED, "| figure |")


def test_one_name_has_nothing_in_brackets():
    assert printed(history([100.0]))[0].startswith("chat vllm c4 TTFT p50  ")


def test_the_last_value_has_its_unit():
    made = history([98.0, 100.0])
    assert printed(made)[0].endswith("  100 ms (2 runs)")
    assert "| chat vllm c4 TTFT p50 | 2 | 100 ms |" in trends.markdown(series(made), [])


def test_an_engine_whose_version_nobody_knows_is_called_so():
    levels = enumerate([100.0] * 3 + [150.0] * 3)
    nights = [one for number, p50 in levels for one in night(number, p50, engine_version=None)]
    (*_, last, _since) = printed(nights)
    assert (
        "since run-03 (of 2026-11-04, engine version not known); the best level ended with run-02 "
        "(of 2026-11-03, engine version not known)" in last
    )


def test_noise_of_a_per_cent_does_not_look_like_a_step():
    assert trends.spark([100.0, 101.0, 100.0, 101.0]) == "▁▂▁▂"
    assert trends.spark([100.0, 115.0]) == "▁█"


def test_the_courses_stand_below_each_other():
    made = [*night(0, 100.0), *night(1, 100.0, load=FOUR | {"value": 64})]
    first, second, *_ = printed(made)
    assert first.index("▁") == second.index("▁")
