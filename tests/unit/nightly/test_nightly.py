"""Suites as data, and the flags and words that come of them."""

import argparse
import html
import json
import re
import subprocess
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest

from harness.cli.commands.run import add_arguments
from harness.cli.main import main
from harness.errors import SpecError, StorageError
from harness.model import HistoryEntry, Manifest
from harness.nightly import Night, Step, drawn, load_suite, page
from harness.nightly.missing import _labels, missing
from harness.nightly.page import verdict
from harness.nightly.run_suite import _expected_s, _step, spend
from harness.nightly.suite import About, Entry, Gate, Suite
from harness.plan import LoadPoint
from harness.report.findings.against import place_words
from harness.report.findings.changed_then import with_changes
from harness.spec.backend_refs import load_backend
from harness.spec.files import names
from harness.spec.scenario import load_scenario
from harness.store import RunFolder
from harness.store.history import history_path, read_history
from harness.verdicts.history import drifts, series
from harness.verdicts.history_lines import entries
from harness.verdicts.missing import Missing
from tests.bench.audit.gates import change_json, mend
from tests.factories import documents, foreign, histories, summaries
from tests.factories.runs import TWO, Shape, copy_of, make_run

WHOLE = """
[suite]
name = "mine"
purpose = "To be tested."
budget_minutes = 10

[[run]]
scenario = "shared-prefix"
backends = ["vllm", "llamacpp@no-prefix-cache"]
concurrency = [1, 8]
rate = [0.5]
requests = 40
repeats = 3
duration = 30
set = ["prompts.groups=2"]
engine_set = ["max_sequences=4"]
"""


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_each_key_is_a_flag_of_bench_run(tmp_path):
    suite = load_suite(written(tmp_path, WHOLE))
    assert suite.gate.floor_percent == 5.0
    (entry,) = suite.run
    assert " ".join(entry.flags()) == (
        "--scenario shared-prefix --backends vllm,llamacpp@no-prefix-cache --concurrency 1,8 --rate 0.5 "
        "--requests 40 --duration 30 --repeats 3 --set prompts.groups=2 --engine-set max_sequences=4"
    )


def test_a_run_can_ask_for_the_capacity(tmp_path):
    text = WHOLE.replace("concurrency = [1, 8]\n", "").replace("[0.5]", "[1, 64]")
    search = "find_capacity = true\nprobe_seconds = 20\n"
    (entry,) = load_suite(written(tmp_path, text.replace("engine_set", f"{search}engine_set"))).run
    assert "--rate 1,64 --requests 40 " in " ".join(entry.flags())
    assert "--repeats 3 --find-capacity --probe-seconds 20 --set " in " ".join(entry.flags())
    assert entry.title == "shared-prefix: capacity of vllm, llamacpp@no-prefix-cache"
    (without,) = load_suite(
        written(tmp_path, text.replace("engine_set", "find_capacity = false\nengine_set"))
    ).run
    assert "--find-capacity" not in without.flags()


def test_a_zero_is_handed_on(tmp_path):
    """It turns telemetry off, and what `bench run` refuses must not be measured with its default."""
    text = WHOLE.replace("requests = 40\n", "requests = 0\nsample_hz = 0\n")
    (entry,) = load_suite(written(tmp_path, text)).run
    assert "--requests 0 " in " ".join(entry.flags())
    assert "--sample-hz 0 " in " ".join(entry.flags())


def test_loads_are_measured_as_they_were_given(tmp_path):
    (entry,) = load_suite(written(tmp_path, WHOLE.replace("[0.5]", "[1000.25, 1000.254]"))).run
    assert "--rate 1000.25,1000.254" in " ".join(entry.flags())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("budget_minutes = 10", "budget_minutes = 0"), "must be above 0"),
        (("[[run]]", "[gate]\nfloor_percent = -5\n[[run]]"), "floor_percent: must not be below 0"),
        (("[[run]]", '[gate]\nsince = "20.11."\n[[run]]'), "gate.since: '20.11.' is not a day"),
        (("[[run]]", '[gate]\nsince = "20261120"\n[[run]]'), "gate.since: '20261120' is not a day"),
        (("[[run]]", '[gate]\nsince = "9999-11-20"\n[[run]]'), "gate.since: '9999-11-20' has not begun"),
        (('"mine"', '"chat/gpu"'), "suite.name: must be 1 to 200 bytes without '/'"),
        (('"mine"', '""'), "suite.name: must be 1 to 200"),
        (('"mine"', r'"chat\ngpu"'), "suite.name: must be 1 to 200"),
        (('"mine"', f'"{"ü" * 101}"'), "suite.name: must be 1 to 200"),
        (("repeats = 3", "repeat = 3"), "unknown key 'repeat'"),
        (("[[run]]", "[[rum]]"), r"\.toml: unknown key 'rum'"),
        (("budget_minutes = 10", 'budget_minutes = "x"'), r"\.toml:suite\.budget_minutes: must be a"),
        (("requests = 40", 'requests = "many"'), "must be a whole number"),
    ],
)
def test_a_wrong_suite_says_what_and_where(tmp_path, change, complaint):
    with pytest.raises(SpecError, match=complaint):
        load_suite(written(tmp_path, WHOLE.replace(*change)))


def test_files_of_one_name_are_listed_in_one_run(tmp_path):
    """Each of two would miss the loads of the other."""
    about = WHOLE.partition("[[run]]")[0]
    files = '[[run]]\nbackends = ["{0}"]\nfiles = ["{1}/*.json"]\n'
    apart = about + files.format("ours", "a") + files.format("ours-b", "b")
    assert len(load_suite(written(tmp_path, apart)).run) == 2
    with pytest.raises(SpecError, match=r"run\[1\]: 'ours' has files in an earlier \[\[run\]\]") as caught:
        load_suite(written(tmp_path, about + files.format("ours", "a") + files.format("ours", "b")))
    assert "in one [[run]]" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"engine_set": '["max_sequences=8"]'}, True),
        ({"engine_set": '["max_sequences=8"]', "backends": '["vllm"]', "concurrency": "[8]"}, True),
        ({"engine_set": '["max_sequences=8"]', "backends": '["sglang"]'}, False),
        ({"engine_set": '["max_sequences=8"]', "concurrency": "[2]", "rate": "[8]"}, False),
        ({"engine_set": '["max_sequences=8"]', "requests": "80"}, False),
        ({"engine_set": '["max_sequences=8"]', "set": '["load.think_time_s=2"]'}, False),
        ({"backends": '["vllm", "sglang"]', "repeats": "5"}, False),
    ],
)
def test_engine_values_alone_set_no_two_runs_apart(tmp_path, changes, refused):
    """Else the values of each night alternate between two levels, and a step of either is noise."""
    table = WHOLE.partition("[[run]]")[2]
    for key, value in changes.items():
        table = re.sub(rf"^{key} = .*$", f"{key} = {value}", table, flags=re.M)
    path = written(tmp_path, f"{WHOLE}[[run]]{table}")
    if refused:
        with pytest.raises(SpecError, match=r"run\[1\]: 'vllm' has other engine values at the same load"):
            load_suite(path)
    else:
        assert len(load_suite(path).run) == 2


VARIANTS = """
[[run]]
scenario = "fixed-length"
backends = ["vllm", "vllm==0.26.0@big"]
variant = ["big=--max-num-batched-tokens 8192 --a b=c"]
"""


def test_a_run_declares_variants(tmp_path):
    (entry,) = load_suite(written(tmp_path, WHOLE.partition("[[run]]")[0] + VARIANTS)).run
    flags = entry.flags()
    assert flags[flags.index("--variant") + 1] == "big=--max-num-batched-tokens 8192 --a b=c"
    assert entry.variants("vllm") == {}
    assert entry.variants("vllm==0.26.0@big") == {"big": "--max-num-batched-tokens 8192 --a b=c"}
    assert list(_labels(entry)) == ["vllm", "vllm==0.26.0@big"]


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("8192", "4096", True),
        ('"vllm", "vllm==0.26.0@big"', '"vllm", "vllm==0.26.0@more"', False),  # vllm is shared
        ("fixed-length", "shared-prefix", False),
    ],
)
def test_a_variant_is_the_same_in_all_runs_of_a_load(tmp_path, old, new, refused):
    other = VARIANTS.replace(old, new).replace("big=", "more=" if "@more" in new else "big=")
    path = written(tmp_path, WHOLE.partition("[[run]]")[0] + VARIANTS + other)
    if refused:
        with pytest.raises(SpecError, match=r"run\[1\]\.variant: 'vllm==0\.26\.0@big' is another variant"):
            load_suite(path)
    else:
        assert len(load_suite(path).run) == 2


def test_an_unknown_suite_is_told_the_known_ones():
    with pytest.raises(SpecError) as caught:
        load_suite("gpus")
    assert "did you mean 'gpu'" in (caught.value.hint or "")


@pytest.mark.parametrize("name", names("workloads/suites"))
def test_shipped_suites_name_what_there_is(name):
    suite = load_suite(name)
    assert suite.suite.name == name
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    for entry in suite.run:
        assert parser.parse_args(entry.flags()).scenario == entry.scenario
        load_scenario(entry.scenario)
        for backend in entry.backends:
            label, _, variant = backend.partition("@")
            assert not variant or variant in load_backend(label).variants


def night(tmp_path, *states, **changes):
    (entry,) = load_suite(written(tmp_path, WHOLE)).run
    steps = tuple(Step(entry, state, why, code, 60.0) for state, why, code in states)
    made = {"drifts": (), "nights": 4, "interrupted": False, **changes}
    return Night(load_suite(str(tmp_path / "mine.toml")), steps, **made)


def test_the_worst_run_decides_where_the_gate_does_not(tmp_path):
    assert night(tmp_path, ("measured", "", 0)).exit_code == 0
    assert night(tmp_path, ("measured", "INVALID cells", 4), ("failed", "", 3)).exit_code == 4
    left_out = ("left out", "3 min left", 0)
    assert night(tmp_path, ("measured", "", 0), left_out).exit_code == 0
    assert night(tmp_path, left_out).exit_code == 1  # nothing was measured: nothing has passed
    late = ("out of time", "the budget of the night is spent", 0)
    assert night(tmp_path, ("measured", "", 0), late).exit_code == 0
    assert night(tmp_path, late, left_out).exit_code == 1
    assert night(tmp_path, ("measured", "", 0), interrupted=True).exit_code == 130


def test_what_became_worse_is_told_from_a_series_of_its_name(tmp_path):
    steady = histories.nights([100] * 6, load=EIGHT, conditions={"think-time": "0 s"})
    slower = histories.nights([100] * 3 + [150] * 3, load=EIGHT, conditions={"think-time": "2 s"})
    courses = tuple(series([*steady, *slower]))
    made = night(tmp_path, ("measured", "", 0), drifts=tuple(drifts(courses)), courses=courses)
    worse = "chat vllm c8 TTFT p50 (think time 2 s): 50.0% worse than its best level"
    assert f"- {worse}" in page(made)
    assert worse in drawn(made).replace("\N{NO-BREAK SPACE}", " ")


def test_many_figures_that_became_worse_are_folded_below_a_line_for_their_day(tmp_path):
    """The first screen says whose figures, since when, by how much, and what changed then."""
    loads = [EIGHT | {"value": users} for users in range(1, 9)]
    entries_of = [
        line
        for number, value in enumerate([100, 101, 100, 150, 151, 150])
        for load in loads
        for line in (
            histories.night(number, value, load=load, engine_version="0.27" if number >= 3 else "0.26"),
            histories.night(number, 100, load=load, engine_version="0.26", label="sglang"),
        )
    ]
    courses = tuple(series(entries_of))
    found = tuple(with_changes(drifts(courses), tmp_path))
    made = night(tmp_path, ("measured", "", 0), drifts=found, courses=courses, new=8)
    lines = page(made).splitlines()
    assert lines[4] == "**Worse for several nights: 8 figures, new tonight.**"
    changed = "Changed around then: engine version 0.26 to 0.27 (vllm, 2026-11-04)."
    assert lines[6] == f"- Worse since 2026-11-04: vllm (8 of 8 figures), by 49.8%. {changed}"
    assert lines[7] == (
        "- `bench compare run-02 run-03` names all that differs between the two nights; "
        '`since = "2026-11-04"` in `[gate]` accepts the level.'
    )
    elsewhere = SimpleNamespace(
        path=tmp_path / "my runs" / "run-05", read_summary=lambda: summaries.summary()
    )
    kept = replace(made, steps=(replace(made.steps[0], folder=elsewhere),))
    command = f"bench compare run-02 run-03 --out '{tmp_path}/my runs'"
    found_there = f"<code>{command}</code> names all that differs "
    assert found_there in html.unescape(re.sub("</?span>", "", drawn(kept)))
    assert lines[9] == "<details><summary>Each of the 8 figures</summary>"
    assert sum(", by one step, since " in line for line in lines) == 8, "each figure has one line on the page"
    first, *others = lines[11 : lines.index("</details>") - 1]
    assert ", since run-03 (of 2026-11-04, engine 0.27); the best level ended with run-02 " in first
    assert len(others) == 7
    assert all(", by one step, since the same run; 95% interval " in line for line in others)
    assert "<summary>Each of" not in page(replace(made, drifts=found[:6]))
    assert "<summary>Each of the 7 figures" in page(replace(made, drifts=found[:7]))
    newer = documents.changed(found[0].since, run="run-04", created_utc="2026-11-05T03:00:00Z")
    both = page(replace(made, drifts=(replace(found[0], since=newer), found[1])))
    assert "- `bench compare run-02 run-04` names all" in both
    assert verdict(replace(made, new=0)) == "Worse for several nights: 8 figures, none new."
    (added,) = series([documents.changed(entries_of[-1], label="added")])
    with_added = replace(made, courses=(*courses, added))
    assert verdict(with_added) == f"{verdict(made)} Not judged yet: 1 figure of fewer than 6 nights."
    assert verdict(replace(made, new=3)) == "Worse for several nights: 8 figures, 3 of them new."


def test_a_page_says_from_which_day_on_levels_are_judged(tmp_path):
    made = night(tmp_path, ("measured", "", 0))
    accepting = replace(made, suite=replace(made.suite, gate=Gate(since="2026-11-20")))
    assert verdict(accepting) == f"{verdict(made)} What became worse before 2026-11-20 is accepted."


def test_nights_of_an_accepted_level_are_not_counted_where_too_few_follow_it(tmp_path):
    """Of six nights three were before the accepted step: that no figure is worse is not known yet."""
    courses = tuple(series(histories.nights([100] * 3 + [150] * 3, load=EIGHT)))
    made = night(tmp_path, ("measured", "", 0), courses=courses)
    accepting = replace(made, suite=replace(made.suite, gate=Gate(since="2026-11-04")))
    few = "Nothing can be judged: the longest series has 3 runs, and two levels need 6"
    assert verdict(accepting).startswith(few)
    assert page(accepting).count(few) == 1, "the table of figures does not say it again"
    assert not verdict(made).startswith("Nothing")


def test_what_is_missing_is_said(tmp_path):
    left_out = night(tmp_path, ("left out", "3 min left, 9 min needed", 0))
    words = "No run was measured to its end, so this night has not passed. Runs missing: 1 of 1."
    assert verdict(left_out) == words
    failed = night(tmp_path, ("failed", "", 3))
    assert verdict(failed) == "Nothing was measured tonight. Runs missing: 1 of 1."
    kept = replace(failed, courses=tuple(series(histories.nights([100] * 6))))
    assert verdict(kept).startswith("No figure has been at a worse level"), "its figure is in the history"
    assert (
        "| shared-prefix: vllm, llamacpp@no-prefix-cache | 1.0 | left out: 3 min left, 9 min needed |"
        in page(left_out)
    )


def test_a_pinned_version_that_is_behind_is_said(tmp_path):
    line = "llamacpp: 2026.9 is pinned; try llamacpp==2026.10"
    made = night(tmp_path, ("measured", "", 0), behind=(line,))
    assert f"- {line}" in page(made)
    assert f"<li>{line}</li>" in drawn(made)


def test_both_pages_say_that_a_scripted_server_answered(tmp_path, whole_run):
    made = night(tmp_path, ("measured", "", 0))
    made = replace(made, steps=(replace(made.steps[0], folder=whole_run),))
    assert "| run | minutes | state |\n|---|---:|---|" in page(made), "words are on the left"
    assert "| 1.0 | measured: SIMULATED |" in page(made)
    text = drawn(made)
    assert "<td>1.0</td><td>measured: SIMULATED</td>" in text
    load, *_ = re.findall(r"- \*\*(.+)\*\*", page(made))
    assert f"<strong>{load}</strong>" in text, "what each run shows"
    assert "No figure of this night has an earlier run under the same conditions." in text


@pytest.mark.parametrize(
    ("left_s", "needs_s", "why"),
    [
        (40, 80, "40 s left, 80 s needed"),
        (40, 100, "40 s left, 1.7 min needed"),
        (-1, None, "0 s left"),
        (3000, 3600, "50 min left, 60 min needed"),
    ],
)
def test_a_run_without_room_says_how_much_it_lacks(tmp_path, monkeypatch, left_s, needs_s, why):
    """In whole minutes, 40 s are left and 80 s needed would both be 1."""
    monkeypatch.setattr("harness.nightly.run_suite._expected_s", lambda _command: needs_s)
    monkeypatch.setattr("harness.nightly.run_suite.time.monotonic", lambda: 0.0)
    entry = Entry(scenario="first-look", backends=("vllm",))
    step = _step(entry, tmp_path, left_s, (), print)
    assert (step.state, step.why) == ("left out", why)


def history(*, scenario="shared-prefix", label="vllm", value=8, invalid=0, metrics=("ttft_ms.p50",)):
    load = {"kind": "concurrency", "value": value}
    figures = {metric: {"interval": [1, 1, 1], "runs": 3} for metric in metrics}
    given = {"scenario": scenario, "label": label, "load": load, "invalid": invalid, "metrics": figures}
    return documents.made(HistoryEntry, given)


def measured(*cells, metrics=("ttft_ms.p50",)):
    usable = [one for one in cells if not one.invalid]
    estimates = [
        {"label": one.label, "load": one.point, "metric": metric} for one in usable for metric in metrics[:1]
    ]
    return summaries.summary(*cells, verdict_rules={"metrics": list(metrics)}, estimates=estimates)


MANIFEST = documents.made(Manifest, scenario={"load": {"concurrency": [1, 8], "rate": []}})
EIGHT = {"kind": "concurrency", "value": 8}
FAILED = summaries.verdict("INVALID", "engine-died", "signal 9", "alive", "")


@pytest.mark.parametrize(
    ("earlier", "summary", "words"),
    [
        ([history()], measured(summaries.cell("vllm", EIGHT)), []),
        ([history()], None, ["vllm: left out: 3 min left"]),
        ([history(value=32)], measured(summaries.cell("vllm", EIGHT)), []),
        ([history(label="other")], measured(summaries.cell("vllm", EIGHT)), []),
        ([history(value=1)], measured(summaries.cell("vllm", EIGHT)), ["vllm c1: not measured"]),
        (
            [history(), history(invalid=1)],
            measured(summaries.cell("vllm", EIGHT, validity=FAILED)),
            ["vllm c8: INVALID engine-died 1 of 1"],
        ),
        ([history(invalid=1)], measured(summaries.cell("vllm", EIGHT, validity=FAILED)), []),
        (
            [history(metrics=("ttft_ms.p50", "output_tokens_per_s"))],
            measured(summaries.cell("vllm", EIGHT), metrics=("ttft_ms.p50", "output_tokens_per_s")),
            ["vllm c8 output: null in every run"],
        ),
        (
            [history(metrics=("goodput_requests_per_s",))],
            measured(summaries.cell("vllm", EIGHT), metrics=("goodput_requests_per_s",)),
            ["vllm c8 goodput: 0 in every run"],
        ),
    ],
)
def test_what_earlier_nights_had_and_this_one_lacks(tmp_path, earlier, summary, words):
    (entry,) = load_suite(written(tmp_path, WHOLE)).run
    why = "left out: 3 min left"
    found = list(missing(entry, why, earlier, MANIFEST if summary else None, summary))
    assert [place_words(one) for one in found] == words


@pytest.mark.parametrize(
    ("failed", "places", "fails"), [(0, 1, False), (1, 1, False), (2, 1, True), (2, 8, False), (3, 8, True)]
)
def test_more_failed_requests_are_judged_over_all_places_of_a_night(tmp_path, failed, places, fails):
    """One failed request after 2,000 good ones has a chance of 1 in 21."""
    (entry,) = load_suite(written(tmp_path, WHOLE)).run
    users = range(8, 8 + places)
    manifest = documents.made(Manifest, scenario={"load": {"concurrency": list(users), "rate": []}})
    before = [documents.changed(history(value=value), failed=0, ended=2000) for value in users]
    cells = [
        summaries.cell("vllm", EIGHT | {"value": value}, requests={"ok": 100 - bad, "failed": bad})
        for value, bad in zip(users, [failed, *[0] * places], strict=False)
    ]
    found = [place_words(one) for one in missing(entry, "", before, manifest, measured(*cells))]
    assert found == [f"vllm c8: {failed} of 100 requests failed, 0 of 2000 in earlier nights"] * fails


@pytest.mark.parametrize(
    ("given", "label"),
    [
        ("vllm==0.33", "vllm==0.33"),
        ("llamacpp@no-prefix-cache", "llamacpp@no-prefix-cache"),
        ("openai=http://127.0.0.1:1", "openai"),
        ("gone", "gone"),
    ],
)
def test_a_backend_is_missed_under_the_name_that_the_history_has(given, label):
    entry = Entry(scenario="shared-prefix", backends=(given,))
    found = missing(entry, "failed: not started", [history(label=label)], None, None)
    assert [place_words(one) for one in found] == [f"{label}: failed: not started"]


def test_files_are_missed_under_the_name_they_are_given():
    entry = Entry(backends=("ours",), files=("tonight/*.json",))
    found = missing(entry, "failed: no file", [history(scenario="imported", label="ours")], None, None)
    assert [place_words(one) for one in found] == ["ours: failed: no file"]


def test_files_are_missed_under_the_names_that_set_them_apart():
    """The history's name has a cap, a test or the server's settings after the given one."""
    entry = Entry(backends=("ours",), files=("tonight/*.json",))
    labels = ("ours-max4", "ours-b", "ours-b-max4", "oursel")
    before = [history(scenario="imported", label=label) for label in labels]
    found = missing(entry, "failed: no file", before, None, None, ["ours", "ours-b"])
    assert [place_words(one) for one in found] == ["ours-max4: failed: no file"]


def test_files_that_the_suite_no_longer_reads_are_missed_under_a_name_that_it_keeps():
    """The history cannot tell the run `ours-fp8` from a setting of `ours`, but the flag may name it."""
    entry = Entry(backends=("ours",), files=("tonight/*.json",))
    tonight = documents.changed(measured(summaries.cell("ours", EIGHT)), scenario="imported")
    before = [history(scenario="imported", label=label) for label in ("ours-fp8", "theirs")]
    [found] = missing(entry, "", before, MANIFEST, tonight, ["ours"])
    assert (place_words(found), "ours-fp8" in found.names) == ("ours-fp8 c8: not measured", True)


def test_files_are_missed_where_the_night_before_had_more_runs():
    """Nobody says how many there are, and other names or loads may have more."""
    entry = Entry(backends=("ours",), files=("tonight/*.json",))
    before = [history(scenario="imported", label="ours"), history(scenario="imported", label="ours", value=1)]
    cells = [summaries.cell("ours", EIGHT, repeat=repeat) for repeat in range(3)]
    tonight = documents.changed(measured(*cells), scenario="imported")
    manifest = documents.changed(MANIFEST, repeats=9)
    assert [place_words(one) for one in missing(entry, "", before, manifest, tonight)] == [
        "ours c1: not measured"
    ]
    fewer = documents.changed(measured(*cells[:2]), scenario="imported")
    found = [place_words(one) for one in missing(entry, "", before[:1], manifest, fewer)]
    assert found == ["ours c8: 2 of 3 runs"]


@pytest.mark.parametrize(("looked_at", "words"), [(3, ["vllm c8: 1 of 3 runs"]), (1, []), (0, [])])
def test_a_run_that_verdicts_end_lacks_what_they_did_not_see(tmp_path, looked_at, words):
    """--repeats auto: at most 10. 0: it ended before the first look."""
    (entry,) = load_suite(written(tmp_path, WHOLE)).run
    looks = {"looks": [3, 5, 10], "repeats": looked_at}
    manifest = documents.changed(MANIFEST, repeats=10, stopping=looks)
    tonight = measured(summaries.cell("vllm", EIGHT))
    assert [place_words(found) for found in missing(entry, "", [history()], manifest, tonight)] == words


@pytest.fixture
def own_signals(monkeypatch):
    """A night takes the process's signals."""
    monkeypatch.setattr("harness.nightly.run_suite.asked_to_stop", lambda: ())


@pytest.fixture
def imported_here(monkeypatch, without_plots):
    """Files are imported by this process, and no pictures are drawn: tests/integration have the whole."""

    def run(command, **_options):
        printed = StringIO()
        with redirect_stdout(printed):
            code = main(command[command.index("import") :])
        return SimpleNamespace(returncode=code, stdout=printed.getvalue())

    monkeypatch.setattr("harness.nightly.run_suite.subprocess", SimpleNamespace(run=run, PIPE=None))


@pytest.mark.usefixtures("own_signals", "imported_here")
@pytest.mark.parametrize("name", ["tonight-1/below/r.json", "tonight-r.out"])
def test_what_an_earlier_night_read_is_no_new_measurement(tmp_path, name):
    """A folder, or a file of any name."""
    out, artifact = tmp_path / "results", tmp_path / "artifacts" / name.partition("/")[0]
    file = foreign.write(tmp_path / "artifacts" / name, foreign.vllm())
    if artifact.is_dir():
        (artifact / "engine.log").mkdir()  # is no result, and no file to read
    entry = Entry(backends=("ours",), files=(str(tmp_path / "artifacts" / "tonight-*"),))
    suite = Suite(About("mine", "x", 1), (entry,))
    assert [step.state for step in spend(suite, out, print).steps] == ["measured"]
    (again,) = spend(suite, out, print).steps
    assert (again.state, again.exit_code) == ("failed", 3)
    assert f"{file.name} was read in an earlier night: nothing new was measured" in again.why


@pytest.mark.usefixtures("own_signals", "imported_here")
def test_a_damaged_run_of_an_earlier_night_ends_no_night(tmp_path):
    out = tmp_path / "results"
    (out / "old").mkdir(parents=True)
    (out / "old" / "summary.json").write_text('{"schema": ')
    foreign.write(tmp_path / "tonight.json", foreign.vllm())
    entry = Entry(backends=("ours",), files=(str(tmp_path / "tonight.json"),))
    noted: list[str] = []
    made = spend(Suite(About("mine", "x", 1), (entry,)), out, noted.append)
    assert [step.state for step in made.steps] == ["measured"]
    assert made.nights == 1
    assert [line for line in noted if "run left out: " in line and "old/summary.json" in line]


@pytest.mark.usefixtures("own_signals", "imported_here")
def test_a_night_is_judged_though_the_clock_was_ahead_on_an_earlier_one(tmp_path):
    """From the fourth night on all takes half as long again, which is new on the sixth; the fifth is
    dated 2099."""
    entry = Entry(backends=("ours",), files=(str(tmp_path / "tonight.json"),))
    suite = Suite(About("mine", "x", 1), (entry,))
    new = []
    for number in range(7):
        document = foreign.vllm(number, slower=1.5 if number >= 3 else 1.0)
        document["date"] = f"{2099 if number == 4 else 2026}111{number}-080000"
        foreign.write(tmp_path / "tonight.json", document)
        made = spend(suite, tmp_path / "results", print)
        new.append((made.new, len(made.drifts)))
    assert made.exit_code == 1
    worse = len(made.drifts)
    assert new == [*[(0, 0)] * 5, (worse, worse), (0, worse)]
    assert verdict(made).startswith("Worse for several nights: ")
    (worst, *_) = sorted(made.drifts, key=lambda drift: -drift.ratio)
    assert worst.share == pytest.approx(0.5, abs=0.1)
    assert "Course of" in page(made)
    assert "Over the runs" in drawn(made)


@pytest.mark.usefixtures("own_signals")
def test_a_night_counts_a_backend_at_a_load_once(whole_run, tmp_path, monkeypatch):
    """Else a bad night and one more run of it would be a level."""
    out = tmp_path / "results"
    first = copy_of(whole_run, out)
    later = RunFolder(copy_of(whole_run, tmp_path).path.rename(out / "later"))
    summary = first.read_summary()
    monkeypatch.setattr(
        "harness.nightly.run_suite.RunFolder.read_summary",
        lambda folder: documents.changed(summary, run=folder.run_id),
    )
    steps = iter([first, later])
    monkeypatch.setattr(
        "harness.nightly.run_suite._step", lambda entry, *_: Step(entry, "measured", "", 0, 1.0, next(steps))
    )
    noted: list[str] = []
    entry = Entry(scenario="shared-prefix", backends=("llamacpp",))
    made = spend(Suite(About("mine", "x", 1), (entry, entry)), out, noted.append)
    assert made.nights == 1
    assert [one.run for one in read_history(history_path(out))] == [first.run_id]
    assert "  llamacpp c2 of later is not in the history: an earlier run of this night is" in noted


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize(("summary", "lines"), [("complete", 1), ("interrupted", 0)])
def test_a_run_of_an_interrupted_night_counts_where_every_cell_was_measured(
    whole_run, tmp_path, monkeypatch, summary, lines
):
    folder = copy_of(whole_run, tmp_path / "results")
    change_json(folder.path / "summary.json", lambda document: document.update(state=summary))
    mend(folder.path)
    monkeypatch.setattr(
        "harness.nightly.run_suite._step",
        lambda entry, *_: Step(entry, "interrupted", "", 130, 1.0, folder),
    )
    entry = Entry(scenario="shared-prefix", backends=("llamacpp",))
    spend(Suite(About("mine", "x", 1), (entry,)), tmp_path / "results", print)
    assert len(read_history(history_path(tmp_path / "results"))) == lines


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize(("state", "lines"), [("failed", 1), ("out of time", 0)])
def test_a_backend_that_failed_keeps_no_other_from_the_history(
    whole_run, tmp_path, monkeypatch, state, lines
):
    """What did not end has too few repeats by no fault of its own."""
    folder = copy_of(whole_run, tmp_path / "results")
    monkeypatch.setattr(
        "harness.nightly.run_suite._step",
        lambda entry, *_: Step(entry, state, "vllm: did not start", 3, 1.0, folder),
    )
    entry = Entry(scenario="shared-prefix", backends=("llamacpp", "vllm"))
    made = spend(Suite(About("mine", "x", 1), (entry,)), tmp_path / "results", print)
    assert len(read_history(history_path(tmp_path / "results"))) == lines
    assert made.exit_code == (3 if lines else 1)
    assert "Course of" not in page(made) or lines


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize(
    ("state", "summary", "failures", "lines"),
    [
        ("complete", "complete", [], 1),
        ("complete", "invalid", [], 1),
        ("complete", "complete", [{"backend": "vllm", "repeat": 0, "error": "no memory"}], 1),
        ("interrupted", "interrupted", [], 0),
        ("complete", "running", [], 0),
    ],
)
def test_a_run_whose_report_was_drawn_when_the_budget_ended_is_measured(
    whole_run, tmp_path, monkeypatch, state, summary, failures, lines
):
    """Every cell of it was. One that was stopped before has too few repeats, or its summary lacks some."""
    folder = copy_of(whole_run, tmp_path / "results")
    for name, found in (("manifest.json", state), ("summary.json", summary)):
        change_json(folder.path / name, lambda document, found=found: document.update(state=found))
    change_json(folder.path / "manifest.json", lambda document: document.update(failures=failures))
    mend(folder.path)
    answers = iter([subprocess.TimeoutExpired("bench", 60), (json.dumps({"run": folder.path.name}), "")])

    def communicate(timeout=None):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    late = SimpleNamespace(communicate=communicate, send_signal=lambda _number: None, returncode=130)
    monkeypatch.setattr("harness.nightly.run_suite._expected_s", lambda _command: None)
    monkeypatch.setattr("harness.nightly.run_suite.subprocess.Popen", lambda *_, **_options: late)
    entry = Entry(scenario="shared-prefix", backends=("llamacpp",))
    made = spend(Suite(About("mine", "x", 1), (entry,)), tmp_path / "results", print)
    assert len(read_history(history_path(tmp_path / "results"))) == lines
    (step,) = made.steps
    if failures:
        assert (step.state, made.exit_code) == ("failed", 3)
    elif lines:
        assert (step.state, made.exit_code) == ("measured", 0)
        assert step.why == f"the budget ended before its report: `bench report {folder.path}` makes it"
    else:
        assert (step.state, made.exit_code) == ("out of time", 1)


@pytest.mark.usefixtures("own_signals")
def test_a_damaged_history_is_known_before_the_night(tmp_path, monkeypatch):
    measured: list[Entry] = []
    monkeypatch.setattr("harness.nightly.run_suite._step", lambda entry, *_: measured.append(entry))
    path = history_path(tmp_path / "results")
    path.parent.mkdir(parents=True)
    path.write_text('{"schema": 1, "run": "2026')
    suite = Suite(About("mine", "x", 1), (Entry(scenario="first-look", backends=("vllm",)),))
    with pytest.raises(SpecError, match="not a line of JSON"):
        spend(suite, tmp_path / "results", print)
    assert measured == []


@pytest.mark.usefixtures("own_signals", "imported_here")
def test_a_history_that_cannot_be_written_keeps_no_page_from_the_reader(tmp_path, monkeypatch):
    """The disk is full after the last run: what was measured is there, and can be added."""

    def full(path, _entries):
        raise StorageError("no space left on the disk", where=str(path))

    monkeypatch.setattr("harness.nightly.run_suite.append_history", full)
    foreign.write(tmp_path / "tonight.json", foreign.vllm())
    entry = Entry(backends=("ours",), files=(str(tmp_path / "tonight.json"),))
    made = spend(Suite(About("mine", "x", 1), (entry,)), tmp_path / "results", lambda _: None)
    assert (made.exit_code, [step.state for step in made.steps]) == (3, ["measured"])
    assert "Nothing of it is in the history: " in verdict(made)
    assert "no space left on the disk; `bench history RUN` adds it later." in verdict(made)


@pytest.mark.usefixtures("own_signals", "imported_here")
def test_what_is_not_in_the_history_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.nightly.run_suite.not_kept", lambda summary: [f"no {summary.scenario}"])
    foreign.write(tmp_path / "tonight.json", foreign.vllm())
    entry = Entry(backends=("ours",), files=(str(tmp_path / "tonight.json"),))
    noted: list[str] = []
    spend(Suite(About("mine", "x", 1), (entry,)), tmp_path / "results", noted.append)
    assert "  no imported" in noted


@pytest.mark.usefixtures("own_signals", "imported_here")
def test_what_another_run_of_the_same_night_measured_is_not_missing(tmp_path):
    foreign.write(tmp_path / "tonight.json", foreign.vllm())
    both = [
        Entry(backends=("ours",), files=(str(tmp_path / name),)) for name in ("tonight.json", "late.json")
    ]
    suite = Suite(About("mine", "x", 1), tuple(both))
    first = spend(suite, tmp_path / "results", print)
    assert [step.state for step in first.steps] == ["measured", "failed"]
    assert first.missing == ()
    second = spend(suite, tmp_path / "results", print)
    assert {place_words(figure).partition(":")[0] for _, figure in second.missing} == {"ours"}


@pytest.mark.usefixtures("own_signals")
def test_files_that_cannot_be_read_fail_their_step_alone(tmp_path, monkeypatch):
    def unreadable(*_):
        raise SpecError("no", where="place")

    monkeypatch.setattr("harness.nightly.run_suite._seen_before", unreadable)
    foreign.write(tmp_path / "tonight.json", foreign.vllm())
    entry = Entry(backends=("ours",), files=(str(tmp_path / "tonight.json"),))
    made = spend(Suite(About("mine", "x", 1), (entry,)), tmp_path / "results", print)
    assert [(step.state, step.why) for step in made.steps] == [("failed", "cannot be read: place: no")]


@pytest.mark.usefixtures("own_signals")
def test_a_run_that_was_killed_has_the_exit_code_of_a_run_that_cannot_start(tmp_path, monkeypatch):
    """A signal's number is negative, so that a night of 0 and it would pass."""
    monkeypatch.setattr("harness.nightly.run_suite._expected_s", lambda _command: None)
    monkeypatch.setattr("sys.executable", str(killed := tmp_path / "killed"))
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    suite = Suite(About("mine", "x", 1), (Entry(scenario="first-look", backends=("vllm",)),))
    made = spend(suite, tmp_path / "results", print)
    assert (made.steps[0].state, made.steps[0].exit_code, made.exit_code) == ("failed", 3, 3)


@pytest.mark.parametrize(
    ("printed", "needed"),
    [
        ('{"expected_s": 60.0, "expected_starts_s": 240.0}', 300.0),
        ('{"expected_s": 60.0, "expected_starts_s": null}', 60.0),
        ('{"expected_s": null, "expected_starts_s": 240.0}', None),
        ('{"error": "no such backend"}', None),
        ("", None),
    ],
)
def test_a_run_needs_its_load_and_its_engine_starts(monkeypatch, printed, needed):
    """A large model takes minutes to start: by its load alone such a run began, and ran out of time."""
    done = subprocess.CompletedProcess((), 0, printed, "")
    monkeypatch.setattr("harness.nightly.run_suite.subprocess.run", lambda *_, **_options: done)
    assert _expected_s(["bench", "run"]) == needed


def test_what_is_missing_fails_the_gate_and_is_named(tmp_path):
    gone = (("shared-prefix", Missing("vllm", LoadPoint(**EIGHT), None, "INVALID engine-died 1 of 1")),)
    made = night(tmp_path, ("measured", "INVALID cells", 4), missing=gone)
    assert made.exit_code == 1
    assert "missing: shared-prefix: vllm c8: INVALID engine-died 1 of 1" in page(made).replace("\\", "")
    assert verdict(made).endswith("Missing, INVALID or failing more than in earlier nights: 1.")


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    shape = Shape(TWO[:1], concurrency=(2,), repeats=3, requests=8)
    return make_run(tmp_path_factory.mktemp("runs"), shape)


def test_a_night_with_too_few_before_it_says_that_nothing_can_be_judged(whole_run, tmp_path):
    folder = copy_of(whole_run, tmp_path / "results")
    courses = series(entries(folder.read_manifest(), folder.read_summary()))
    (entry,) = load_suite(written(tmp_path, WHOLE)).run
    suite = load_suite(str(tmp_path / "mine.toml"))
    steps = (Step(entry, "measured", "", 0, 60.0, folder),)
    made = Night(suite, steps, (), 1, interrupted=False, courses=tuple(courses))
    few = "Nothing can be judged: the longest series has 1 run, and two levels need 6; 1 run in the history."
    assert verdict(made) == few


def test_the_night_is_drawn_with_the_course_of_its_figures(whole_run, tmp_path):
    """Six nights of one run; the page is that of the last."""
    made = copy_of(whole_run, tmp_path / "results")
    history = []
    for number in range(6):
        manifest = documents.changed(made.read_manifest(), created_utc=f"2026-11-{20 + number}T03:00:00")
        named = documents.changed(made.read_summary(), run=f"night-{number}")
        history += entries(manifest, named)
    last = RunFolder(made.path.rename(tmp_path / "results" / "night-5"))
    (entry,) = load_suite(written(tmp_path, WHOLE)).run
    steps = (Step(entry, "measured", "", 0, 60.0, last),)
    suite, courses = load_suite(str(tmp_path / "mine.toml")), tuple(series(history))
    text = drawn(Night(suite, steps, (), 6, interrupted=False, courses=courses))
    assert "Nightly: mine" in text
    assert "No figure has been at a worse level" in text
    assert text.count('data-option="TTFT p50"') == 1
    for day in range(20, 26):
        assert f"11-{day}" in text
