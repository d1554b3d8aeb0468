"""Tuned variants: files, how they are found, what they change, and where they hold."""

import dataclasses
import tomllib
from types import SimpleNamespace

import pytest

from harness.conditions.settings import classified
from harness.conditions.unequal import unequal
from harness.errors import SpecError
from harness.model import HostFacts, LoadPoint
from harness.report.findings.notes import notes
from harness.run.setup.division import Place, division, elsewhere
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.backend_refs import candidates, load_backend, parse_backend, parse_backend_list
from harness.spec.files import locate
from harness.spec.tuned import Provenance, Tuned, as_toml, load_tuned, tuned_path
from harness.tune import tuning
from harness.tune.trial import Trial
from harness.tune.tuning import compared, comparison_repeats, why_default
from tests.factories.summaries import cell, summary
from tests.unit.spec.test_backend import BACKEND

ORIGIN = Provenance(
    date_utc="2026-11-22T02:00:00+00:00",
    scenario="batch-1-8-32",
    scenario_key="k",
    workload_sha256="",
    load="c32",
    metric="output_tokens_per_s",
    model='a "name" \\ é',
    launch="process",
    host="a CPU",
    host_key="h",
    engine_version="1",
    budget_s=600.0,
    spent_s=590.5,
    trials=9,
    failed_trials=1,
    verdict="faster",
    runs=("a", "b"),
)
TUNED = Tuned("llamacpp", {"batch_tokens": 512, "threads": 1}, ORIGIN)


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CONFIG", str(tmp_path / "config"))


def keep(tuned, path=None):
    path = path or tuned_path(tuned.backend)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_toml(tuned))
    return path


def test_a_file_is_read_as_it_was_written(tmp_path):
    assert load_tuned(keep(TUNED, tmp_path / "x.toml")) == TUNED


def test_it_is_found_by_name_and_by_path_and_changes_its_values(tmp_path):
    keep(TUNED)
    elsewhere_ = keep(TUNED, tmp_path / "mine.toml")
    for text in ("llamacpp@tuned", f"llamacpp@{elsewhere_}"):
        (ref,) = parse_backend_list(text)
        assert ref.label == "llamacpp@tuned"
        assert ref.definition.engine.values["batch_tokens"] == 512
        assert ref.tuned == TUNED


def test_it_is_found_where_a_path_names_the_backend(tmp_path):
    keep(TUNED)
    mine = tmp_path / "of-mine.toml"
    mine.write_text(locate("backends", "llamacpp").read_text())
    (ref,) = parse_backend_list(f"{mine}@tuned")
    assert ref.tuned == TUNED


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"backend": "vllm"}, "was tuned for 'vllm'"),
        ({"values": {"nothing": 1}}, "has no value 'nothing'"),
        ({"variant": "gone"}, "has no variant 'gone'"),
    ],
)
def test_a_file_that_does_not_fit_is_an_error(tmp_path, change, says):
    path = keep(dataclasses.replace(TUNED, **change), tmp_path / "x.toml")
    with pytest.raises(SpecError, match=says):
        parse_backend_list(f"llamacpp@{path}")


def test_without_a_file_the_error_says_how_to_make_one():
    with pytest.raises(SpecError, match="no tuned variant") as caught:
        parse_backend_list("llamacpp@tuned")
    assert "bench tune" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sise = [1, 2]", "not a key of"),
        ("size = [1, 'two']", "not of the type"),
        ("size = [3, 3]", "two different"),
        ("size = { least = 8, most = 4 }", "least <= most"),
        ("size = { least = 4, most = 8, factor = 1 }", "factor above 1"),
    ],
)
def test_what_is_declared_tunable_is_checked(text, says):
    with pytest.raises(SpecError, match=says):
        parse_backend(
            tomllib.loads(BACKEND.replace("[process]", f"[engine.tunable]\n{text}\n[process]")), "x"
        )


def test_a_range_is_its_powers():
    text = BACKEND.replace("[process]", "[engine.tunable]\nsize = { least = 3, most = 20 }\n[process]")
    assert candidates(parse_backend(tomllib.loads(text), "x").engine.tunable["size"]) == (3, 6, 12)


@pytest.mark.parametrize("name", ["vllm", "llamacpp", "sglang", "lmdeploy", "tgi", "ollama", "tensorrt-llm"])
def test_nothing_tunable_changes_the_numbers_that_are_computed_with_or_the_hardware(name):
    for key in load_backend(name).engine.tunable:
        row = classified("value", key, name)
        assert row is not None, key
        assert row[0].code not in (
            "weights",
            "dtype",
            "quantisation",
            "kv-dtype",
            "tensor-parallel",
            "context",
        )


def prepared(backends, **changes):
    return prepare(RunOptions("batch-1-8-32", backends, launch="simulate", profile="cpu", **changes))


def test_divisions():
    keep(TUNED)
    of = prepared("llamacpp,llamacpp@tuned,llamacpp@q8_0,llamacpp@no-host-cache")
    assert [division(of, backend) for backend in of.backends] == ["default", "tuned", "default", "custom"]
    given = prepared("llamacpp,llamacpp@tuned", engine_values={"max_sequences": "4"})
    assert [division(given, backend) for backend in given.backends] == ["custom", "custom"]
    port = prepared("llamacpp", engine_values={"port": "9000"})
    assert division(port, port.backends[0]) == "default"
    attached = prepare(RunOptions("batch-1-8-32", "llamacpp=http://127.0.0.1:9"))
    assert division(attached, attached.backends[0]) is None


def test_tuned_values_replace_those_of_the_scenario_and_give_way_to_the_command_line():
    keep(dataclasses.replace(TUNED, values={"max_sequences": 16}))
    both = prepared("llamacpp,llamacpp@tuned").backends
    assert [backend.engine_values["max_sequences"] for backend in both] == ["32", "16"]
    given = prepared("llamacpp@tuned", engine_values={"max_sequences": "4"})
    assert given.backends[0].engine_values["max_sequences"] == "4"


def test_elsewhere_is_told_by_what_differs():
    here = Place("batch-1-8-32", "k", ("c32",), ORIGIN.model, "process", "h")
    assert list(elsewhere(ORIGIN, here, "1")) == []
    other = Place("rag", "z", ("c1", "c32"), "m", "compose", "i")
    told = "; ".join(elsewhere(ORIGIN, other, "2"))
    for part in (
        "batch-1-8-32, not rag",
        "load c32, not c1",
        "not m",
        "compose",
        "another machine",
        "1, not 2",
    ):
        assert part in told
    changed = dataclasses.replace(here, scenario_key="z")
    assert list(elsewhere(ORIGIN, changed, "1")) == ["other requests of scenario batch-1-8-32"]


def limits(a, b, of_a, of_b):
    keys = ["max-sequences"]
    made = [
        cell(name, backend=name, load={"kind": "concurrency", "value": 32}, division=of,
             conditions={"settings": {"max-sequences": limit}, "searched": keys if of == "tuned" else []})
        for name, limit, of in (("a", a, of_a), ("b", b, of_b))
    ]  # fmt: skip
    return [one.matters for one in unequal(made) if one.code == "max-sequences"]


def test_what_both_were_tuned_in_does_not_forbid_a_comparison():
    assert limits("8", "32", "default", "default") == [True]
    assert limits("8", "32", "tuned", "default") == [True]
    assert limits("8", "32", "tuned", "tuned") == [False]


def test_the_table_tells_divisions_other_than_the_default():
    of = summary(cell("a", division="default"), cell("b", division="tuned"))
    assert "divisions: b tuned (the others as shipped)" in [note.text for note in notes(of)]
    assert not [note for note in notes(summary(cell("a", division="default"))) if "division" in note.text]


def test_the_comparison_has_as_many_repeats_as_the_scenario_declares_and_enough_for_a_verdict():
    assert [comparison_repeats(declared) for declared in ("auto", 2, 5)] == ["auto", 3, 5]


@pytest.mark.parametrize(
    ("candidate", "spent", "why"),
    [
        (300.0, False, "no candidate was 2% better in its trials"),
        (300.0, True, "no candidate was 2% better in its trials before the budget ended"),
        (None, False, "no candidate could be measured"),
        (None, True, "no candidate could be measured before the budget ended"),
    ],
)
def test_candidates_that_the_budget_left_out_are_not_called_slower(candidate, spent, why):
    trials = [
        Trial({}, 0.25, 200.0, "", "a", 2.0),
        Trial({"max_sequences": 1}, 0.25, candidate, "", "b", 2.0),
    ]
    assert why_default(trials, spent=spent) == why


def test_a_search_without_other_values_has_no_candidate_that_failed():
    """Of a machine with one CPU, 1 is the only number of threads."""
    default = [Trial({}, 0.25, 200.0, "", "a", 2.0)]
    assert why_default(default, spent=False) == "there is no other value to try here"
    assert "before the budget ended" in why_default(default, spent=True)


def test_a_candidate_that_was_better_when_the_budget_ended_is_named():
    trials = [Trial({}, 0.25, 200.0, "", "a", 2.0), Trial({"max_sequences": 1}, 0.25, 100.0, "", "b", 2.0)]
    why = why_default(trials, spent=True, unfinished={"max_sequences": 1})
    assert why == "max_sequences=1 was better in a trial, and the budget ended before all others had one"


@pytest.mark.parametrize("given", ["llamacpp", "llamacpp==0.2", "llamacpp@no-host-cache", "mine/other.toml"])
def test_both_of_a_comparison_are_of_the_definition_and_version_that_were_tuned(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "other.toml").write_text(BACKEND)  # of no name that is known
    (default,) = parse_backend_list(given)
    own = dataclasses.replace(
        TUNED, backend=default.definition.name, values={}, variant=default.variant or ""
    )
    tuned, again = parse_backend_list(compared(f"{given},", keep(own, tmp_path / "c.toml")))
    assert again == default
    assert tuned.definition == default.definition
    assert (tuned.variant, tuned.version) == ("tuned", default.version)


def test_a_scenario_whose_name_parts_a_list_can_be_tuned_for(tmp_path):
    shipped = locate("workloads", "fixed-length").read_text()
    scenario = tmp_path / "mine.toml"
    scenario.write_text(shipped.replace('name = "fixed-length"', 'name = "a,b=c"'))
    prepared = prepare(RunOptions(str(scenario), "llamacpp", out=tmp_path))
    assert prepared.scenario.name == "a,b=c"
    tuned, again = parse_backend_list(
        compared("llamacpp", keep(TUNED, tuning._folder(prepared) / "candidate.toml"))
    )
    assert (tuned.label, again.label) == ("llamacpp@tuned", "llamacpp")


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        (HostFacts(cpu=None, machine="aarch64", cpus_usable=8), "aarch64, 8 cores"),
        (HostFacts(), "a machine that is not known"),
    ],
)
def test_a_machine_whose_processor_has_no_name_is_named_by_what_is_known(monkeypatch, tmp_path, facts, shown):
    monkeypatch.setattr(tuning.machine, "host_facts", lambda: facts)
    of = prepared("llamacpp")
    point = LoadPoint("concurrency", 1)
    session = tuning._Session(tuning.Settings(of.options, 60), of, point, "tpot_ms.p50", tmp_path, None)
    assert session._provenance(1.0).host == shown


@pytest.mark.parametrize(
    ("seconds", "tuned", "words"),
    [
        (6, {"threads": 2}, "max_sequences=4, threads=2 was better in a trial, and the budget ended"),
        (99, {"threads": 2, "max_sequences": 4}, ""),
    ],
)
def test_a_candidate_that_was_better_when_the_budget_ended_is_named_though_another_value_changed(
    monkeypatch, tmp_path, seconds, tuned, words
):
    """Each trial takes a second. Of max_sequences not every candidate had one when the budget ended."""
    of = prepared("llamacpp")
    point = LoadPoint("concurrency", 1)
    session = tuning._Session(tuning.Settings(of.options, seconds), of, point, "tpot_ms.p50", tmp_path, None)
    start = {**session._trials.start, "threads": 1, "max_sequences": 1}
    tried = []

    def measure(values, share):
        tried.append(values)
        return 100.0 - 10 * values["threads"] - 10 * min(values["max_sequences"], 4)

    fake = SimpleNamespace(
        metric="tpot_ms.p50", point=point, done=[], folder=tmp_path, start=start, measure=measure,
        shares=lambda: (0.5, 1.0), seconds=lambda: len(tried),
        changed=lambda values: {key: value for key, value in values.items() if value != start[key]},
    )  # fmt: skip
    session._trials = fake
    monkeypatch.setattr(session, "_confirmed", lambda found: found)
    result = session.conduct({"threads": (1, 2), "max_sequences": (1, 2, 4, 8)})
    assert result.values == tuned
    assert result.unfinished.startswith(words)
    assert bool(result.unfinished) == bool(words)


def test_values_that_the_command_line_held_are_kept_with_those_found(tmp_path):
    options = RunOptions("batch-1-8-32", "llamacpp", out=tmp_path, engine_values={"max_sequences": "4"})
    of = prepare(options)
    point = LoadPoint("concurrency", 1)
    session = tuning._Session(tuning.Settings(options, 60), of, point, "tpot_ms.p50", tmp_path, None)
    origin = session._provenance(1.0)
    assert origin.held == "max_sequences=4"
    tuned = load_tuned(keep(dataclasses.replace(TUNED, provenance=origin)))
    assert " with max_sequences=4 on " in tuned.description


def test_what_is_held_and_so_cannot_be_searched_is_named():
    of = prepared("vllm", engine_values={"max_sequences": "8"})
    with pytest.raises(SpecError, match="but max_sequences, which --engine-set holds"):
        tuning._tunable(of)


def test_too_few_requests_for_the_percentile_are_refused_before_the_first_start(tmp_path):
    options = RunOptions("fixed-length", "llamacpp", launch="simulate", out=tmp_path)
    with pytest.raises(SpecError, match="TTFT p99 needs 299 requests, and the scenario has 32") as refused:
        tuning._prepared(tuning.Settings(options, 60, metric="ttft_ms.p99"))
    assert refused.value.hint == "--set load.requests=299, or another --metric"
    enough = dataclasses.replace(options, overrides={"load.requests": 299})
    assert tuning._prepared(tuning.Settings(enough, 60, metric="ttft_ms.p99"))[2] == "ttft_ms.p99"


@pytest.mark.parametrize(
    ("backend", "what", "works"),
    [
        ("hosted", "bench does not start hosted", "`bench run --backends hosted=URL,hosted=URL2` compares"),
        ("openai=http://h:1", "bench does not start this server", "`bench run --backends openai=URL,openai"),
        ("vllm=http://h:1", "bench does not start this server", "`bench tune vllm` starts one"),
    ],
)
def test_what_bench_does_not_start_has_no_values_to_search(tmp_path, backend, what, works):
    with pytest.raises(SpecError, match=f"BACKEND: {what}") as refused:
        tuning._prepared(tuning.Settings(RunOptions("fixed-length", backend, out=tmp_path), 60))
    assert refused.value.hint.startswith(works)
