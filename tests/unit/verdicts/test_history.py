"""Histories of made-up runs: what is appended, what is one series, what became slower."""

import json

import numpy as np
import pytest
from msgspec.structs import replace

from harness.errors import SpecError
from harness.model import UNSET, HistoryEntry, LoadPoint, Manifest, as_json
from harness.report.findings import series_words
from harness.report.text import trends
from harness.store.history import append_history, history_path, read_history
from harness.verdicts import Rules, compare
from harness.verdicts.history import (
    Series,
    Stretch,
    changes,
    drifts,
    from_day,
    same_course,
    series,
    stretches,
)
from harness.verdicts.history_lines import entries, not_kept
from tests.factories.documents import made
from tests.factories.histories import nights
from tests.factories.summaries import cell, summary

METRIC = "ttft_ms.p50"
HOST = {"cpu": "EPYC", "cpus_usable": 2, "gpus": None, "hostname": "a-new-one-each-night"}


def compared(cells, **named):
    return summary(*cells, **named, **compare(cells, Rules(primary=METRIC, metrics=(METRIC,)))._asdict())


def manifest(number, **keys):
    return made(Manifest, created_utc=f"2026-11-{number + 1:02d}T03:00:00+00:00", **keys)


def night(number, p50, *, host=HOST, repeats=3, **changes):
    cells = [cell("vllm", repeat=repeat, p50=p50 + 0.01 * repeat, **changes) for repeat in range(repeats)]
    return entries(manifest(number, host=host), compared(cells, run=f"run-{number:02d}", scenario="chat"))


def history(values):
    return [entry for number, value in enumerate(values) for entry in night(number, value)]


def noisy(values, seed=0):
    return np.asarray(values) * np.exp(np.random.default_rng(seed).normal(0, 0.01, len(values)))


def test_an_entry_is_a_backend_at_a_load():
    (entry,) = night(0, 100.0)
    assert (entry.label, entry.load, entry.engine_version) == ("vllm", LoadPoint("concurrency", 4), "b11549")
    assert list(entry.metrics) == [METRIC]
    low, middle, high = entry.metrics[METRIC].interval
    assert low < middle < high
    assert entry.metrics[METRIC].runs == 3
    json.dumps(as_json(entry))


def test_an_entry_has_every_version_that_its_cells_were_measured_on():
    versions = ("1.0", None, "1.1", "1.0")
    cells = [cell("vllm", repeat=n, engine_version=version) for n, version in enumerate(versions)]
    (entry,) = entries(made(Manifest), compared(cells))
    assert entry.engine_version == "1.0, 1.1"


def test_a_quiet_history_has_no_drift():
    assert drifts(series(history(noisy([100.0] * 20)))) == []


def test_a_step_is_found_once_it_stays():
    assert drifts(series(history(noisy([100.0] * 10 + [110.0] * 2)))) == []
    (found,) = drifts(series(history(noisy([100.0] * 10 + [110.0] * 3))))
    assert (found.kind, found.since.run, found.best.run) == ("step", "run-10", "run-09")
    assert found.ratio == pytest.approx(1.1, abs=0.02)
    assert found.as_json() == {
        "scenario": "chat",
        "label": "vllm",
        "simulated": False,
        "load": {"kind": "concurrency", "value": 4},
        "metric": METRIC,
        "worse_by": found.ratio - 1,
        "worse_by_interval": [found.interval.low - 1, found.interval.high - 1],
        "kind": "step",
        "since_run": "run-10",
        "since_engine_version": found.since.engine_version,
        "best_run": "run-09",
        "best_engine_version": found.best.engine_version,
        "steps": [{"since_run": "run-10", "worse_by": found.ratio - 1, "changed": []}],
    }
    assert 1.07 < found.interval.low < found.ratio < found.interval.high < 1.11


@pytest.mark.parametrize("slow", [1, 2])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_bad_night_or_two_fail_nothing_after_months(slow, after):
    values = noisy(np.repeat([100.0, 150.0, 100.0], [60, slow, after]))
    assert drifts([course(values)]) == []


def test_a_scripted_server_has_a_series_of_its_own():
    """Its figures and an engine's are no two levels of one backend."""
    nights = history([100.0] * 3 + [150.0] * 3)
    made_up = [replace(entry, simulated=True) for entry in nights[:3]]
    found = series([*made_up, *nights[3:]])
    assert [(one.simulated, len(one.values)) for one in found] == [(True, 3), (False, 3)]
    assert drifts(series([*made_up, *nights[3:]])) == []


def test_a_level_that_was_accepted_is_not_judged_and_what_is_worse_than_it_is():
    worse = history(noisy([100.0] * 6 + [110.0] * 6))
    assert [len(found.steps) for found in drifts(series(worse))] == [1]
    assert drifts(from_day(series(worse), "2026-11-07")) == []
    again = history(noisy([100.0] * 6 + [110.0] * 6 + [130.0] * 3))
    (found,) = drifts(from_day(series(again), "2026-11-07"))
    assert (found.since.run, found.best.run) == ("run-12", "run-11")
    assert found.ratio == pytest.approx(130 / 110, abs=0.02)
    assert from_day(series(again), "2027-01-01") == []


def printed(values, digit):
    """Nights of files that print so many digits; None: of records."""
    made_of = history([float(value) for value in values])
    figures = [{METRIC: replace(one.metrics[METRIC], printed_to=digit or UNSET)} for one in made_of]
    return [replace(one, metrics=metrics) for one, metrics in zip(made_of, figures, strict=True)]


@pytest.mark.parametrize(
    ("values", "digit", "found"),
    [
        ([12] * 6 + [13] * 6, 1.0, 0),  # 12.4 and 12.6, for all that is known
        ([12] * 6 + [13] * 6, None, 1),
        ([12] * 6 + [14] * 6, 1.0, 1),
        ([12, 11, 13, 12, 11, 12, 13, 12, 11, 12, 14, 13, 14, 15, 14, 13, 14, 14, 15, 13], 1.0, 1),
        ([12.0] * 6 + [13.0] * 6, 0.1, 1),
    ],
)
def test_the_last_digit_of_a_file_is_no_step(values, digit, found):
    assert len(drifts(series(printed(values, digit)))) == found


def test_equal_printed_figures_are_not_known_beyond_their_last_digit():
    (of_files,) = drifts(series(printed([12] * 6 + [14] * 6, 1.0)))
    (of_records,) = drifts(series(printed([12] * 6 + [14] * 6, None)))
    assert of_files.span == pytest.approx((0.131, 0.204), abs=0.001)
    assert of_records.span == pytest.approx((0.167, 0.167), abs=0.001)


def test_files_of_figures_alone_keep_their_last_digit():
    stated = {"tool": "x", "level": "summary", "sha256": "", "file": "x.json", "took": ""}
    cells = [cell("vllm", repeat=n, p50=12.0 + 0.5 * n, imported=stated) for n in range(3)]
    (entry,) = entries(made(Manifest), compared(cells))
    assert entry.metrics[METRIC].printed_to == 0.1
    (own,) = night(0, 100.0)
    assert own.metrics[METRIC].printed_to is UNSET


def test_slow_creep_is_found():
    """Half a per cent a night: no night is worse than the one before by more than its noise."""
    (found,) = drifts(series(history(noisy(100 * 1.005 ** np.arange(25)))))
    assert found.kind == "creep"
    assert found.ratio > 1.05


def test_two_steps_are_named_and_are_no_creep():
    found = series(history([100.0, 100.2] * 4 + [106.0, 106.2] * 4 + [112.2, 112.4] * 4))
    (line,) = series_words.conclusion(found, drifts(found))
    assert "by two steps (6.0% with run-08, then 5.8%), since run-16" in line
    crept = series(history(noisy(100 * 1.005 ** np.arange(40))))
    (line,) = series_words.conclusion(crept, drifts(crept))
    assert "creeping, by several small steps" in line


def test_better_is_no_regression_and_a_return_is_measured_from_the_best():
    assert drifts(series(history(noisy([100.0] * 8 + [80.0] * 8)))) == []
    (found,) = drifts(series(history(noisy([100.0] * 8 + [80.0] * 8 + [90.0] * 4))))
    assert found.ratio == pytest.approx(90 / 80, abs=0.03)


def test_another_machine_or_other_requests_are_another_series():
    other = {**HOST, "cpu": "Xeon"}
    mixed = [*history([100.0] * 5), *night(6, 200.0, host=other), *night(7, 300.0, workload_sha256="x")]
    assert sorted(len(one.values) for one in series(mixed)) == [1, 1, 5]


RATE = {"kind": "rate", "value": 4, "arrival": "gamma"}
SLOTS = {"kind": "concurrency", "value": 4}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({**SLOTS, "think_time_s": 0.0}, {**SLOTS, "think_time_s": 2.0}),
        ({**SLOTS, "start": "spread"}, {**SLOTS, "start": "together"}),
        ({**RATE, "burstiness": 1.0}, {**RATE, "burstiness": 0.25}),
        ({**RATE, "profile": []}, {**RATE, "profile": [{"seconds": 10, "start": 1, "end": 2}]}),
    ],
)
def test_a_load_of_another_kind_is_another_series(before, after):
    """Six nights of each in turn: of one series they would be noise, and no step would be seen."""
    nights = [
        entry
        for number in range(12)
        for entry in night(number, 100.0 if number < 6 else 150.0, load=(before, after)[number % 2])
    ]
    assert [len(one.values) for one in series(nights)] == [6, 6]
    assert [drift.kind for drift in drifts(series(nights))] == ["step", "step"]


def asked(number, metrics=(METRIC,), **conditions):
    """A night of an entry with these conditions; None: by a version that kept none."""
    figures = {metric: {"interval": [None, 100.0, None], "runs": 1} for metric in metrics}
    created = f"2026-11-{number + 1:02d}T03:00:00+00:00"
    entry = made(HistoryEntry, run=f"run-{number:02d}", created_utc=created, metrics=figures)
    return replace(entry, conditions=conditions)


def test_another_model_is_another_series():
    found = series([asked(0, model="llama-3.1-8b"), asked(1, model="llama-3.2-1b")])
    assert [one.conditions for one in found] == [{"model": "llama-3.1-8b"}, {"model": "llama-3.2-1b"}]


def of_file(number, prompt, answer=16.0):
    """A night of files, whose requests have no hash; None: of a version that kept no lengths."""
    tokens = {"mean": prompt, "first": [], "sha256": None} if prompt else None
    conditions = {"prompt_tokens": tokens, "output_tokens_mean": answer}
    return night(number, 100.0, workload_sha256="", conditions=conditions)


def test_files_of_longer_prompts_or_answers_are_another_series():
    """They read as a step for the worse, and failed the gate of the night."""
    lengths = [(16.0,), (16.5,), (64.0,), (16.0, 32.0), (None, None)]
    nights = [entry for number, given in enumerate(lengths) for entry in of_file(number, *given)]
    found = series(nights)
    assert [[entry.run[-1] for entry in one.entries] for one in found] == [["0", "1", "4"], ["2"], ["3"]]
    assert [name.partition(" (")[2] for name in series_words.names(found)] == [
        "16 tokens per prompt and 16 tokens per answer)",
        "64 tokens per prompt and 16 tokens per answer)",
        "16 tokens per prompt and 32 tokens per answer)",
    ]
    assert [same_course(nights[0], other) for other in nights] == [True, True, False, False, True]
    assert as_json(nights[0])["prompt_tokens_mean"] == 16.0
    assert "prompt_tokens_mean" not in as_json(night(0, 100.0)[0])


def test_another_engine_under_the_same_name_is_another_series():
    """One night `prod=vllm=URL`, the next `prod=sglang=URL`."""
    lines = []
    for number, engine in enumerate(("vllm", "vllm", "sglang")):
        cells = [cell("prod", repeat=repeat, p50=100.0) for repeat in range(2)]
        of_night = manifest(number, backends={"prod": {"backend": engine}})
        lines += entries(of_night, compared(cells, run=f"run-{number}"))
    found = series(lines)
    assert [(one.label, len(one.values)) for one in found] == [("prod", 2), ("prod", 1)]
    names = ["prod c4 TTFT p50 (backend vllm)", "prod c4 TTFT p50 (backend sglang)"]
    assert [name.partition(" ")[2] for name in series_words.names(found)] == names


def of_server(number, label, variant):
    cells = [cell(label, variant=variant, repeat=repeat, p50=100.0) for repeat in range(2)]
    of_night = manifest(number, backends={label: {"backend": "vllm", "variant": variant}})
    return entries(of_night, compared(cells, run=f"run-{number}"))


def test_another_variant_under_the_same_name_is_another_series():
    """One night `prod=vllm=URL`, the next `prod=vllm@eager=URL`; without a name of its own it has two."""
    nights = [of_server(number, "prod", variant) for number, variant in enumerate((None, "eager", None))]
    found = series([entry for night in nights for entry in night])
    assert [(one.conditions["backend"], len(one.values)) for one in found] == [("vllm", 2), ("vllm@eager", 1)]
    (own,) = of_server(3, "vllm@eager", "eager")
    assert own.conditions["backend"] == "vllm"


def test_other_limits_begin_a_series_of_goodput_alone():
    both = (METRIC, "goodput_requests_per_s")
    found = series([asked(number, both, slo=f"ttft_ms.p95 {500 + number} ms") for number in range(2)])
    assert sorted((one.metric, len(one.values)) for one in found) == [
        ("goodput_requests_per_s", 1),
        ("goodput_requests_per_s", 1),
        (METRIC, 2),
    ]


def test_nights_of_a_version_that_kept_no_conditions_go_on_with_the_first_of_them():
    old = [replace(asked(number), conditions=UNSET) for number in range(3)]
    later = [asked(3, temperature="0.0"), asked(4, temperature="0.0", model="a"), asked(5, temperature="1.0")]
    found = series([*old, *later])
    assert [len(one.values) for one in found] == [5, 1]
    assert found[0].conditions == {"temperature": "0.0", "model": "a"}


def test_a_condition_that_no_version_knows_parts_nothing():
    assert len(series([asked(0, later="a"), asked(1, later="b")])) == 1


def of_repeats(**repeats):
    """Manifest and summary of a run in which backends have these repeats, each with requests of its own."""
    cells = [
        cell(label, repeat=repeat, p50=100 + repeat, workload_sha256=f"requests {repeat}")
        for label, own in repeats.items()
        for repeat in own
    ]
    return made(Manifest), compared(cells, run="run-00")


def test_a_night_without_its_first_repeat_has_the_requests_of_another_backend():
    began, whole = of_repeats(vllm=(2, 1), tgi=(1, 2, 0))
    found = {one.label: one.workload_sha256 for one in entries(began, whole)}
    assert found == {"vllm": "requests 0", "tgi": "requests 0"}
    assert not_kept(whole) == []


@pytest.mark.parametrize("others", [{}, {"tgi": (3, 4)}, {"tgi": (0, 3)}])
def test_a_night_whose_requests_nobody_knows_is_left_out_by_name(others):
    """Two backends without a repeat in common may have had other requests each."""
    began, whole = of_repeats(vllm=(1, 2), **others)
    assert "vllm" not in [one.label for one in entries(began, whole)]
    (why, *_) = not_kept(whole)
    assert why == (
        "vllm c4 of run-00 is not in the history: without its first repeat, its requests are not known to be "
        "those of other runs"
    )


def test_a_backend_without_a_valid_figure_is_left_out_by_name():
    cells = [cell("vllm"), cell("tgi", validity={"verdict": "INVALID"})]
    whole = compared(cells, run="run-00")
    assert not_kept(whole) == ["tgi c4 of run-00 is not in the history: it has no valid figure"]
    assert [one.label for one in entries(made(Manifest), whole)] == ["vllm"]


def test_a_run_without_a_cell_is_left_out_by_name():
    assert not_kept(summary(run="run-00")) == ["run-00 is not in the history: no cell of it was measured"]


def test_a_night_of_one_run_has_no_bounds_and_is_read_again(tmp_path):
    path = history_path(tmp_path)
    (entry,) = night(0, 100.0, repeats=1)
    low, _middle, high = entry.metrics[METRIC].interval
    assert low is None
    assert high is None
    append_history(path, [entry])
    assert read_history(path)[0].metrics == entry.metrics


def test_the_file_is_only_appended_to(tmp_path):
    path = history_path(tmp_path)
    assert read_history(path) == []
    assert append_history(path, night(0, 100.0)) == 1
    before = path.read_bytes()
    assert append_history(path, [*night(0, 100.0), *night(1, 101.0)]) == 1
    assert path.read_bytes().startswith(before)
    assert [entry.run for entry in read_history(path)] == ["run-00", "run-01"]


def test_a_run_that_was_added_before_its_end_has_the_figures_of_its_end(tmp_path):
    path = history_path(tmp_path)
    assert append_history(path, night(0, 90.0, repeats=1)) == 1
    for added in (1, 0):
        assert append_history(path, night(0, 100.0)) == added
        (entry,) = read_history(path)
        assert entry.metrics[METRIC].runs == 3
        assert series([entry])[0].values == pytest.approx([100.0], rel=0.001)


def test_a_line_that_two_writers_added_is_a_night_once(tmp_path):
    """Else one bad night would be a level of three."""
    path = history_path(tmp_path)
    append_history(path, history(noisy([100.0] * 6)))
    append_history(path, night(6, 150.0))
    bad = path.read_text().splitlines()[-1]
    path.write_text(path.read_text() + 2 * f"{bad}\n")
    assert [entry.run for entry in read_history(path)] == [f"run-{number:02d}" for number in range(7)]
    assert drifts(series(read_history(path))) == []


@pytest.mark.parametrize(
    ("line", "words"), [("{", "not a line of JSON"), ('{"schema": 9}', "schema 9 is not 1")]
)
def test_a_line_that_is_none_is_named(tmp_path, line, words):
    path = tmp_path / "runs.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(SpecError, match=words) as raised:
        read_history(path)
    assert raised.value.where == f"{path}:2"


def test_what_is_printed():
    made = history(noisy([100.0] * 10 + [110.0] * 3))
    text = trends.terminal(series(made), drifts(series(made)))
    assert text.startswith("chat vllm c4 TTFT p50  ")
    assert "% worse than its best level, by one step, since run-10" in text
    assert "| chat vllm c4 TTFT p50 | 13 |" in trends.markdown(series(made), drifts(series(made)))
    assert trends.terminal([], []).strip() == "Nothing can be judged: the history has no figure above 0."
    assert trends.spark([1.0, 1.0]) == "▁▁"


def test_an_entry_knows_its_machine_and_what_failed():
    """The third of three repeats is INVALID; 3 + 0 + 20 of their requests failed."""
    counts = [(29, 3), (32, 0), (12, 20)]
    verdicts = ("VALID", "VALID", "INVALID")
    cells = [
        cell("vllm", repeat=repeat, requests={"ok": ok, "failed": failed}, validity={"verdict": verdict})
        for repeat, ((ok, failed), verdict) in enumerate(zip(counts, verdicts, strict=True))
    ]
    host = {**HOST, "cpu_features": ["avx2", "amx"], "gpus": ["H100"], "memory_bytes": 1}
    whole = compared(cells, run="run-00", scenario="chat")
    (entry,) = entries(manifest(0, host=host, git={"revision": "5f5f"}), whole)
    assert (entry.host.cpu, entry.host.cpus_usable, entry.host.gpus) == ("EPYC", 2, ("H100",))
    assert entry.host.cpu_features == ("avx2", "amx")
    assert (entry.invalid, entry.failed, entry.ended) == (1, 23, 96)
    assert (entry.run, entry.scenario, entry.harness) == ("run-00", "chat", "5f5f")
    assert (entry.created_utc, entry.simulated) == ("2026-11-01T03:00:00+00:00", False)
    assert entry.workload_sha256 == "5f" * 32
    assert entry.metrics[METRIC].runs == 2


def test_a_run_of_an_unknown_machine_and_of_an_installed_package_has_an_entry():
    (entry,) = night(0, 100.0, host=None)
    assert (entry.host.cpu, entry.host.cpus_usable, entry.harness) == (None, None, None)


def test_each_load_of_each_backend_has_an_entry_of_its_own():
    cells = [
        cell(label, {"kind": "concurrency", "value": value}, p50=value)
        for label in ("vllm", "tgi")
        for value in (4, 8)
    ]
    found = entries(made(Manifest), compared(cells))
    assert sorted((one.label, one.load.value, one.metrics[METRIC].interval[1]) for one in found) == [
        ("tgi", 4, pytest.approx(4)),
        ("tgi", 8, pytest.approx(8)),
        ("vllm", 4, pytest.approx(4)),
        ("vllm", 8, pytest.approx(8)),
    ]


def course(values, metric=METRIC):
    """A series whose runs have these values."""
    return Series("chat", "vllm", LoadPoint("concurrency", 4), metric, tuple(nights(values, metric=metric)))


@pytest.mark.parametrize("metric", [METRIC, "output_tokens_per_s"])
def test_stretches_have_the_geometric_mean_of_their_runs(metric):
    """Of 100 / 1.01, 100 and 101 it is 100, whether more is worse or better."""
    first, second = stretches(course([100 / 1.01, 100, 101, 200, 200, 200, 200], metric))
    assert (first.start, first.stop, second.start, second.stop) == (0, 3, 3, 7)
    assert (first.value, second.value) == (pytest.approx(100), pytest.approx(200))


def test_a_series_without_a_change_is_one_stretch():
    flat = course([100.0] * 5)
    assert stretches(flat) == [Stretch(0, 5, pytest.approx(100))]
    assert changes(flat) == []
    assert stretches(course([])) == []


@pytest.mark.parametrize(("metric", "ratios"), [(METRIC, (2, 4)), ("output_tokens_per_s", (0.5, 0.25))])
def test_each_change_is_told_as_so_many_times_worse(metric, ratios):
    """100, then 200, then 800: of times that is worse, of rates it is better."""
    one = course([100.0] * 5 + [200.0] * 4 + [800.0] * 5, metric)
    first, second = changes(one)
    assert (first.ratio, second.ratio) == pytest.approx(ratios)
    assert (first.before.run, first.since.run) == ("run-04", "run-05")
    assert (second.before.run, second.since.run) == ("run-08", "run-09")
    assert first.series is second.series is one


@pytest.mark.parametrize(
    ("metric", "values", "share"),
    [(METRIC, (100.0, 125.0), 0.25), ("output_tokens_per_s", (100.0, 80.0), 0.2)],
)
def test_what_is_lost_is_a_share_of_the_best_level(metric, values, share):
    """As `bench compare` says it of the same two runs."""
    fallen = course(np.repeat(values, 5), metric)
    (change,), (drift,) = changes(fallen), drifts([fallen])
    assert change.share == drift.share == drift.as_json()["worse_by"] == pytest.approx(share)
    assert f"{100 * share:.1f}% worse than its best level" in trends.terminal([fallen], [drift])
    assert drifts([fallen], share + 0.001) == []
    assert drifts([fallen], share) == []
    assert drifts([fallen], share - 0.001) == [drift]


def test_a_single_odd_night_is_no_change():
    assert changes(course([100.0] * 5 + [300.0, 300.0] + [100.0] * 5)) == []


def test_figures_of_no_value_and_of_no_direction_are_in_no_series():
    found = [*nights([0.0, 2.0]), *nights([3.0], metric="a_later_metric")]
    assert [(one.metric, one.values) for one in series(found)] == [(METRIC, [2.0])]
