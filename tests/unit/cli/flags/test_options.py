"""Flags that several commands share: what their values become, and a command line made of them."""

import argparse

import pytest

from harness.cli.flags import options
from harness.cli.flags.overrides import overrides_of
from harness.cli.flags.parsers import command_parser
from harness.cli.main import main
from harness.errors import SpecError
from harness.model import Prices
from harness.spec.scenario import load_scenario

RUN = ["--backends", "vllm", "--scenario", "chat"]


def parsed(*words):
    return command_parser("run").parse_args([*RUN, *words])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("0.5", 0.5),
        ("true", True),
        ("[1, 8]", [1, 8]),
        ('"8"', "8"),
        ("poisson", "poisson"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_value_of_set_is_read_as_in_the_file_and_a_bare_word_is_a_text(text, value):
    overrides = parsed("--set", f"load.x={text}").overrides
    assert overrides == {"load.x": value}
    assert type(overrides["load.x"]) is type(value)


def test_pairs_add_up_the_last_of_a_key_counts_and_engine_values_are_texts():
    given = parsed("--set", "a.b=1", "--set", "c.d=2", "--set", "a.b=3", "--engine-set", "threads=2")
    assert given.overrides == {"a.b": 3, "c.d": 2}
    assert given.engine_values == {"threads": "2"}
    assert parsed().overrides == {}, "one command line leaves nothing to the next"


def test_a_table_of_set_has_each_key_by_itself_and_replaces_those_before_it():
    given = parsed("--set", "a.b=1", "--set", "a={c=2,d=3}", "--set", "a.d=4", "--set", "ab.b=5")
    assert given.overrides == {"a": {"c": 2, "d": 3}, "a.c": 2, "a.d": 4, "ab.b": 5}
    again = parsed("--set", "a={b=1}", "--set", "a={c=2}")
    assert again.overrides == {"a": {"c": 2}, "a.c": 2}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "load.requests"], "--set: 'load.requests' is not KEY=VALUE"),
        (["--engine-set", "=2"], "--engine-set: '=2' is not KEY=VALUE"),
        (["--set", "load.rate=nan"], "--set load.rate=nan: value is not a finite number below 2**63"),
        (
            ["--set", "load.rate=[1, inf]"],
            "--set load.rate=[1, inf]: value.1 is not a finite number below 2**63",
        ),
        (["--gpus", "0,,1"], "--gpus 0,,1: needs different GPUs, separated by commas"),
        (["--gpus", "0-3"], "--gpus 0-3: '0-3' is not the index or UUID of a GPU"),
        (["--gpus", "0, 0"], "--gpus 0, 0: needs different GPUs, separated by commas"),
        (["--gpus", "GPU-a,0"], "--gpus GPU-a,0: mixes indices and UUIDs, which may name one GPU twice"),
    ],
)
def test_what_is_no_pair_or_no_list_is_named_with_its_flag(words, says):
    with pytest.raises(SpecError) as caught:
        parsed(*words)
    assert str(caught.value) == says


def test_options_of_a_run_are_those_of_the_flags_unless_they_are_given():
    arguments = parsed("--gpus", "GPU-1, GPU-7", "--seed", "9", "--repeats", "4", "--header", "X-A=b")
    found = options.run_options(arguments, seed=7, command=("bench", "run"))
    assert (found.gpus, found.seed, found.repeats) == (("GPU-1", "GPU-7"), 7, 4)
    assert (found.headers, found.command) == (("X-A=b",), ("bench", "run"))
    assert {type(value) for value in (found.gpus, found.headers, found.query)} == {tuple}


def test_flags_that_reach_a_server_can_be_written_again():
    parser = argparse.ArgumentParser()
    options.add_reach(parser)
    words = ["--model-name", "m", "--api-key-env", "KEY", "--header", "A=ENV:B", "--header", "C=d"]
    words += ["--query", "e=f", "--ca-cert", "vllm=ca.pem", "--client-cert", "me.pem"]
    arguments = parser.parse_args(words)
    reach = options.reach_flags(arguments)
    assert options.reach_words(reach) == words
    assert (reach.served_name, reach.api_key_env) == ("m", "KEY")
    assert (reach.headers, reach.query, reach.client_key) == (("A=ENV:B", "C=d"), ("e=f",), ())
    assert options.reach_words(options.reach_flags(parser.parse_args([]))) == []


def test_a_price_is_of_the_machine_or_of_each_gpu(tmp_path):
    assert options.prices(parsed()) is None
    machine = options.prices(parsed("--price-per-hour", "1.99eur"))
    assert machine == Prices("EUR", "--price-per-hour", machine_per_hour=1.99)
    gpu = options.prices(parsed("--price-per-gpu-hour", "2"))
    assert gpu == Prices("USD", "--price-per-gpu-hour", gpu_per_hour={"*": 2.0})
    with pytest.raises(SpecError, match="exclude each other"):
        options.prices(parsed("--price-per-hour", "1", "--prices", str(tmp_path / "prices.toml")))


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("shared-prefix", "--input-tokens", "32"), "--input-tokens: unknown key 'input_tokens' of this"),
        (("agent-sessions", "--output-tokens", "5"), "--output-tokens: unknown key 'output_tokens' of this"),
        (("few-shot", "--depth", "1k,2k"), "--depth: unknown key 'classes' of this"),
        (("fixed-length", "--trace", "x.jsonl"), "--trace: unknown key 'file' of this"),
        (("fixed-length", "--set", "prompts.file=x"), "prompts.file, as given: unknown key 'file'"),
    ],
)
def test_a_flag_that_the_prompts_have_no_key_for_is_named(capsys, words, where):
    assert main(["run", "--backends", "vllm", "--launch", "simulate", "--dry-run", "--scenario", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {where}")


def test_a_trace_next_to_a_scenario_of_made_prompts_says_what_to_leave_out(capsys):
    words = ("--backends", "vllm", "--scenario", "shared-prefix", "--trace", "x.jsonl")
    assert main(["run", *words, "--launch", "simulate"]) == 2
    assert capsys.readouterr().err.endswith("hint: leave out --scenario\n")


def test_a_length_for_a_scenario_of_several_names_one_with_a_single_length(capsys):
    words = ("--backends", "vllm", "--scenario", "users-10-50-100", "--output-tokens", "64")
    assert main(["run", *words, "--launch", "simulate"]) == 2
    assert "hint: its classes have lengths of their own; --scenario fixed-length" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--requests", "5", "--set", "load.requests=6"),
            "--set load.requests: another flag sets it otherwise",
        ),
        (("--rate", "1", "--set", "load.concurrency=[2]"), "--set load.concurrency: another flag sets it"),
        (("--depth", "1k", "--set", "prompts.classes=[]"), "--set prompts.classes: another flag sets it"),
        (
            ("--depth", "1k", "--set", "verdict.primary=by_kind.1k.ttft_ms.p50"),
            "verdict.primary, as given: the requests give no figures of 'by_kind.1k.ttft_ms.p50'",
        ),
        (
            ("--depth", "1k,2k", "--set", "verdict.metrics=['by_kind.4k.ttft_ms.p50']"),
            "verdict.metrics, as given: the requests give no figures of 'by_kind.4k.ttft_ms.p50'",
        ),
        (("--repeats", "3", "--set", "verdict.repeats=5"), "--set verdict.repeats: another flag sets it"),
        (("--api", "chat", "--set", "request.api=completions"), "--set request.api: another flag sets it"),
        (("--repeats", "3", "--set", "verdict={max_repeats=5}"), "--max-repeats: only applies to --repeats"),
        (("--set", "images={sizes=['8x8']}"), "images.sizes, as given: has no effect without images.counts"),
        (("--set", "lora.assignment=zipf"), "lora.assignment, as given: has no effect without lora.adapters"),
        (
            ("--requests", "5", "--set", "load={concurrency=[1],requests=6}"),
            "--set load.requests: another flag",
        ),
        (("--duration", "nan"), "load.duration_s, as given: must be a finite number above 0, not nan"),
        (("--repeats", "1000000000000"), "--repeats: must be at most 10,000"),
        (("--pairing", "blocks", "--blocks", "1000000000000"), "--blocks: must be at most 10,000"),
        (("--set", "verdict.repeats=1000000000000"), "verdict.repeats, as given: must be at most 10,000"),
        (
            ("--rate", "5", "--find-capacity", "--set", "slo.ttft_ms.p95=1", "--probe-seconds", "1e300"),
            "--probe-seconds: must be at most 31,536,000",
        ),
        (
            ("--rate", "5", "--find-capacity", "--set", "slo.ttft_ms.p95=1", "--probe-seconds", "1e7"),
            "--find-capacity: a probe of the lowest load has more than 10,000,000 requests",
        ),
    ],
)
def test_what_a_plan_cannot_be_is_refused_by_the_dry_run(capsys, words, says):
    command = ("run", "--backends", "vllm,sglang", "--launch", "simulate", "--dry-run")
    assert main([*command, "--scenario", "context-depth", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {says}")


def test_what_depths_imply_is_not_laid_over_what_set_says():
    given = overrides_of(parsed("--depth", "1k", "--set", "verdict.primary=tpot_ms.p50"))
    assert given["verdict.primary"] == "tpot_ms.p50"
    assert given["engine_values.context_tokens"] > 1024


def test_what_depths_imply_stays_next_to_a_table_of_set_that_does_not_name_it():
    tables = ("--set", "verdict={min_repeats=5}", "--set", "engine_values={threads=2}")
    given = overrides_of(parsed("--depth", "1k,2k", *tables))
    assert list(given)[-3:] == ["engine_values.context_tokens", "verdict.primary", "prompts.classes"]
    whole = overrides_of(parsed("--depth", "1k", "--set", "verdict={primary='tpot_ms.p50'}"))
    assert whole["verdict.primary"] == whole["verdict"]["primary"] == "tpot_ms.p50"


def test_a_single_depth_is_ranked_by_all_requests_and_several_by_the_deepest():
    """A single class of requests has no figures of its own."""
    deepest = overrides_of(parsed("--depth", "2k,1k"))
    assert deepest["verdict.primary"] == "by_kind.2k.ttft_ms.p50"
    assert "verdict.metrics" not in deepest
    single = load_scenario("context-depth", overrides_of(parsed("--depth", "1k"))).verdict
    assert single.primary == "ttft_ms.p50"


def test_a_capacity_is_looked_for_at_loads_whose_longest_probe_would_be_very_long(capsys):
    command = ("run", "--backends", "vllm", "--launch", "simulate", "--dry-run", "--find-capacity")
    assert main([*command, "--scenario", "few-shot", "--rate", "700", "--set", "slo.ttft_ms.p95=500"]) == 0
    assert capsys.readouterr().err == ""
