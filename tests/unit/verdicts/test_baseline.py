"""Runs against a baseline: what is compared with what, what is refused, and what a gate makes of it."""

import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.cli.main import main
from harness.errors import ExitCode, SpecError
from harness.host import scratch
from harness.model import Agreement, Interval, Manifest
from harness.report.blocks.comparison import compared
from harness.report.findings.against import answers
from harness.report.tables.changes import change, changes, finding_row, legend
from harness.report.text.markdown_text import markdown
from harness.report.text.terminal_text import terminal
from harness.store import RunFolder
from harness.verdicts.baseline import Run, compare_runs
from harness.verdicts.gate import not_allowed, refused
from harness.verdicts.manifests import Side, differences
from tests.factories.documents import changed
from tests.factories.documents import made as filled
from tests.factories.runs import TWO, Engine, Shape, make_run
from tests.factories.summaries import UNSTEADY, cell, summary, verdict
from tests.unit.verdicts.test_pairs import NOISE, cells


def manifest(**changes):
    made = {
        "run": "r",
        "created_utc": "2026-11-20T08:00:00+00:00",
        "state": "complete",
        "scenario": {"scenario": {"name": "chat"}, "cache": {"state": "cold"}},
        "model": {"name": "m"},
        "host": {"cpu": "EPYC", "cpus_usable": 2, "gpus": ["H100"], "hostname": "box", "gpu_driver": "570"},
        "packages": {"llm-servebench": "0.1.0"},
        "backends": {
            name: {
                "backend": name,
                "variant": None,
                "track": "bf16",
                "engine": {
                    "package_version": "0.32",
                    "command": [
                        "/a/bin/serve",
                        "--max-num-seqs",
                        "8",
                        "--port",
                        "1",
                        "--model=/x/m",
                        "--eager",
                    ],
                },
            }
            for name in ("vllm", "tgi")
        },
    }
    for dotted, value in changes.items():
        *path, last = dotted.split("__")
        place = made
        for key in path:
            place = place[key]
        place[last] = value
    return filled(Manifest, made)


def run(name, *measured, **changes):
    found = [made for group in measured for made in group]
    return Run(name, manifest(**changes), summary(*found, run=name), {})


BASE = run("base", cells("vllm", 100), cells("tgi", 150))


def words(document):
    return [[one.verdict for one in pair.findings if one.primary] for pair in document.pairs]


def test_each_backend_is_compared_with_itself():
    document = compare_runs([BASE, run("new", cells("vllm", 112), cells("tgi", 150.1))])
    assert [(pair.a.label, pair.b.label) for pair in document.pairs] == [("vllm",) * 2, ("tgi",) * 2]
    assert words(document) == [["slower"], ["same"]]
    assert document.baseline == "base"
    assert document.pairs[0].findings[0].values == pytest.approx([112, 100], rel=0.01)
    assert {one.metric for one in document.gate if one.kind == "slower"} >= {"ttft_ms.p50"}
    assert not refused(document)


def test_a_change_that_is_not_of_all_repeats_of_its_figures_says_so():
    """Repeats with the same requests are pairs; one without a partner is in its figure alone."""
    noise = np.array([*NOISE[:4], 30])
    base = run("base", cells("vllm", 100, noise=noise))
    equal, fewer = (
        legend(
            compare_runs([base, run("new", cells("vllm", 100, noise=noise, repeats=count))]).pairs[0].findings
        )
        for count in (5, 4)
    )
    assert fewer == f"{equal} A change is of the repeats that are compared."


def test_a_load_that_several_backends_of_the_baseline_had_is_missing_once():
    loads = [{"kind": "concurrency", "value": users} for users in (4, 8)]
    base = run("base", *(cells(label, 100, load=load) for label in ("vllm", "tgi") for load in loads))
    document = compare_runs([base, run("new", cells("sglang", 50, load=loads[0]))])
    assert [(gone.label, gone.load.label, gone.why) for gone in document.missing] == [
        ("sglang", "c8", "not measured")
    ]


def test_between_sessions_more_is_asked_than_inside_one():
    new = run("new", cells("vllm", 104))
    assert words(compare_runs([BASE, new])) == [["same"]]
    assert words(compare_runs([BASE, new], floor=0.02)) == [["slower"]]


def test_runs_without_a_backend_in_common_are_compared_each_with_each():
    document = compare_runs([BASE, run("new", cells("sglang", 50))])
    assert [(pair.a.label, pair.b.label) for pair in document.pairs] == [
        ("sglang", "vllm"),
        ("sglang", "tgi"),
    ]


def test_findings_stay_with_their_pair_where_one_has_more_metrics_than_declared():
    """Where tokens changed, a pair is compared in characters as well."""

    def measured(tokens, tgi):
        text = {"per_answer": 80.0, "per_answer_error": 0.1, "per_token": tokens, "per_token_error": 0.01}
        vllm = (
            made
            for users in (4, 8)
            for made in cells(
                "vllm", 100, load={"kind": "concurrency", "value": users}, conditions={"output_text": text}
            )
        )
        return [*vllm, *cells("tgi", tgi)]

    document = compare_runs([run("base", measured(4.0, 100)), run("new", measured(2.0, 200))])
    of_vllm, of_tgi = (
        [(one.a, one.load.label, one.metric) for one in pair.findings] for pair in document.pairs
    )
    assert {(name, load) for name, load, _ in of_vllm} == {("new/vllm", "c4"), ("new/vllm", "c8")}
    assert {(name, load) for name, load, _ in of_tgi} == {("new/tgi", "c4")}
    metrics = {metric for *_, metric in of_tgi}
    assert {metric for *_, metric in of_vllm} - metrics == {"output_chars_per_s"}
    assert {one.label for one in document.gate if one.kind == "slower"} == {"tgi"}


def test_a_class_of_requests_that_only_the_baseline_has_is_missing():
    def of(*names):
        classes = {name: {"requests": 9, "ok": 9, "ttft_ms": {"p50": 100.0}} for name in names}
        made = cells("vllm", 100, by_kind=classes)
        declared = {"primary": "ttft_ms.p50", "metrics": ["by_kind.*.ttft_ms.p50"]}
        return run("-".join(names), made, scenario__verdict=declared)

    both, short = of("short", "long"), of("short")
    (gone,) = compare_runs([both, short]).missing
    assert (gone.metric, gone.why) == ("by_kind.long.ttft_ms.p50", "null in 5 of 5 runs")
    assert compare_runs([short, both]).missing == ()


def test_what_a_machine_differs_from_itself_by_counts_between_runs_too():
    floors = {"vllm": {"c4": {"ttft_ms.p50": 0.2}}}
    base, new = (run(name, cells("vllm", p50), noise_floor=floors) for name, p50 in (("a", 100), ("b", 112)))
    (found,) = compare_runs([base, new]).pairs[0].findings[:1]
    assert found.verdict == "not enough runs"
    assert "not beyond 20%, by which this machine differs from itself" in found.why
    assert words(compare_runs([base, new], floor=0.05)) == [["slower"]]


def test_a_floor_that_was_asked_for_is_the_margin_of_same_where_it_is_larger():
    """A gate that tolerates 10% passes equal engines, and engines that surely differ by less."""
    found = {
        p50: compare_runs([BASE, run("new", cells("vllm", p50))], floor=0.1, allow_missing=["tgi"])
        for p50 in (100, 107, 120)
    }
    assert {p50: words(document) for p50, document in found.items()} == {
        100: [["same"]],
        107: [["same"]],
        120: [["slower"]],
    }
    assert found[107].gate == ()
    assert "by more than 10%" in " ".join(answers(found[107]))
    assert found[100].pairs[0].verdict_rules.same_within == 0.1


def test_one_run_is_compared_inside():
    document = compare_runs([BASE])
    assert [(pair.a.label, pair.b.label) for pair in document.pairs] == [("tgi", "vllm")]
    (pair,) = compare_runs([BASE], "tgi").pairs
    assert (pair.a.label, pair.b.label) == ("vllm", "tgi")
    assert pair.findings[0].verdict == "faster"


def test_the_baseline_is_a_run_or_a_backend_or_a_mistake():
    new = run("new", cells("vllm", 90))
    assert compare_runs([BASE, new], "new").pairs[0].a.run == "base"
    with pytest.raises(SpecError, match="no run and no backend 'vlm'") as raised:
        compare_runs([BASE, new], "vlm")
    assert "did you mean 'vllm'" in raised.value.hint


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"host__gpus": ["A100"]}, "GPUs: H100 | A100"),
        ({"host__gpus": None}, "GPUs: H100 | none"),
        ({"host__cpus_usable": 4}, "usable cores: 2 | 4"),
        ({"model": {"name": "other"}}, "model: m | other"),
        ({"backends__vllm__track": "q4"}, "weights: bf16 | q4"),
        ({"scenario__cache__state": "warm"}, "prefix cache at the start: cold | warm"),
    ],
)
def test_what_decides_is_refused_unless_forced(changes, what):
    runs = [BASE, run("new", cells("vllm", 150), **changes)]
    document = compare_runs(runs)
    assert document.pairs[0].refused == what
    assert words(document) == [["not comparable"]]
    assert refused(document)
    forced = compare_runs(runs, force=True)
    assert words(forced) == [["slower"]]
    assert [one.what for one in forced.pairs[0].differences if one.matters] == [what.split(":")[0]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {
                "scenario__prompts": {"generator": "shared-prefix", "groups": 2, "turns": 3},
                "scenario__load": {"requests": 9, "rate": [1]},
            },
            "other requests: prompts.groups 4 (baseline), 2 (new)",  # an older version had no turns
        ),
        (
            {"scenario__prompts": {"generator": "mix", "groups": 2, "turns": 3}},
            "other requests: prompts.generator shared-prefix (baseline), mix (new)",
        ),
        (
            {"scenario__load": {"requests": 8, "start": "together", "think_time_s": 3.0, "min_answers": 1}},
            "other requests: load.requests 9 (baseline), 8 (new); load.start spread (baseline), together "
            "(new)",
        ),
        ({"kv_tokens": 64}, "other requests: kv_tokens 32 (baseline), 64 (new)"),
        (
            {
                "scenario__request": {"temperature": 0.5, "timeout_s": 9.0, "exact_output": False},
                "scenario__images": {"distinct": 4, "send": "url", "place": "before"},
            },
            "other requests, though scenario and seed are the same: counted by another tokenizer",
        ),
        (
            {
                "scenario__prompts": {
                    "generator": "shared-prefix",
                    "groups": 4,
                    "classes": [{"name": "4k", "weight": 1.0}],
                }
            },
            "other requests: prompts.classes none (baseline), name=4k weight=1 (new)",
        ),
        ({"seeds": {"run": 7, "dimensions": []}}, "other requests: seed 0 (baseline), 7 (new)"),
        ({}, "other requests, though scenario and seed are the same: counted by another tokenizer"),
        (
            {"packages": {"llm-servebench": "0.2.0"}},
            "other requests, though scenario and seed are the same: counted by another tokenizer, or by "
            "bench 0.1.0 (baseline), 0.2.0 (new)",
        ),
    ],
)
def test_other_requests_are_refused_with_what_makes_them_others(changes, words):
    asked = {
        "scenario__prompts": {"generator": "shared-prefix", "groups": 4, "classes": []},
        "scenario__load": {"requests": 9, "rate": [2], "start": "spread", "think_time_s": 0.0},
        "scenario__request": {"temperature": 0.0, "timeout_s": 300.0, "exact_output": True},
        "scenario__images": {"distinct": 4, "send": "data", "place": "after"},
        "kv_tokens": 32,
        "seeds": {"run": 0, "dimensions": []},
    }
    base = run("base", cells("vllm", 100), **asked)
    document = compare_runs([base, run("new", cells("vllm", 100, work="other"), **asked | changes)])
    assert document.pairs[0].refused is None
    assert {(one.verdict, one.why) for one in document.pairs[0].findings} == {("not comparable", words)}
    assert answers(document)[0].endswith(f": {words}.")


def test_probes_of_two_searches_have_other_requests_by_their_sizes():
    def searched(name, answers):
        size = {"seconds": 10.0, "answers": answers}
        made = cells("vllm", 100, work=name, repeats=1, probe=size)
        return run(name, [changed(cell, requests={"planned": answers, "ok": answers}) for cell in made])

    document = compare_runs([searched("base", 40), searched("new", 160)])
    words = "other requests: requests of a probe 40 (baseline), 160 (new)"
    assert {found.why for found in document.pairs[0].findings} == {words}


def test_reasons_name_the_sides_as_a_reader_calls_them():
    def drifting(name, label):
        steady, *rest = cells(label, 100, repeats=3)
        return run(name, [changed(steady, validity=UNSTEADY), *rest])

    def why(*runs, **options):
        return compare_runs(runs, **options).pairs[0].findings[0].why

    counts = "2 runs each, 3 are needed"
    out = "1 of 3 runs left out: not steady"
    old, new, other = drifting("a", "vllm"), drifting("b", "vllm"), drifting("c", "vllm@x")
    assert why(old, new) == f"{counts}; the new one: {out}; the baseline: {out}"
    assert why(old, other) == f"{counts}; vllm@x: {out}; vllm: {out}"
    within = replace(old, summary=summary(*old.cells, *other.cells))
    assert why(within).startswith("2 runs each, 3 are needed; vllm@x: 1 of 3 runs left out")


def test_what_can_be_compared_in_one_metric_is_not_refused():
    """Answers of other lengths: nothing is said of whole answers, and their first tokens are compared."""
    document = compare_runs(
        [
            run(name, cells("vllm", 100, conditions={"output_tokens_mean": mean}, load=load(1)))
            for name, mean in (("base", 32.0), ("new", 16.0))
        ]
    )
    found = {one.metric: one.verdict for one in document.pairs[0].findings}
    assert (found["ttft_ms.p50"], found["e2e_ms.p50"]) == ("same", "not comparable")
    assert not refused(document)


@pytest.mark.parametrize(("old", "new"), [((4, 4), (4, 4)), ((4, 4), (4, 8)), ((3, 8), (6, 4))])
def test_starts_with_other_numbers_of_blocks_are_compared_by_their_means(old, new):
    """Block 5 is of the second start in one session and of the first in the other."""

    def session(name, p50, starts, blocks):
        noise = np.resize(NOISE, starts * blocks)
        made = cells("vllm", p50, noise=noise, repeats=starts * blocks, launch="process")
        made = [changed(one, start_number=one.repeat // blocks) for one in made]
        return run(name, made, pairing="blocks", blocks=blocks)

    runs = session("old", 100, *old), session("new", 110, *new)
    (found, *_), (turned, *_) = (
        compare_runs(both).pairs[0].findings for both in (runs, tuple(reversed(runs)))
    )
    assert (found.verdict, turned.verdict) == ("slower", "faster")
    assert found.runs == (new[0], old[0])
    assert found.paired == (old == new)


@pytest.mark.parametrize("values", [(-2.0, 300.0), (300.0, -2.0), (0.0, 300.0)])
def test_there_is_no_change_from_or_to_what_is_not_above_0(values):
    """What an image adds to TTFT is a difference, which chance can make negative."""
    declared = {"primary": "image_ms", "metrics": ["image_ms"]}
    runs = [
        run(f"{value:g}", cells("vllm", 100, image_ms=value), scenario__verdict=declared) for value in values
    ]
    (found, *_) = compare_runs(runs).pairs[0].findings
    assert found.why == "a value is not above 0: there is no ratio"
    assert finding_row(found)[3:] == ("n/a", "n/a", "undecided")


def test_what_the_scenario_sets_is_told_where_both_set_it():
    old = manifest(
        scenario__load={"concurrency": [1, 4], "max_in_flight": 64},
        scenario__verdict={"primary": "ttft_ms.p50", "metrics": ["ttft_ms.p50"]},
        scenario__slo={"ttft_ms": {"p95": 500}},
    )
    new = manifest(
        scenario__load={"concurrency": [1, 8], "max_in_flight": 16, "of_a_later_version": 1},
        scenario__verdict={"primary": "e2e_ms.p50", "metrics": ["ttft_ms.p50"]},
        scenario__slo={"ttft_ms": {"p95": 800}},
    )
    found = differences(Side(old, "vllm"), Side(new, "vllm"))
    assert [(one.text, one.matters) for one in found] == [
        ("scenario load.concurrency: 1, 4 | 1, 8", False),
        ("scenario load.max_in_flight: 64 | 16", False),
        ("scenario verdict.primary: ttft_ms.p50 | e2e_ms.p50", False),
        ("scenario slo.ttft_ms.p95: 500 | 800", False),
    ]


def test_what_cells_know_is_told_by_the_row_of_the_table_alone():
    """Other settings are written as rows are: neither None, nor True, nor the tables of a list."""

    def side(over_cap, load, request):
        point = {"kind": "rate", "value": 2, "over_cap": over_cap}
        made = cells("vllm", 100, load=point, conditions={"api": request["api"]})
        return Side(manifest(scenario__load=load, scenario__request=request), "vllm", made)

    part = {"seconds": 10.0, "start": 1.0, "end": 2.0}
    old = side(
        "wait",
        {"over_cap": "wait", "duration_s": None, "profile": []},
        {"api": "chat", "exact_output": True, "language": ""},
    )
    new = side(
        "drop",
        {"over_cap": "drop", "duration_s": 9.0, "profile": [part]},
        {"api": "completions", "exact_output": False, "language": "de"},
    )
    assert [one.text for one in differences(old, new)] == [
        "API: chat | completions",
        "requests above the cap: wait | drop",
        "scenario load.duration_s: none | 9",
        "scenario load.profile: none | seconds=10 start=1 end=2",  # of no cell here
        "scenario request.exact_output: on | off",
        "scenario request.language: none | de",
    ]


def test_an_import_says_nothing_of_gpus():
    old, new = manifest(), manifest(host=None)
    for first, second in ((old, new), (new, old)):
        assert "GPUs" not in str(differences(Side(first, "vllm"), Side(second, "vllm")))


def test_flags_and_versions_are_told_and_do_not_decide():
    command = ["/b/bin/serve", "--max-num-seqs", "16", "--port", "2", "--model=/y/m", "--new=1"]
    new = manifest(
        backends__vllm__engine={"package_version": "0.33", "command": command}, host__gpu_driver="575"
    )
    found = differences(Side(manifest(), "vllm"), Side(new, "vllm"))
    assert [(one.text, one.matters) for one in found] == [
        ("sequences at once: 8 | 16", False),
        ("engine version: 0.32 | 0.33", False),
        ("GPU driver: 570 | 575", False),
        ("flag --eager: given | not given", False),
        ("flag --new: not given | 1", False),
    ]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ({"llama": "llama-8b"}, {"llama": "llama-8b-v2"}, ["model in answers: llama-8b | llama-8b-v2"]),
        ({"llama": "llama-8b"}, {"other": "llama-8b"}, []),
        ({"llama": "llama-8b"}, {}, []),
        (
            {"llama": "a", "adapter-1": "b"},
            {"llama": "a", "adapter-1": "c"},
            ["model in answers: b for adapter-1, a for llama | c for adapter-1, a for llama"],
        ),
    ],
)
def test_another_model_in_the_answers_is_listed(before, after, words):
    """Nobody told bench: the server was given other weights under its name."""
    sides = [
        Side(manifest(), "vllm", [changed(cell("vllm"), conditions={"answered_model": names})])
        for names in (before, after)
    ]
    assert [one.text for one in differences(*sides)] == words
    assert not any(one.matters for one in differences(*sides))


def test_what_differs_is_that_of_the_engines_that_cells_were_measured_on():
    """The manifest has those of the last start. Sizes of a cache that are nearly one are shown once."""

    def cell_of(repeat, version, tokens, digest):
        info = {"max_total_num_tokens": tokens, "own": "x"}
        found = {"served_name": "m", "image_digest": digest, "weights_sha256": None, "info": info}
        return cell("vllm", repeat=repeat, engine_version=version, conditions={"engine": found})

    info = {"max_total_num_tokens": 100_000, "own": "y"}
    made = manifest(backends__vllm__engine={"package_version": "0.33", "info": info})
    cells = [cell_of(0, "0.32", 200_000, "sha256:a"), cell_of(1, "0.32", 199_000, "sha256:a")]
    changed = [*cells, cell_of(2, "0.33", 100_000, "sha256:b")]
    found = differences(Side(made, "vllm", cells), Side(made, "vllm", changed))
    assert [(one.text, one.matters) for one in found] == [
        ("KV cache in tokens: 200000 | 200000, 100000", False),
        ("engine version: 0.32 | 0.32, 0.33", False),
        ("image digest: sha256:a | sha256:a, sha256:b", False),
    ]


def test_another_client_of_imported_figures_is_a_difference():
    """A night whose client was updated had changed in nothing that bench records."""
    made = manifest()

    def side(version):
        about = {"tool": "aiperf", "version": version, "level": "records"}
        about |= {"sha256": "", "file": "", "took": ""}
        return Side(made, "vllm", [cell("vllm", repeat=repeat, imported=about) for repeat in (0, 1)])

    assert differences(side("0.13"), side("0.13")) == []
    (found,) = differences(side("0.13"), side("0.14"))
    assert (found.text, found.matters) == ("client: aiperf 0.13 | aiperf 0.14", False)
    (found,) = differences(side("0.13"), Side(made, "vllm", [cell("vllm")]))
    assert found.text == "client: aiperf 0.13 | bench"


def test_a_version_is_the_same_in_a_run_of_before_cells_kept_their_engine():
    """llama.cpp's wheel has another version than its server, and a cell names both."""
    found = {"served_name": "m", "image_digest": None, "weights_sha256": None, "info": {}}
    both = {"package_version": "2026.10", "server_version": "b0"}
    made = manifest(backends__vllm__engine=both)
    old = cell("vllm", engine_version="2026.10 (server: b0)")
    new = cell("vllm", engine_version="2026.10 (server: b0)", conditions={"engine": found})
    assert differences(Side(made, "vllm", [old]), Side(made, "vllm", [new])) == []


def test_a_setting_that_another_one_hides_is_told_for_one_engine_alone():
    """The flag sets the threads of both; of two engines, the row of the table has said it."""

    def side(label, threads):
        engine = {"command": ["serve", "--threads", "4"], "env": {"OMP_NUM_THREADS": threads}}
        return Side(manifest(**{f"backends__{label}__engine": engine}), label)

    found = differences(side("vllm", "2"), side("vllm", "8"))
    assert [one.text for one in found] == ["variable OMP_NUM_THREADS: 2 | 8"]
    assert "OMP_NUM_THREADS" not in str(differences(side("vllm", "2"), side("tgi", "8")))


def test_the_folder_of_one_start_is_no_difference():
    def side(folder, threads):
        command = ["serve", "--slots", folder, f"--config={folder}/made.json"]
        engine = {"command": command, "env": {"KEPT": f"{folder}/kept", "THREADS": threads}}
        return Side(manifest(backends__vllm__engine=engine), "vllm")

    with scratch.folder("engine") as now:
        found = differences(side("/tmp/bench-engine-m4or61wb", "4"), side(str(now), "8"))
    assert [one.text for one in found] == ["variable THREADS: 4 | 8"]


def test_other_weights_are_part_of_the_question_about_two_engines():
    made = manifest(backends__tgi__track="q4")
    (told,) = [one for one in differences(Side(made, "vllm"), Side(made, "tgi")) if one.what == "weights"]
    assert not told.matters


def test_what_is_printed():
    document = compare_runs([BASE, run("new", cells("vllm", 112), host__gpu_driver="575")])
    text = terminal(compared(document), 80, color=False)
    assert text.startswith("vllm is slower than in the run of 2026-11-20 08:00")
    assert "first token by 12% at 4 users (" in " ".join(text.split())
    assert "vllm: new against base" in text
    assert "differs: GPU driver: 570 | 575" in text
    assert "TTFT p50, ms*" in text
    assert "+12.0%" in text
    assert max(map(len, text.splitlines())) <= 80
    assert max(map(len, terminal(compared(document), 60, color=False).splitlines())) <= 60
    page = markdown(compared(document))
    assert page.startswith("**vllm is slower than in the run of 2026-11-20 08:00")
    assert "| TTFT p50, ms\\* | 100 | 112 | +12.0% |" in page
    assert "<details><summary>1 difference in conditions (baseline | new)</summary>" in page


def command(*arguments):
    return main(["compare", *map(str, arguments)])


def shape(engines, repeats=3):
    """As small as a verdict between two runs can be: each command computes every cell of both again."""
    return Shape(engines, repeats=repeats, concurrency=(4,), requests=8, output_tokens=8)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two runs of made-up engines, the second with a slower one."""
    slower = (Engine("llamacpp", "llama.cpp", 20.0, 12.0, version="b11550"), TWO[1])
    return [make_run(tmp_path_factory.mktemp("runs"), shape(engines)).path for engines in (TWO, slower)]


def test_a_run_with_its_copy_with_one_as_fast_and_with_a_slower_one(stored, tmp_path, capsys):
    old, new = stored
    copied = tmp_path / "copied"
    shutil.copytree(old, copied)
    assert command(old, copied, "--fail-on", "slower") == ExitCode.USAGE
    assert "copied: is a copy of " in capsys.readouterr().err
    again = make_run(tmp_path, shape(tuple(replace(engine, version="b11550") for engine in TWO))).path
    assert command(old, again, "--fail-on", "slower") == ExitCode.OK
    assert capsys.readouterr().out.startswith("llamacpp is not slower than in the run of ")
    assert command(old, new) == ExitCode.OK
    assert command(old, new, "--fail-on", "slower") == ExitCode.LIMIT_FAILED
    assert capsys.readouterr().out.startswith("llamacpp is slower than in the run of ")


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(1.081, "+8.1%"), (0.9, "-10.0%"), (0.9998, "+0.0%"), (1.0, "+0.0%"), (2.3, "2.30 ×")],
)
def test_a_change_is_in_per_cent_up_to_a_doubling(ratio, shown):
    assert change(ratio) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        ((1.634, 2.02, 2.5), ["1.63 ×", "2.02 ×", "2.50 ×"]),
        ((1.515, 1.989, 2.61), ["+51.5%", "+98.9%", "+161.0%"]),
    ],
)
def test_the_ends_of_an_interval_are_written_as_its_middle_is(ratio, shown):
    assert list(changes(Interval(*ratio))) == shown


def test_one_backend_alone_has_nothing_beside_it(tmp_path, capsys):
    alone = make_run(tmp_path, shape(TWO[:1], repeats=2)).path
    assert command(alone) == ExitCode.USAGE
    assert f"error: {alone.name}: only one backend: nothing to compare" in capsys.readouterr().err


def test_an_old_schema_has_a_clear_word(stored, tmp_path, capsys):
    made = RunFolder(tmp_path / "old")
    made.path.mkdir()
    for name in ("manifest.json", "summary.json"):
        content = copy.deepcopy(RunFolder(stored[0]).read_json(name))
        Path(made.path, name).write_text(json.dumps({**content, "schema": 0}))
    assert command(stored[0], made.path) == ExitCode.USAGE
    assert "schema 0; this version reads schemas 1 to 2" in capsys.readouterr().err


def load(value):
    return {"kind": "concurrency", "value": value}


WIDE = run("base", *(cells(label, 100, load=load(value)) for label in ("vllm", "tgi") for value in (4, 8)))
FAILED = verdict("INVALID", "failed-requests", "9 of 32", "1%", "")


def gone(document):
    return [(one.label, one.load and one.load.value, one.metric) for one in document.missing]


RATE = "output_tokens_per_s"
OTHERS = [cells(label, 100, load=load(value)) for label, value in (("vllm", 4), ("vllm", 8), ("tgi", 4))]


def at_eight(repeats, **changes):
    """Cells of the other backend at the higher load, of which so many are changed."""
    return [
        changed(found, **(changes if found.repeat < repeats else {}))
        for found in cells("tgi", 100, load=load(8))
    ]


@pytest.mark.parametrize(
    ("measured", "lacks", "line"),
    [
        (OTHERS[:2], ("tgi", None, None), "missing: tgi: not in this run"),
        (OTHERS, ("tgi", 8, None), "missing: tgi c8: not measured"),
        (
            [*OTHERS, at_eight(3, validity=FAILED)],
            ("tgi", 8, None),
            "missing: tgi c8: INVALID failed-requests 3 of 5",
        ),
        (
            [*OTHERS, at_eight(5, output_tokens_per_s=None, null_reasons={RATE: "no counts"})],
            ("tgi", 8, RATE),
            "missing: tgi c8 output: null in 5 of 5 runs: no counts",
        ),
    ],
)
def test_what_the_baseline_has_and_the_new_run_lacks_fails_the_gate(measured, lacks, line):
    """Audit 14: nothing is slower, exit 0."""
    new = run("new", *measured)
    document = compare_runs([WIDE, new])
    assert gone(document) == [lacks]
    assert line in terminal(compared(document), 200, color=False).splitlines()
    assert answers(document)[-1] == "1 measurement missing."
    assert not_allowed(document)
    label, value, metric = lacks
    names = [label, metric, f"c{value}" if value else None, f"{label}/c{value}" if value else None]
    for name in filter(None, names):
        allowed = compare_runs([WIDE, new], allow_missing=[name])
        assert not not_allowed(allowed)
        assert f"{line} (allowed)" in terminal(compared(allowed), 200, color=False).splitlines()
    assert not_allowed(compare_runs([WIDE, new], allow_missing=["vllm"]))


def test_an_engine_that_did_not_start_every_time_is_named():
    failures = [{"backend": "vllm", "repeat": 3, "error": "port 8000 is taken"}]
    both = (cells(label, 100, load=load(value)) for label in ("vllm", "tgi") for value in (4, 8))
    new = run("new", *both, failures=failures)
    assert compare_runs([WIDE, new]).missing[0].why == "did not start in 1 run: port 8000 is taken"


def test_a_name_that_can_allow_nothing_is_a_mistake():
    with pytest.raises(SpecError, match="no backend, load point or metric 'vlm'") as raised:
        compare_runs([WIDE, WIDE], allow_missing=["vlm"])
    assert raised.value.hint.startswith("did you mean 'vllm'?")


def test_a_load_point_that_cannot_be_compared_is_not_passed_over():
    drifting = verdict("SUSPECT", "not-steady", "E2E changes by +43% over it", "20%", "")
    bad = [changed(one, validity=drifting) for one in cells("vllm", 100, load=load(8))]
    document = compare_runs([run("old", *(cells("vllm", 100, load=load(v)) for v in (4, 8))),
                             run("new", cells("vllm", 100), bad)])  # fmt: skip
    assert words(document) == [["same", "not comparable"]]
    assert refused(document)


def test_the_command_fails_on_what_is_missing(tmp_path, capsys):
    """One repeat: what is missing needs no verdict."""
    old, alone = (
        make_run(tmp_path / f"{len(engines)}", shape(engines, 1)).path for engines in (TWO, TWO[:1])
    )
    assert command(old, alone) == ExitCode.LIMIT_FAILED
    assert "missing: llamacpp@no-prefix-cache: not in this run" in capsys.readouterr().out
    assert command(old, alone, "--allow-missing", "llamacpp@no-prefix-cache") == ExitCode.OK
    assert command(old, alone, "--allow-missing", "llama") == ExitCode.USAGE


def test_each_run_is_told_by_its_folder_its_first_name_and_its_source():
    def source(version):
        return {"tool": "aiperf", "version": version, "file": "x", "level": "records"}

    first, second, last = cells("vllm", 100, repeats=3)
    read = [changed(first, imported=source("1.0")), changed(second, imported=source("1.0"), simulated=True)]
    copied = run("copy", read, [changed(last, imported=source("2.0"))], run="20261120-chat", host=None)
    base, new = compare_runs([run("base", cells("vllm", 100)), copied]).runs
    assert (base.name, base.run, base.hostname, base.scenario) == ("base", "r", "box", "chat")
    assert (base.created_utc, base.state) == ("2026-11-20T08:00:00+00:00", "complete")
    assert (base.simulated, base.imported) == (False, ())
    assert (new.name, new.run, new.hostname, new.simulated) == ("copy", "20261120-chat", None, True)
    assert new.imported == (
        "imported from aiperf 1.0 (records); client not verified",
        "imported from aiperf 2.0 (records); client not verified",
    )


def test_a_loss_of_answers_is_a_row_of_the_gate_and_an_open_question_is_not():
    def asked(name, marks):
        conditions = {"unloaded": {"marks": marks}, "saturated": {"marks": marks}}
        agreement = filled(Agreement, backends={"vllm": conditions}, sha256="same")
        one = run(name, cells("vllm", 100))
        return replace(one, summary=summary(*one.cells, agreement=agreement))

    document = compare_runs([asked("old", "1" * 600), asked("new", ("1" * 9 + "0") * 60)])
    assert [(row.a.run, row.b.run, row.under_load) for row in document.accuracy] == [
        ("new", "old", False),
        ("new", "old", True),
    ]
    assert [(row.kind, row.run, row.label, row.metric) for row in document.gate] == [
        ("accuracy", "new", "vllm", "accuracy.drop")
    ] * 2
    (early, _) = document.accuracy
    assert early.change.level == pytest.approx(0.005)  # of the first look, for the only pair
    three = compare_runs([asked("old", "1" * 600), *(asked(name, "1" * 600) for name in ("b", "c"))])
    assert [row.change.level for row in three.accuracy] == pytest.approx([0.0025] * 4)
    unsure = compare_runs([asked("old", "1" * 30), asked("new", "1" * 30)])
    assert len(unsure.accuracy) == 2
    assert unsure.gate == ()  # unless `--fail-on accuracy.drop` asks for it


def test_runs_that_share_no_load_were_not_compared():
    """The new run measured 8 in flight only, where the baseline has 4."""
    new = run("new", cells("vllm", 100, load=load(8)))
    document = compare_runs([run("old", cells("vllm", 100, load=load(4))), new])
    assert [(row.kind, row.load and row.load.value, row.why) for row in document.gate] == [
        ("missing", 4, "not measured"),
        ("not compared", None, "no load point in common"),
    ]
    assert refused(document)


def test_a_run_that_could_stop_early_lowers_the_level_on_either_side():
    """Two looks share 5%."""
    stopping = {"looks": [3, 5], "repeats": 5, "reason": "decided", "budget_s": None, "spent_s": 1.0}
    whole, looked = run("a", cells("vllm", 100)), run("b", cells("vllm", 100), stopping=stopping)
    for runs in ([whole, looked], [looked, whole]):
        assert compare_runs(runs).pairs[0].verdict_rules.alpha == 0.025
    assert compare_runs([whole, run("c", cells("vllm", 100))]).pairs[0].verdict_rules.alpha == 0.05


def test_what_is_forced_is_not_refused():
    runs = [BASE, run("new", cells("vllm", 150), model__name="other")]
    assert [compare_runs(runs, force=force).pairs[0].refused for force in (False, True)] == [
        "model: m | other",
        None,
    ]


def test_what_would_have_refused_the_cells_is_listed_where_it_is_forced():
    """Else a forced comparison looks like one of equals."""
    runs = [
        run(name, cells("vllm", value, conditions={"sent_fields": {}, "own_fields": {"top_k": top_k}}))
        for name, value, top_k in (("old", 100, 3), ("new", 150, 4))
    ]
    (refused_pair,) = compare_runs(runs).pairs
    assert refused_pair.differences == ()
    assert refused_pair.findings[0].verdict == "not comparable"
    (pair,) = compare_runs(runs, force=True).pairs
    assert pair.findings[0].verdict == "slower"
    assert [(each.what, each.baseline, each.new, each.matters) for each in pair.differences] == [
        ("request fields of the scenario", '{"top_k": 3}', '{"top_k": 4}', True)
    ]


def test_a_backend_that_is_not_there_because_it_did_not_start_says_so():
    failures = [{"backend": "tgi", "repeat": 0, "error": "no memory"}]
    new = run("new", cells("vllm", 100), failures=failures)
    (lacking,) = compare_runs([BASE, new]).missing
    assert (lacking.label, lacking.why) == ("tgi", "did not start in 1 run: no memory")


def test_an_engine_that_did_not_always_start_in_the_baseline_either_is_not_missing():
    failures = [{"backend": "vllm", "repeat": 3, "error": "no memory"}]
    both = [run(name, cells("vllm", 100), failures=failures) for name in ("old", "new")]
    assert compare_runs(both).missing == ()


def test_other_limits_of_goodput_are_listed_though_they_refuse_goodput_alone():
    def side(limit_ms):
        limit = {"metric": "ttft_ms", "share": "p95", "limit_ms": limit_ms, "within": 1.0, "met": True}
        made = cells("vllm", 100, slo={"limits": [limit], "attainment": 1.0})
        return Side(manifest(scenario__slo={"ttft_ms": {"p95": limit_ms}}), "vllm", made)

    (found,) = differences(side(200.0), side(300.0))
    assert found.text == "limits of goodput: ttft_ms.p95 200 ms | ttft_ms.p95 300 ms"


def test_each_verdict_is_looked_up_once_however_many_runs_there_are(monkeypatch):
    """Of 60 runs of 12 backends at 10 loads there are 7,000 pairs with 50,000 verdicts."""
    asked = []
    name = property(lambda member: asked.append(member) or f"{member.run.name}/{member.label}")
    monkeypatch.setattr("harness.verdicts.baseline._Member.name", name)

    def looks(runs):
        asked.clear()
        compare_runs([run(f"r{number}", cells("vllm", 100)) for number in range(runs + 1)])
        return len(asked)

    assert looks(8) == 2 * looks(4)
