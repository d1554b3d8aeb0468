"""Every row of the table of conditions, changed alone, between two engines and between two runs of one."""

import copy
import functools
import re

import pytest
from msgspec.structs import replace

from harness.conditions import TABLE, classified, unequal, with_manifest
from harness.conditions.table import width
from harness.host import paths
from harness.model import Agreement, Manifest
from harness.report.blocks.comparison import compared
from harness.report.text.terminal_text import terminal
from harness.spec.backend import DEVICES
from harness.spec.backend_refs import apply_variant, load_backend
from harness.verdicts import Rules, compare
from harness.verdicts.baseline import Run, compare_runs
from tests.factories import documents
from tests.factories.summaries import summary
from tests.unit.verdicts.test_pairs import cells

ENGINES = sorted(set(paths.definitions("backends")) - {"models", "truth", "openai"})
KINDS = {
    "cpus_usable": int,
    "cpu_quota": float,
    "run": int,
    "gpus": lambda name: [name],
    "cpu_features": lambda name: [name],
    "pairing": {"16": "blocks", "8": "starts"}.get,
}  # what is no text in a manifest
INFO, VARIABLE, VALUE, FLAG = "info", "env", "values", "command"
DRAFT = "--speculative-config"


def manifest(*labels):
    return {
        "scenario": {"scenario": {"name": "chat"}, "cache": {"state": "cold"}, "load": {"concurrency": [4]}},
        "model": {"name": "m"},
        "host": {"cpu": "EPYC", "cpus_usable": 2, "gpus": ["H100"], "hostname": "box"},
        "packages": {"llm-servebench": "0.1.0"},
        "options": {"workers": 1},
        "seeds": {"run": 0},
        "backends": {
            label: {
                "backend": label,
                "variant": None,
                "track": "bf16",
                "launch": {"mode": "process"},
                "engine": {"command": ["serve"], "env": {}, "values": {}, "info": {}},
            }
            for label in labels
        },
    }


def typed(made):
    return documents.made(Manifest, made)


def cases():
    """A row, one of its kinds of source and the name of a source, by what a failure calls them."""
    for key in TABLE:
        kinds = ((INFO, key.info), (FLAG, key.flags), (VARIABLE, key.variables), (VALUE, key.values))
        for kind, names in (*kinds, ("path", key.manifest)):
            yield from ((f"{key.code}-{kind}-{name}", key, kind, name) for name in names)


def placed(made, label, kind, name, value):
    """The manifest with that source of a row set, and nothing else."""
    entry = made["backends"][label]
    scope, _, plain = name.rpartition("/")
    if scope:
        entry["backend"] = scope
    if kind == "path":
        place, dotted = (entry, name[1:]) if name.startswith(".") else (made, name)
        *parents, last = dotted.split(".")
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = KINDS.get(last, str)(value)
        return
    plain, _, means = plain.replace("*", "X").partition("=")
    if kind == FLAG:
        entry["engine"]["command"] += [plain] if means else [plain, value]
    else:
        entry["engine"][kind][plain] = value


@functools.cache
def measured(label, **about):
    """A cell, which nothing changes. It decides no figure: how repeats are merged has tests of its own."""
    return tuple(cells(label, 100, repeats=1, **about))


def stored(name, known, found):
    return Run(name, known, summary(*found), {})


def between_runs(key, kind, name, values):
    """The pair of a comparison of two runs of one engine, and what is printed of it."""
    runs = []
    for run, value in zip(("base", "new"), values, strict=True):
        made = manifest("vllm")
        if value is not None:
            placed(made, "vllm", kind, name, value)
        known = typed(made)
        runs.append(stored(run, known, with_manifest(measured("vllm", track="bf16"), known)))
    document = compare_runs(runs)
    return document.pairs[0], terminal(compared(document), 200, color=False)


def between_engines(kind, name, values):
    made = manifest("a", "b")
    for label, value in zip("ab", values, strict=True):
        if value is not None:
            placed(made, label, kind, name, value)
    both = [cell for label in "ab" for cell in measured(label)]
    return {entry.code: entry for entry in unequal(with_manifest(both, typed(made)))}


def without_argument(kind, name):
    return kind == FLAG and "=" in name


def judged_between_runs(key, kind, name):
    """What a comparison of two runs shows of the change, and what it should show."""
    values = (None, "given") if without_argument(kind, name) else ("16", "8")
    pair, text = between_runs(key, kind, name, values)
    word = {INFO: "info", FLAG: "flag", VARIABLE: "variable", VALUE: "value", "path": ""}[kind]
    what = f"{word} {name.replace('*', 'X')}" if key.several else key.title
    shown = [entry.matters for entry in pair.differences if entry.what == what]
    if name == ".backend":  # another backend is another question: no longer one engine
        return bool(shown), True
    if key.itself == "ignored":
        return (pair.differences, "differs" in text), ((), False)
    refused = key.itself == "refuses" and None not in values and key.code != "max-sequences"
    found = (shown, f"differs: {what}: " in text, bool(pair.refused), "not comparable" in text)
    return found, ([refused], True, refused, refused)


def judged_between_engines(key, kind, name):
    """What is unequal of two engines by the change, and by a value of one alone, and what should be."""
    found = between_engines(kind, name, ("16", "8"))
    one_sided = between_engines(kind, name, ("16", None))
    if without_argument(kind, name) or key.engines == "ignored":
        expected = {}
    else:
        first, second = (key.amount(name, value) for value in ("16", "8"))
        reached = key.code != "max-sequences"  # 4 in flight, 8 at once
        text = f"{key.title}: {first} (a), {second} (b)"
        expected = {key.code: (key.engines == "refuses" and reached, text)}
    alone = {} if key.engines == "ignored" else {"known-of-some": False}
    return (
        {code: (entry.matters, entry.text) for code, entry in found.items()},
        {code: entry.matters for code, entry in one_sided.items()},
    ), (expected, alone)


def wrong(judge, chosen):
    """What was found and expected of each case where the two differ."""
    judged = {label: judge(key, kind, name) for label, key, kind, name in chosen}
    assert len(judged) == len(chosen) > 300
    return {label: pair for label, pair in judged.items() if pair[0] != pair[1]}


def test_a_change_between_two_runs_of_an_engine_refuses_is_told_or_is_declared_harmless():
    assert wrong(judged_between_runs, list(cases())) == {}


def test_a_change_between_two_engines_refuses_is_told_or_is_declared_harmless():
    of_engines = [
        case for case in cases() if case[2] != "path" and case[1].cell is None and "/" not in case[3]
    ]
    assert wrong(judged_between_engines, of_engines) == {}


def test_five_conditions_that_changed_unseen():
    """Threads, number type, tensor parallel, memory share and tokens per step."""
    made = manifest("a", "b")
    mine = {
        "threads": 2,
        "dtype": "bfloat16",
        "tensor_parallel": 1,
        "memory_share": 0.9,
        "prefill_tokens": 2048,
    }
    theirs = {
        "threads": 1,
        "dtype": "float32",
        "tensor_parallel": 2,
        "memory_share": 0.5,
        "prefill_tokens": 512,
    }
    made["backends"]["a"]["engine"]["values"], made["backends"]["b"]["engine"]["values"] = mine, theirs
    found = unequal(with_manifest([*cells("a", 100), *cells("b", 100)], typed(made)))
    assert {entry.code: entry.matters for entry in found} == {
        "dtype": True,
        "threads": True,
        "tensor-parallel": True,
        "memory-share": False,
        "prefill-tokens": False,
    }


def test_number_types_of_one_width_are_told_and_do_not_refuse():
    assert not between_engines(VALUE, "dtype", ("bfloat16", "float16"))["dtype"].matters
    assert between_engines(VALUE, "dtype", ("bfloat16", "float32"))["dtype"].matters
    widths = {"bfloat16": "16", "half": "16", "f16": "16", "float": "32", "float32": "32", "fp8_e5m2": "8"}
    assert {name: width(name) for name in widths} == widths


def memory(kind, name, value):
    made = manifest("vllm")
    placed(made, "vllm", kind, name, value)
    return typed(made)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((FLAG, "--kv-cache-memory-bytes", "2147483648"), (VALUE, "kv_cache_gib", "2.0"), None),
        ((FLAG, "--kv-cache-memory-bytes", "3221225472"), (VALUE, "kv_cache_gib", "2.0"), "3 GiB | 2 GiB"),
        ((FLAG, "--num-gpu-blocks-override", "512"), (VARIABLE, "VLLM_CPU_KVCACHE_SPACE", "2"),
         "512 blocks | 2 GiB"),
        ((FLAG, "--kv-cache-memory-bytes", "25G"), (FLAG, "--kv-cache-memory-bytes", "26G"), "25G | 26G"),
        ((VALUE, "kv_cache_gib", "2.0"), (VALUE, "kv_cache_gib", "2"), None),
    ],
)  # fmt: skip
def test_memory_has_its_unit_and_is_compared_in_one(first, second, words):
    both = [memory(*first), memory(*second)]
    runs = [stored(name, known, cells("vllm", 100)) for name, known in zip("ab", both, strict=True)]
    found = [one for one in compare_runs(runs).pairs[0].differences if one.what == "memory of the KV cache"]
    assert [f"{one.baseline} | {one.new}" for one in found] == ([words] if words else [])
    assert not any("kv_cache_gib: 2" in one.text for one in compare_runs(runs).pairs[0].differences)
    labelled = [
        cell
        for label, known in zip("ab", both, strict=True)
        for cell in with_manifest([replace(one, label="vllm") for one in measured(label)], known)
    ]
    listed = unequal([replace(cell, label=cell.backend) for cell in labelled])
    expected = f"memory of the KV cache: {words.replace(' | ', ' (a), ')} (b)" if words else None
    assert next((one.text for one in listed if one.code == "kv-memory"), None) == expected


PART = {"seconds": 10, "start": 1, "end": 2.5}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"think_time_s": 0.0}, {"think_time_s": 0.3}, "think time: 0.3 s (the new one), 0 s (the baseline)"),
        ({"burstiness": 0.2}, {"burstiness": 4.0},
         "burstiness of arrivals: 4 (the new one), 0.2 (the baseline)"),
        ({"profile": []}, {"profile": [PART]},
         "course of the rate: 10 s 1× to 2.5× (the new one), constant (the baseline)"),
        ({"start": "spread"}, {"start": "together"},
         "start of the slots: together (the new one), spread (the baseline)"),
        ({"over_cap": "wait"}, {"over_cap": "drop"}, None),
        ({}, {"think_time_s": 0.3, "start": "spread", "profile": []}, None),  # an earlier version kept less
    ],
)  # fmt: skip
def test_another_load_is_refused_though_its_requests_are_the_same(first, second, words):
    point = {"kind": "concurrency", "value": 4}
    base, new = (
        stored(name, typed(manifest("vllm")), cells("vllm", 100, load=point | load))
        for name, load in (("base", first), ("new", second))
    )
    (pair,) = compare_runs([base, new]).pairs
    expected = ("same", None) if words is None else ("not comparable", words)
    assert {(one.verdict, one.why if words else None) for one in pair.findings} >= {expected}
    shown = [one.text for one in pair.differences]
    assert shown == (["requests above the cap: wait | drop"] if "over_cap" in first else [])


def test_goodput_by_other_limits_is_not_compared():
    def of(limit_ms):
        limit = {"metric": "ttft_ms", "share": "p95", "limit_ms": limit_ms, "within": 1.0, "met": True}
        return cells("vllm", 100, goodput_requests_per_s=limit_ms / 100, slo={"limits": [limit]})

    goodput = {"primary": "ttft_ms.p50", "metrics": ["goodput_requests_per_s"]}
    made = manifest("vllm")
    made["scenario"]["verdict"] = goodput
    runs = [stored(str(limit), typed(made), of(limit)) for limit in (500, 800)]
    found = {one.metric: one for one in compare_runs(runs).pairs[0].findings}
    assert found["ttft_ms.p50"].verdict == "same"
    assert found["goodput_requests_per_s"].verdict == "not comparable"
    words = "limits of goodput: ttft_ms.p95 800 ms (the new one), ttft_ms.p95 500 ms (the baseline)"
    assert found["goodput_requests_per_s"].why == words


def test_what_an_engine_chooses_by_itself_is_not_known():
    assert set(between_engines(INFO, "kv_cache_dtype", ("auto", "fp8"))) == {"known-of-some"}
    assert between_engines(INFO, "kv_cache_dtype", ("auto", "auto")) == {}


def test_a_variant_is_told_what_it_was_made_for():
    made = manifest("vllm", "vllm@x")
    made["backends"]["vllm@x"] |= {"backend": "vllm", "variant": "x"}
    for label, kind in (("vllm", "auto"), ("vllm@x", "fp8")):
        placed(made, label, FLAG, "--kv-cache-dtype", kind)
        placed(made, label, VALUE, "dtype", {"vllm": "bfloat16", "vllm@x": "float32"}[label])
    placed(made, "vllm@x", FLAG, "--enforce-eager=on", "")
    both = [
        *cells("vllm", 100, backend="vllm", variant=None),
        *cells("vllm@x", 100, backend="vllm", variant="x"),
    ]
    found = {entry.code: entry for entry in unequal(with_manifest(both, typed(made)))}
    assert set(found) == {"dtype", "kv-dtype", "eager"}
    assert not any(entry.matters for entry in found.values())
    assert found["eager"].text == "eager mode: not given (vllm), on (vllm@x)"


def test_of_a_row_with_several_sources_each_change_is_told():
    runs = []
    for name, first, second in (("base", "1", "2"), ("new", "3", "4")):
        made = manifest("vllm")
        placed(made, "vllm", FLAG, "--speculative-algorithm", first)
        placed(made, "vllm", FLAG, "--speculative-num-draft-tokens", second)
        placed(made, "vllm", VALUE, "threads", first)
        placed(made, "vllm", FLAG, "--threads", first)
        runs.append(stored(name, typed(made), cells("vllm", 100)))
    (pair,) = compare_runs(runs).pairs
    assert {one.what: (one.baseline, one.new) for one in pair.differences} == {
        "CPU threads": ("1", "3"),
        "speculative decoding": ("1", "3"),
        "flag --speculative-num-draft-tokens": ("2", "4"),
    }


def test_what_nobody_classified_is_told_where_it_differs():
    assert between_engines(FLAG, "--brand-new", ("1", "1")) == {}
    found = between_engines(FLAG, "--brand-new", ("1", None))
    assert {code: entry.text for code, entry in found.items()} == {
        "unclassified flag --brand-new": "flag --brand-new: 1 (a), not given (b)"
    }
    for kind, what in (
        (FLAG, "flag --brand-new"),
        (VALUE, "value brand_new"),
        (VARIABLE, "variable NEW_ONE"),
    ):
        runs = []
        for name, value in (("base", "1"), ("new", "2")):
            made = manifest("vllm")
            placed(made, "vllm", kind, what.split()[1], value)
            runs.append(stored(name, typed(made), with_manifest(cells("vllm", 100), typed(made))))
        assert f"differs: {what}: 1 | 2" in terminal(compared(compare_runs(runs)), 200, color=False)


def test_a_change_that_another_source_hides_is_told_all_the_same():
    """The engine's own word goes first; the flag that it did not follow still differs."""
    runs = []
    for name, size in (("base", "8"), ("new", "16")):
        made = manifest("vllm")
        placed(made, "vllm", INFO, "vllm_config.scheduler_config.max_num_seqs", "8")
        placed(made, "vllm", FLAG, "--max-num-seqs", size)
        runs.append(stored(name, typed(made), with_manifest(cells("vllm", 100), typed(made))))
    text = terminal(compared(compare_runs(runs)), 200, color=False)
    assert "differs: flag --max-num-seqs: 8 | 16" in text
    assert "sequences at once" not in text


def test_a_run_that_was_stored_before_the_engine_was_described_is_compared():
    old = manifest("vllm")
    old["backends"]["vllm"]["engine"] = None
    new = manifest("vllm")
    placed(new, "vllm", VALUE, "threads", 2)
    runs = [
        stored("base", typed(old), cells("vllm", 100)),
        stored("new", typed(new), with_manifest(cells("vllm", 100), typed(new))),
    ]
    (pair,) = compare_runs(runs).pairs
    assert pair.differences == ()
    assert pair.refused is None


@pytest.mark.parametrize("name", ENGINES)
def test_all_that_the_shipped_definitions_set_is_classified(name):
    definition = load_backend(name)
    unknown = set()
    for variant in (None, *definition.variants):
        made = apply_variant(definition, variant)
        images = [getattr(made.image, device) for device in DEVICES if getattr(made.image, device)]
        engine = made.engine
        words = [*engine.model_args, *engine.hub_model_args, *engine.vision_args, *engine.args]
        places = [place for place in (made.process, made.process_cuda, *images) if place]
        words += [word for place in places for word in place.args]
        tables = [made.engine.env, *(place.env for place in places)]
        found = [("flag", word.partition("=")[0]) for word in words if re.match(r"--?[a-zA-Z]", word)]
        found += [("variable", key) for table in tables for key in table]
        found += [("value", key) for key in made.engine.values]
        found += [("info", key) for info in made.server.info for key in info.keys]
        unknown |= {what for what in found if classified(*what, name) is None}
    assert unknown == set(), "harness/conditions/table.py: a row for each, or the row `interface`"


def test_no_two_rows_claim_one_source():
    for kind, attribute in (
        ("info", "info"),
        ("flag", "flags"),
        ("variable", "variables"),
        ("value", "values"),
    ):
        names = [name.partition("=")[0] for key in TABLE for name in getattr(key, attribute)]
        assert len(names) == len(set(names)), kind
    assert len({key.code for key in TABLE}) == len({key.title for key in TABLE}) == len(TABLE)


def test_every_row_says_why_and_has_a_source():
    for key in TABLE:
        assert key.why.endswith(".")
        shown_by_answers = key.code in ("normalisation", "truncation")
        assert key.named or key.manifest or key.cell or shown_by_answers


def test_values_that_follow_from_the_workload_are_told_even_of_one_backend():
    made = manifest("a", "b")
    made["scenario"]["engine_values"] = {"context_tokens": 512, "max_sequences": 4}
    for label in "ab":
        made["backends"][label]["engine"]["values"] = {"context_tokens": 512, "max_sequences": 4}
    alone = unequal(with_manifest(cells("a", 100), typed(made)))
    (entry,) = alone
    assert (entry.code, entry.labels, entry.matters) == ("tuned-to-workload", ("a",), False)
    assert entry.text == (
        "tuned to this workload: context per sequence 512 (set by the scenario), "
        "sequences at once 4 (set by the scenario)"
    )
    by_hand = copy.deepcopy(made)
    by_hand["options"]["engine_values"] = {"context_tokens": "512", "max_sequences": "4"}
    (entry,) = unequal(with_manifest(cells("a", 100), typed(by_hand)))
    assert entry.text == "tuned to this workload: sequences at once 4 (the highest concurrency)"
    plain = copy.deepcopy(made)
    del plain["scenario"]["engine_values"]
    assert unequal(with_manifest(cells("a", 100), typed(plain))) == ()


def test_values_that_a_search_found_are_known_as_searched():
    made = manifest("a")
    made["backends"]["a"]["engine"]["values"] = {"context_tokens": 512}
    made["backends"]["a"]["tuned"] = {"values": {"context_tokens": 512}}
    found = with_manifest(cells("a", 100), typed(made))
    assert {cell.conditions.searched for cell in found} == {("context",)}
    (entry,) = unequal(found)
    assert entry.text == "tuned to this workload: context per sequence 512 (bench tune)"


def test_a_cache_that_is_known_to_hold_the_prompts_is_told():
    made = manifest("a")
    made["scenario"]["cache"]["state"] = "primed"
    made["backends"]["a"]["engine"]["prefix_cache"] = {"enabled": True, "default": False}
    (entry,) = unequal(with_manifest(cells("a", 100), typed(made)))
    assert entry.text == (
        "tuned to this workload: prefix cache on (off by default), prefix cache primed at the start"
    )


def disagreeing(track_of_b, run=""):
    pair = {"a": "a", "b": "b", "compared": 58}
    pair["disagreement"] = {"answers": 30, "own": 2, "own_asked": 58, "p_value": 0.0, "beyond_load": True}
    made = with_manifest(
        [*cells("a", 100, track="bf16"), *cells("b", 130, track=track_of_b)],
        typed(manifest("a", "b")),
        documents.made(Agreement, pairs=[pair]),
    )
    return [replace(cell, label=run + cell.label) for cell in made]


@pytest.mark.parametrize("run", ["", "run/"])
def test_answers_that_disagree_refuse_throughput_of_the_same_weights(run):
    (entry,) = unequal(disagreeing("bf16", run))
    assert (entry.code, entry.labels, entry.matters) == ("agreement", (f"{run}a", f"{run}b"), True)
    assert entry.text == (
        "answers disagree: 30 of 58 are right from one of a and b only; load changes 2 of 58"
    )
    assert {"output_tokens_per_s", "requests_per_s", "tpot_ms"} <= set(entry.metrics)
    assert "ttft_ms" not in entry.metrics
    (told,) = unequal(disagreeing("q4", run))
    assert not told.matters


def test_a_verdict_on_throughput_over_disagreeing_answers_needs_force():
    made = disagreeing("bf16")
    metrics = ("ttft_ms.p50", "tpot_ms.p50")
    words = {}
    for forced in (False, True):
        rules = Rules(primary="ttft_ms.p50", metrics=metrics, forced=forced)
        words[forced] = {one.metric: one.verdict for one in compare(made, rules).comparison}
    assert words[False]["ttft_ms.p50"] == words[True]["ttft_ms.p50"] == "faster"
    assert words[False]["tpot_ms.p50"] == "not comparable"
    assert words[True]["tpot_ms.p50"] != "not comparable"


@pytest.mark.parametrize("option", ["--config", "--kv-transfer-config", "--dir"])
def test_where_bench_keeps_a_file_of_an_engine_is_no_difference(option):
    """In a container that is /bench; a start as a process has a folder of its own."""
    form = {
        "--config": "%s/options.yaml",
        "--kv-transfer-config": '{"model": "org/a", "path": "%s/kv"}',
        "--dir": "%s",
    }[option]

    def started(folder):
        made = manifest("vllm")
        made["backends"]["vllm"]["engine"]["command"] = ["serve", option, form % folder]
        return stored(folder, typed(made), cells("vllm", 100))

    folders = ["/tmp/bench-scratch-engine-ab12", "/var/tmp/bench-engine-cd34"]
    folders += ["/bench"] * (option != "--dir")
    for folder in folders[1:]:
        (pair,) = compare_runs([started(folders[0]), started(folder)]).pairs
        assert not pair.differences


@pytest.mark.parametrize(
    ("option", "name", "old", "new"),
    [
        (DRAFT, "speculative decoding", '{"model": "org/a", "n": 3}', '{"model": "org/a", "n": 5}'),
        (DRAFT, "speculative decoding", '{"model": "org/a"}', '{"model": "org/b"}'),
        ("--model", "flag --model", "/home/one/models/a", "/home/one/models/b"),
    ],
)
@pytest.mark.parametrize("joined", [True, False])
def test_an_option_that_differs_is_shown_by_its_own_name(option, name, old, new, joined):
    def with_option(value):
        made = manifest("vllm")
        given = [f"{option}={value}"] if joined else [option, value]
        made["backends"]["vllm"]["engine"]["command"] = ["serve", "--enforce-eager", *given]
        return stored(value, typed(made), cells("vllm", 100))

    (pair,) = compare_runs([with_option(old), with_option(new)]).pairs
    assert [one.what for one in pair.differences] == [name]
    kept = old.replace("/home/one/models/", "/opt/")
    (pair,) = compare_runs([with_option(old), with_option(kept)]).pairs
    assert not pair.differences


def test_a_setting_that_an_engine_reports_is_that_of_the_start_that_served_the_cell():
    """The manifest has the last start's."""
    name, made = "max_total_num_tokens", manifest("sglang")
    made["backends"]["sglang"]["engine"]["info"] = {name: 100}
    found = [{"engine": {"info": {name: tokens, "own": tokens}}} for tokens in (200, 150)]
    kept = [
        documents.changed(one, conditions=engine)
        for one, engine in zip(measured("sglang") * 3, [*found, {}], strict=True)
    ]
    about = [cell.conditions for cell in with_manifest(kept, typed(made))]
    assert [one.settings["kv-tokens"] for one in about] == ["200", "150", "100"]
    assert [one.unclassified for one in about] == [{"info own": "200"}, {"info own": "150"}, {}]


@pytest.mark.parametrize(("pairing", "refused"), [("blocks", False), ("duet", False), ("starts", True)])
def test_engines_that_swap_their_gpus_between_starts_are_compared(pairing, refused):
    """The manifest has the GPUs of the last start: one engine's were another one's in the start before."""
    made = manifest("a", "b")
    made["pairing"] = pairing
    for label, gpu in zip("ab", "01", strict=True):
        made["backends"][label]["engine"]["env"] = {"CUDA_VISIBLE_DEVICES": gpu}
    both = [cell for label in "ab" for cell in measured(label)]
    found = {entry.code: entry.matters for entry in unequal(with_manifest(both, typed(made)))}
    assert found.get("gpus-visible", False) is refused


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ((700.0, 300.0), "power limit of the GPUs: 700 W (a), 300 W (b)"),
        ((700.0, 700.0), None),
        ((700.0, None), None),  # not known
    ],
)
def test_a_lower_power_limit_is_told_next_to_the_verdict(limits, words):
    """`nvidia-smi -pl 300` makes a GPU slower, and no number of NVML's says so of an engine."""

    def gpu(limit):
        devices = [{"index": 0, "power_limit_w": 100.0}, {"index": 1, "power_limit_w": limit}]
        return {"engine_gpus": [1], "devices": devices}

    both = [
        documents.changed(cell, gpu=gpu(limit))
        for label, limit in zip("ab", limits, strict=True)
        for cell in measured(label)
    ]
    found = {entry.code: entry for entry in unequal(both)}
    entry = found.get("gpu-power-limit")
    assert (entry and entry.text, bool(entry and entry.matters)) == (words, False)
