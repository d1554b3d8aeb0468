"""Options that no run can be made of."""

from dataclasses import replace

import pytest

from harness.errors import SpecError
from harness.run.setup.mismatches import check_without_engine
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.backend_refs import parse_backend_list


@pytest.mark.parametrize("seed", [2**63, -(2**63)])
def test_a_seed_that_no_reader_of_the_manifest_takes_is_refused(seed):
    with pytest.raises(SpecError, match=f"^--seed: must be a number of 64 bits, not {seed}$"):
        prepare(RunOptions("fixed-length", "truth", seed=seed))


def test_every_seed_of_64_bits_is_taken():
    for seed in (2**63 - 1, 1 - 2**63):
        assert prepare(RunOptions("fixed-length", "truth", seed=seed)).options.seed == seed


@pytest.mark.parametrize("rate", [float("nan"), -1, 1e-12, 101])
def test_a_sampling_rate_that_no_clock_keeps_is_refused(rate):
    with pytest.raises(SpecError, match=f"^--sample-hz: must be from 0.01 to 100, or 0 .* not {rate}$"):
        prepare(RunOptions("fixed-length", "truth", sample_hz=rate))


@pytest.mark.parametrize("backends", ["truth", "openai=http://127.0.0.1:9", "truth,truth@no-prefix-cache"])
def test_gpus_are_refused_where_no_engine_is_started_on_one(backends):
    """A run that was begun with them is resumed: only the command line is refused."""
    made = prepare(RunOptions("fixed-length", backends, gpus=("7",), profile="cpu"))
    with pytest.raises(SpecError, match="has no effect on servers that run already, and on simulated ones"):
        check_without_engine(made.options, [backend.ref for backend in made.backends])
    check_without_engine(replace(made.options, gpus=()), [backend.ref for backend in made.backends])
    check_without_engine(made.options, parse_backend_list(f"{backends},vllm"))


@pytest.mark.parametrize(
    ("backends", "given", "says"),
    [
        ("truth", {"gpu_wait_s": 30.0}, "--gpu-wait: has no effect on servers that run already, and on"),
        ("openai=http://127.0.0.1:9", {"model": "qwen3-8b"}, "--model: has no effect on servers that run"),
        ("vllm", {"gpus": ("1",), "device": "cpu"}, "--gpus: contradicts --device cpu"),
    ],
)
def test_a_flag_of_engines_is_refused_where_it_has_no_effect(backends, given, says):
    refs = parse_backend_list(backends)
    with pytest.raises(SpecError, match=f"^{says}"):
        check_without_engine(RunOptions("fixed-length", backends, **given), refs)
    started = [*refs, *parse_backend_list("llamacpp")]
    check_without_engine(RunOptions("fixed-length", backends, **{**given, "device": "auto"}), started)


@pytest.mark.parametrize(
    ("scenario", "given", "says"),
    [
        ("embed-queries", {"accuracy": 600}, "--accuracy: questions are answered by text, and these answers"),
        (
            "fixed-length",
            {"find_capacity": True, "overrides": {"verdict.between_repeats": "keep", "slo.ttft_ms.p95": 500}},
            "--between-repeats: each search of a capacity has a start of its own",
        ),
    ],
)
def test_what_a_run_of_one_backend_cannot_give_is_refused(scenario, given, says):
    with pytest.raises(SpecError, match=f"^{says}"):
        prepare(RunOptions(scenario, "vllm", launch="simulate", **given))
    if "find_capacity" in given:
        running = "vllm=http://127.0.0.1:9"
        assert prepare(RunOptions(scenario, running, **given)).backends[0].between == "keep"


@pytest.mark.parametrize(("extra", "repeats"), [({}, 5), ({"find_capacity": True}, 5), ({"repeats": 2}, 2)])
def test_repeats_that_set_asks_for_are_those_of_one_backend_and_of_a_search_too(extra, repeats):
    overrides = {"verdict.repeats": 5, "slo.ttft_ms.p95": 500}
    assert prepare(RunOptions("fixed-length", "truth", overrides=overrides, **extra)).repeats == repeats


def test_the_device_of_servers_that_run_already_chooses_the_sizes():
    given = RunOptions("fixed-length", "openai=http://127.0.0.1:9", device="cuda")
    assert prepare(given).options.profile == "gpu"


def test_a_value_of_the_scenario_is_not_named_after_a_flag():
    wrong = {"engine_values.max_sequences": "many"}
    with pytest.raises(SpecError, match=r"^engine_values\.max_sequences=many: 'many' is not a whole number$"):
        prepare(RunOptions("fixed-length", "truth", overrides=wrong))
    with pytest.raises(SpecError, match=r"^--engine-set max_sequences=many: 'many' is not"):
        prepare(RunOptions("fixed-length", "truth", overrides=wrong, engine_values={"max_sequences": "many"}))


def test_a_value_of_a_variant_is_not_named_after_a_flag_that_was_not_given():
    wrong = RunOptions("fixed-length", "truth@a", variants={"a": "max_sequences=0"})
    with pytest.raises(SpecError, match=r"^truth@a: max_sequences=0: must be at least 1, not 0$"):
        prepare(wrong)


def test_a_value_of_the_scenario_that_no_definition_has_is_refused_and_of_another_is_left_out():
    wrong = RunOptions("fixed-length", "truth", overrides={"engine_values.max_sequencess": 4})
    with pytest.raises(SpecError, match=r"^fixed-length:engine_values: no backend has an engine") as caught:
        prepare(wrong)
    assert caught.value.hint == "did you mean 'max_sequences'?"
    other = prepare(replace(wrong, overrides={"engine_values.kv_cache_gib": 4}))
    assert "kv_cache_gib" not in other.backends[0].engine_values


def test_a_definition_that_cannot_be_read_stops_no_run_of_another(tmp_path, monkeypatch):
    """A key of the scenario may be the broken one's."""
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends" / "broken.toml").write_text("broken = [")
    monkeypatch.chdir(tmp_path)
    options = RunOptions("fixed-length", "truth", overrides={"engine_values.kv_cache_gib": 4})
    assert prepare(options).labels == ("truth",)


def test_a_name_of_the_user_s_own_stays_next_to_another_server_of_that_engine():
    backends = "openai=openai=http://h:1,openai=http://h:2"
    assert prepare(RunOptions("fixed-length", backends)).labels == ("openai", "openai_h_2")


def test_one_server_under_two_names_is_refused_unless_something_makes_it_two():
    """Else its noise is judged as a difference."""
    twice = RunOptions("fixed-length", "a=vllm=http://h:1,b=vllm=http://h:1")
    with pytest.raises(SpecError, match=r"^--backends b: is the same server as 'a'\n") as caught:
        prepare(twice)
    assert "--aa" in caught.value.hint
    spellings = ("localhost:1", "[::1]:1", "127.0.0.1:1/v1/")
    for first, second in zip(spellings, (*spellings[1:], spellings[0]), strict=True):
        with pytest.raises(SpecError, match="is the same server as 'a'"):
            prepare(replace(twice, backends=f"a=vllm=http://{first},b=vllm=http://{second}"))
    with pytest.raises(SpecError, match="is the same server as 'a'"):
        prepare(replace(twice, backends="a=vllm=http://h:1+http://h:2,b=vllm=http://h:2+http://h:1"))
    assert prepare(replace(twice, served_name="a=one,b=two")).labels == ("a", "b")
    assert prepare(replace(twice, headers=("b=x-route=2",))).labels == ("a", "b")
    assert prepare(replace(twice, backends="a=vllm=http://h:1,b=vllm@responses=http://h:1")).cells
    assert prepare(replace(twice, backends="vllm=http://h:1", aa=True)).labels == ("vllm#a", "vllm#b")


def test_replicas_of_any_number_make_a_name_that_a_folder_can_have():
    urls = ["+".join(f"http://127.0.0.1:{port}" for port in range(first, first + 20)) for first in (1, 21)]
    labels = prepare(RunOptions("fixed-length", ",".join(f"openai={url}" for url in urls))).labels
    assert len(set(labels)) == 2
    assert max(map(len, labels)) <= 200


def test_a_value_is_of_engines_that_are_started():
    running, value = "vllm=http://127.0.0.1:9", {"dtype": "float32"}
    with pytest.raises(SpecError, match=r"^--engine-set: a running server keeps the values that it was"):
        prepare(RunOptions("fixed-length", running, engine_values=value))
    with pytest.raises(SpecError, match=r"^--engine-set: no backend takes 'dtype' as it is started here"):
        prepare(RunOptions("fixed-length", f"{running},truth", engine_values=value))
    assert prepare(RunOptions("fixed-length", f"{running},vllm@eager", engine_values=value, device="cpu"))


def test_adapters_need_weights_on_this_machine():
    given = RunOptions("lora-mix", "llamacpp", model="qwen2.5-7b-instruct", device="cpu", profile="cpu")
    with pytest.raises(SpecError, match=r"and llamacpp fetches bartowski/\S+ itself") as caught:
        prepare(given)
    assert caught.value.where == "lora.adapters"
    assert prepare(replace(given, backends="llamacpp@base-model")).scenario.lora.adapters
    assert prepare(replace(given, model="random-llama-tiny")).scenario.lora.adapters
    assert prepare(replace(given, launch="simulate", device="auto")).scenario.lora.adapters


def test_the_context_of_a_model_that_a_running_server_does_not_serve_is_no_limit():
    """The server has a model of its own, whatever bench would serve."""
    long = {"engine_values.context_tokens": 131_072}
    running = prepare(RunOptions("fixed-length", "vllm=http://127.0.0.1:9", overrides=long))
    assert running.backends[0].engine_values["context_tokens"] == "131072"
    with pytest.raises(SpecError, match=r"^backend vllm: context_tokens is 131072, but the model's context"):
        prepare(RunOptions("fixed-length", "vllm", overrides=long, launch="process"))


def test_a_model_without_a_name_is_not_the_default_one():
    with pytest.raises(SpecError, match=r"^--model: unknown model ''"):
        prepare(RunOptions("fixed-length", "llamacpp", model=""))


def test_a_value_for_a_name_of_backends_is_for_each_of_its_apis():
    options = RunOptions("fixed-length", "a=vllm=http://u,b=vllm=http://v", apis=("chat", "responses"))
    headers = ("a=x-a=1", "a@responses=x-a=2", "b=x-b=3")
    options = replace(options, served_name="a=team/model", headers=headers, metrics_urls=("a=http://m",))
    chat, responses, *others = (backend.ref for backend in prepare(options).backends)
    assert chat.reach.served_name == responses.reach.served_name == "team/model"
    assert chat.metrics_urls == responses.metrics_urls == ("http://m",)
    assert [ref.reach.headers[0].text for ref in (chat, responses, *others)] == ["1", "2", "3", "3"]
    assert {ref.metrics_urls for ref in others} == {()}


def test_a_label_with_an_api_of_its_own_gets_no_value_of_another_server():
    options = RunOptions("fixed-length", "vllm=http://u,vllm@responses=http://v", headers=("vllm=x-a=1",))
    assert [len(backend.ref.reach.headers) for backend in prepare(options).backends] == [1, 0]


def test_metrics_of_the_only_server_need_no_name_whichever_apis_it_is_asked_in():
    options = RunOptions(
        "fixed-length", "vllm=http://u", apis=("chat", "messages"), metrics_urls=("http://m",)
    )
    assert [backend.ref.metrics_urls for backend in prepare(options).backends] == [("http://m",)] * 2


@pytest.mark.parametrize(
    ("name", "struck"), [("vllm", [1, 1, 1, 1]), ("vllm@messages", [0, 0, 1, 1]), ("sglang", None)]
)
def test_a_fault_strikes_a_backend_in_each_of_its_apis(name, struck):
    options = RunOptions("fixed-length", "vllm", launch="simulate", apis=("responses", "messages"), aa=True)
    options = replace(options, simulate_faults=(f"{name}=503",))
    if struck is None:
        with pytest.raises(SpecError) as caught:
            prepare(options)
        assert caught.value.hint == "known: vllm, vllm@messages, vllm@responses"
        return
    args = [backend.ref.definition.engine.args for backend in prepare(options).backends]
    assert [arg.count("503") for arg in args] == struck


def test_a_value_of_a_variant_replaces_that_of_the_scenario():
    """A scenario sets them for all engines alike; who writes a variant asks for another one."""
    options = RunOptions(
        "batch-1-8-32", "llamacpp,llamacpp@a", variants={"a": "context_tokens=1500"}, profile="gpu"
    )
    values = [backend.engine_values["context_tokens"] for backend in prepare(options).backends]
    assert values == ["1024", "1500"]


def test_a_value_of_a_variant_that_is_set_for_all_backends_too_is_refused():
    options = RunOptions("fixed-length", "llamacpp@a", variants={"a": "--threads 1"})
    prepare(replace(options, engine_values={"max_sequences": "4"}))
    with pytest.raises(SpecError, match="--engine-set sets it too, for all backends"):
        prepare(replace(options, engine_values={"threads": "2"}))
