"""`bench history`: runs are added once, a worse level fails the gate, and no history passes none."""

import json
import shutil

import pytest
from msgspec.structs import replace

from harness import summary
from harness.cli.main import main
from harness.errors import ExitCode
from harness.store import derived
from harness.store.history import append_history, history_path, read_history
from tests.factories.histories import LOAD, night
from tests.factories.runs import TWO, Shape, make_run

pytestmark = pytest.mark.usefixtures("cache")  # what is computed of a run is kept there


def entry(number, label, **figures):
    (metric, value), *_ = figures.items()
    return night(number, value, label=label, metric=metric, runs=3, engine_version=f"0.{number}")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Of 14 nights: from the 11th on vLLM's first token takes 20% longer; SGLang writes 20% more."""
    nights = []
    for number in range(14):
        wobble = 1 + 0.01 * (-1) ** number
        later = 1.2 if number >= 10 else 1.0
        nights.append(entry(number, "vllm", **{"ttft_ms.p50": 100 * wobble * later}))
        nights.append(entry(number, "sglang", output_tokens_per_s=500 * wobble * later))
    path = history_path(tmp_path_factory.mktemp("history"))
    for number in range(14):
        append_history(path, [one for one in nights if one.run == f"run-{number:02d}"])
    return path


@pytest.fixture
def results(tmp_path, written):
    shutil.copytree(written.parent, history_path(tmp_path).parent)
    return tmp_path


def history(results, *words):
    return main(["history", "--out", str(results), *words])


def test_a_worse_level_is_named_with_its_size_and_its_first_run(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert history(results) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("chat vllm c4 TTFT p50  ")
    assert lines[0].endswith(" (14 runs)")
    (drift,) = (line for line in lines if "worse than" in line)
    assert drift.startswith("chat vllm c4 TTFT p50: 20.0% worse than its best level, by one step, since ")
    assert (
        "since run-10 (of 2026-11-11, engine 0.10); the best level ended with run-09 (of 2026-11-10, engine "
        "0.9)" in drift
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--fail-on", "slower"], ExitCode.LIMIT_FAILED),
        (["--fail-on", "slower", "--json"], ExitCode.LIMIT_FAILED),
        (["--fail-on", "slower", "--floor", "25"], ExitCode.OK),
        (["--floor", "15"], ExitCode.OK),
        (["--fail-on", "slower", "--since", "2026-11-11"], ExitCode.OK),
        (["--fail-on", "slower", "--since", "2026-11-05"], ExitCode.LIMIT_FAILED),
        (["--since", "yesterday"], ExitCode.USAGE),
        (["--since", "2027-01-01"], ExitCode.USAGE),
    ],
)
def test_the_gate_fails_on_what_is_worse_by_more_than_the_floor(results, words, code):
    assert history(results, *words) == code


def test_what_is_judged_since_a_day_is_counted_from_that_day(results, capsys):
    """The figure became worse on 11 November; of the four runs since then nothing can be said."""
    history(results, "--since", "2026-11-11")
    text = " ".join(capsys.readouterr().out.split())
    assert " (4 runs)" in text
    assert "Nothing can be judged: the longest series has 4 runs, and two levels need 6." in text


def test_the_document_has_shares_and_the_page_a_table(results, capsys):
    history(results, "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["runs"] == 14
    (drift,) = document["drifts"]
    assert (drift["label"], drift["load"], drift["kind"]) == ("vllm", LOAD, "step")
    assert drift["worse_by"] == pytest.approx(0.2, abs=0.01)
    history(results, "--markdown")
    page = capsys.readouterr().out
    assert page.startswith("**Worse since 2026-11-11: vllm (1 of 1 figure), by 20.0%. Changed around then: ")
    assert "\n**chat vllm c4 TTFT p50: 20" in page
    assert "| chat sglang c4 output | 14 | 594 tokens/s | " in page


def test_lines_are_broken_between_words(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    history(results)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 60
    assert "the best level ended with run-09 (of 2026-11-10, engine 0.9)" in " ".join(text.split())
    assert "" in text.splitlines()


def test_figures_of_a_scripted_server_are_marked(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    for number in range(6):
        value = 100 if number < 3 else 150
        night = [replace(entry(number, "vllm", **{"ttft_ms.p50": value}), simulated=True)]
        append_history(history_path(tmp_path), night)
    history(tmp_path)
    line, _, _means, drift, since = capsys.readouterr().out.splitlines()
    assert line.startswith("SIMULATED chat vllm c4 TTFT p50  ")
    assert drift.startswith("SIMULATED chat vllm c4 TTFT p50: 50.0% worse")
    assert since.startswith("Worse since 2026-11-04: SIMULATED vllm (1 of 1 figure), by 50.0%.")
    history(tmp_path, "--markdown")
    page = capsys.readouterr().out
    assert page.startswith("**Worse since 2026-11-04: SIMULATED vllm")
    assert "\n**SIMULATED chat vllm" in page
    assert "| SIMULATED chat vllm c4 TTFT p50 | 6 |" in page
    history(tmp_path, "--json")
    assert json.loads(capsys.readouterr().out)["drifts"][0]["simulated"] is True


def test_a_run_is_added_once(tmp_path, capsys):
    shape = Shape(TWO[:1], concurrency=(2,), repeats=3, requests=6, output_tokens=4)
    folder = make_run(tmp_path, shape)
    for _ in range(2):
        assert history(tmp_path, folder.run_id, "--json") == ExitCode.OK
        assert json.loads(capsys.readouterr().out) == {"runs": 1, "drifts": []}
    lines = history_path(tmp_path).read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["llamacpp"]
    history(tmp_path)
    said = "Nothing can be judged: the longest series has 1 run, and two levels need 6."
    assert said in capsys.readouterr().out


def test_a_run_that_has_not_changed_is_not_computed_again(tmp_path, capsys, monkeypatch):
    """Its line is the same; a record that changed is read, and found to be damaged."""
    monkeypatch.setattr(derived, "_TICK_S", 0)
    monkeypatch.setattr(derived, "_CODE", tmp_path)
    folder = make_run(tmp_path, Shape(TWO[:1], concurrency=(2,), requests=6, output_tokens=4))
    assert history(tmp_path, folder.run_id) == ExitCode.OK
    first = history_path(tmp_path).read_text()
    history_path(tmp_path).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(summary, "summarise_folder", None)
        assert history(tmp_path, folder.run_id) == ExitCode.OK
    assert history_path(tmp_path).read_text() == first
    damaged = folder.cell_path(folder.cells()[0]) / "requests.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert history(tmp_path, folder.run_id) == ExitCode.USAGE
    assert "not added" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--json"], ["--markdown"]])
def test_a_gate_that_judges_nothing_passes_and_says_so(tmp_path, capsys, words):
    """A history begins with too few runs, and a machine that is another each night never has enough."""
    nights = [[entry(number, "vllm", **{"ttft_ms.p50": 100 if number < 3 else 150})] for number in range(6)]
    for lines in nights[:5]:
        append_history(history_path(tmp_path), lines)
    assert history(tmp_path, "--fail-on", "slower", *words) == ExitCode.OK
    few = "the longest series has 5 runs, and two levels need 6"
    said = capsys.readouterr().err.splitlines()
    assert said == [f"warning: --fail-on slower has nothing to judge: {few}"]
    append_history(history_path(tmp_path), nights[5])
    assert history(tmp_path, "--fail-on", "slower", *words) == ExitCode.LIMIT_FAILED
    assert not capsys.readouterr().err


def test_the_gate_of_a_run_judges_its_own_figures(results, capsys):
    """What was last measured long ago and stayed worse does not fail every run from then on."""
    shape = Shape(TWO[:1], concurrency=(2,), repeats=3, requests=6, output_tokens=4)
    folder = make_run(results, shape)
    assert history(results, folder.run_id, "--fail-on", "slower") == ExitCode.OK
    printed = capsys.readouterr()
    assert "worse than its best level" in printed.out
    assert "warning: --fail-on slower has nothing to judge: the longest series has 1 run" in printed.err
    assert history(results, "--fail-on", "slower") == ExitCode.LIMIT_FAILED
    (ours,) = (one for one in read_history(history_path(results)) if one.run == folder.run_id)
    for number in range(5):
        factor = 0.5 if number < 3 else 1.0
        faster = {
            name: replace(figure, interval=[figure.interval[1] * factor] * 3)
            for name, figure in ours.metrics.items()
        }
        earlier = f"2026-10-{number + 1:02d}T03:00:00Z"
        append_history(
            history_path(results), [replace(ours, run=f"x{number}", created_utc=earlier, metrics=faster)]
        )
    assert history(results, folder.run_id, "--fail-on", "slower") == ExitCode.LIMIT_FAILED


def test_a_run_of_before_the_first_day_is_said_to_be_so(results, capsys):
    """It has figures above 0, and the history has later runs."""
    folder = make_run(results, Shape(TWO[:1], concurrency=(2,), requests=6, output_tokens=4))
    assert history(results, folder.run_id) == ExitCode.OK
    ours = next(one for one in read_history(history_path(results)) if one.run == folder.run_id)
    append_history(history_path(results), [replace(ours, run="later", created_utc="2099-10-02T03:00:00Z")])
    capsys.readouterr()
    assert history(results, folder.run_id, "--since", "2099-10-01", "--fail-on", "slower") == ExitCode.OK
    assert "nothing to judge: these runs are of before 2099-10-01, the day of" in capsys.readouterr().err


def test_a_history_of_zeros_is_none_that_lacks_runs(tmp_path, capsys):
    for number in range(6):
        append_history(history_path(tmp_path), [entry(number, "vllm", goodput_requests_per_s=0)])
    assert history(tmp_path, "--fail-on", "slower") == ExitCode.OK
    printed = capsys.readouterr()
    nothing = "the history has no figure above 0"
    assert printed.out.strip() == f"Nothing can be judged: {nothing}."
    assert printed.err.strip() == f"warning: --fail-on slower has nothing to judge: {nothing}"


def test_a_run_without_figures_says_nothing_of_the_rest_of_the_history(results, capsys, monkeypatch):
    """Such as one whose cells are all INVALID: the others have figures above 0."""
    folder = make_run(results, Shape(TWO[:1], concurrency=(2,), requests=6, output_tokens=4))
    monkeypatch.setattr("harness.verdicts.history_lines.entries", lambda *_: [])
    assert history(results, folder.run_id, "--fail-on", "slower") == ExitCode.OK
    few = "no figure above 0 of these runs is in it"
    assert capsys.readouterr().err.strip() == f"warning: --fail-on slower has nothing to judge: {few}"


def test_many_runs_are_counted_while_they_are_read(tmp_path, capsys):
    run = str(make_run(tmp_path, Shape(TWO[:1], concurrency=(2,), requests=6, output_tokens=4)).path)
    assert history(tmp_path, run, run) == ExitCode.OK
    assert capsys.readouterr().err.endswith("s] reading the runs (1 of 2)\n")
    assert history(tmp_path, run) == ExitCode.OK
    assert not capsys.readouterr().err


def test_the_rest_of_a_run_that_was_added_in_part_is_added(tmp_path):
    whole = [entry(0, label, **{"ttft_ms.p50": 100}) for label in ("vllm", "sglang")]
    assert append_history(history_path(tmp_path), whole[:1]) == 1
    assert append_history(history_path(tmp_path), whole) == 1
    assert append_history(history_path(tmp_path), whole) == 0


def test_what_is_not_added_is_named(tmp_path, capsys):
    shape = Shape(TWO[:1], concurrency=(2, 4), repeats=3, requests=6, output_tokens=4)
    folder = make_run(tmp_path, shape)
    for file in (folder.path / "cells").glob("*-c4-r0*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    history(tmp_path, folder.run_id)
    said = "warning: llamacpp c4 of 20261120T051744Z-shared-prefix-a1b2c3 is not in the history: without"
    assert capsys.readouterr().err.startswith(said)
    lines = history_path(tmp_path).read_text().splitlines()
    assert [json.loads(line)["load"]["value"] for line in lines] == [2]


def test_a_gate_over_no_history_has_not_passed(tmp_path, capsys):
    assert history(tmp_path, "--fail-on", "slower") == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [
        f"error: {history_path(tmp_path)}: no run in the history",
        "hint: `bench history RUN` adds one; --out names the folder of the runs",
    ]


def test_a_run_that_cannot_be_added_is_not_offered_again(tmp_path, capsys):
    """A run that was interrupted in its first cell has none."""
    folder = make_run(tmp_path, Shape(TWO[:1], concurrency=(2,), requests=6, output_tokens=4))
    shutil.rmtree(folder.path / "cells")
    assert history(tmp_path, folder.run_id) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [
        f"warning: {folder.run_id} is not in the history: no cell of it was measured",
        f"error: {history_path(tmp_path)}: no run in the history",
    ]


@pytest.mark.parametrize("floor", ["-100", "nan", "5%"])
def test_a_floor_that_is_no_share_is_refused(results, capsys, floor):
    assert history(results, "--fail-on", "slower", "--floor", floor) == ExitCode.USAGE
    assert f"--floor: '{floor}' is not a percentage from 0 on" in capsys.readouterr().err


def test_the_history_is_read_once_for_all_runs_and_keeps_those_before_a_damaged_one(tmp_path, monkeypatch):
    """To read it for each takes a time that grows with the square of the runs."""
    folder = make_run(tmp_path, Shape(TWO[:1], concurrency=(2,), requests=6, output_tokens=4))
    made_of = [[entry(number, "vllm", **{"ttft_ms.p50": 100})] for number in (0, 1, 1)]
    calls, nights = [], iter(made_of)
    monkeypatch.setattr("harness.verdicts.history_lines.entries", lambda *_: next(nights))
    monkeypatch.setattr(
        "harness.store.history.append_history",
        lambda path, new: calls.append(path) or append_history(path, new),
    )
    assert history(tmp_path, *[folder.run_id] * 3, "no-such-run") == ExitCode.USAGE
    assert len(calls) == 1
    lines = history_path(tmp_path).read_text().splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["run-00", "run-01"]
