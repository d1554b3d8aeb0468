"""`--variant NAME=WORDS`: variants that a command line declares."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines.start.command import build_command, configured
from harness.engines.start.launch_choice import resolve_launch
from harness.errors import SpecError
from harness.spec.backend_refs import load_backend, parse_backend_list
from harness.spec.own_variants import anchored, with_variant


def only(text, **own):
    (ref,) = parse_backend_list(text, (), own)
    return ref


def started(ref):
    definition = replace(ref.definition, engine=replace(ref.definition.engine, model_args=()))
    return build_command(configured(definition, None, {}), env=None, weights=None, port=1, scratch=Path("/s"))


def after(flag, argv):
    return [argv[at + 1] for at, word in enumerate(argv) if word == flag]


def test_a_flag_that_stands_for_a_value_sets_it_and_is_given_once():
    ref = only("llamacpp@a", a="./llama-server --ubatch-size=64 --threads 3 -ub 32 --no-mmap")
    assert ref.label == "llamacpp@a"
    assert ref.definition.engine.values["micro_batch_tokens"] == 64
    argv = started(ref).argv
    assert after("--ubatch-size", argv) == ["64"]
    assert after("--threads", argv) == ["3"]
    assert argv[-3:] == ("-ub", "32", "--no-mmap")


def test_settings_before_the_flags_are_engine_values_and_variables():
    ref = only("llamacpp@a", a="GGML_X='a b' micro_batch_tokens=128 cache_ram_mib=0 ./llama-server")
    assert {ref.definition.engine.values[key] for key in ("micro_batch_tokens", "cache_ram_mib")} == {128, 0}
    assert started(ref).env["GGML_X"] == "a b"


def test_a_program_replaces_that_of_every_process_and_no_container_runs_in_its_place():
    ref = only("llamacpp@a", a="/builds/llama-server")
    program = ("/builds/llama-server",)
    for process in (ref.definition.process, ref.definition.process_cuda):
        assert (process.program, process.install) == (program, None)
    for device in ("cpu", "cuda"):
        assert resolve_launch(ref, "auto", device).mode == "process"
    with pytest.raises(SpecError, match=r"has no \[compose\]"):
        resolve_launch(ref, "compose", "cuda")


def test_a_shipped_variant_with_a_program_is_no_container_either(monkeypatch):
    monkeypatch.setattr("harness.engines.start.launch_choice.has_docker", lambda: True)
    assert resolve_launch(only("llamacpp@built"), "auto", "cuda").mode == "process"
    assert resolve_launch(only("llamacpp"), "auto", "cuda").mode == "compose"


def test_a_program_in_the_engines_own_environment_keeps_that():
    ref = only("vllm@a", a="numactl {bin}/vllm serve --enforce-eager")
    assert ref.definition.process.install == load_backend("vllm").process.install
    assert ref.definition.process.program == ("numactl", "{bin}/vllm", "serve")


def test_a_path_of_a_program_is_kept_whole_for_a_run_that_is_resumed_elsewhere():
    assert anchored("A='b c' x=1 build/server serve --a=b/c 'd e'") == (
        f"'A=b c' x=1 {Path.cwd()}/build/server serve --a=b/c 'd e'"
    )
    assert anchored("~/server") == str(Path.home() / "server")
    for words in ("llama-server --a b/c", "{bin}/vllm serve", "--a 'open", "A=b/c", ""):
        assert anchored(words) == words


def test_json_of_a_flag_stays_one_word():
    config = '{"method": "ngram"}'
    ref = only("vllm@a", a=f"--speculative-config '{config}'")
    assert ref.definition.engine.args[-2:] == ("--speculative-config", config)


@pytest.mark.parametrize(
    ("backend", "name", "words", "error"),
    [
        ("llamacpp@a", "a", "micro_batch=3", "has no value 'micro_batch'"),
        ("llamacpp@a", "a", "threads=many", "threads is a whole number, not 'many'"),
        ("llamacpp@a", "a", "--ubatch-size", "micro_batch_tokens is a whole number, not ''"),
        ("llamacpp@a", "a", "--x 1 threads=2", "'threads=2' stands after a program or a flag"),
        ("llamacpp@a", "a", "/bin/server threads=2 --x", "'threads=2' stands after a program or a flag"),
        ("llamacpp@a", "a", "--x {modl}", "unknown placeholder '{modl}'"),
        ("llamacpp@a", "a", "--x 'open", "cannot be split into words"),
        ("llamacpp@a", "a", " ", "changes nothing"),
        ("llamacpp@built", "built", "--x", "has a variant of this name"),
        ("llamacpp", "a", "--x", "no backend has it"),
        ("llamacpp@chat", "chat", "--x", "cannot name a variant"),
        ("llamacpp@tuned", "tuned", "--x", "cannot name a variant"),
        ("llamacpp@a.toml", "a.toml", "--x", "cannot name a variant"),
        ("llamacpp@a=http://127.0.0.1:1", "a", "--x", "keeps the settings that it was started with"),
    ],
)
def test_what_cannot_be_meant_is_an_error(backend, name, words, error):
    with pytest.raises(SpecError, match=error):
        only(backend, **{name: words})


def test_the_value_of_a_flag_may_look_like_an_engine_value():
    assert only("vllm@a", a="--x threads=2 --y b=/c d=/e").definition.engine.args[-5:] == (
        "--x", "threads=2", "--y", "b=/c", "d=/e",
    )  # fmt: skip


def test_of_several_backends_each_may_have_the_variant():
    refs = parse_backend_list("vllm@a,sglang@a,llamacpp", (), {"a": "max_sequences=4"})
    assert [ref.definition.engine.values["max_sequences"] for ref in refs] == [4, 4, 8]


def test_the_definition_itself_is_left_alone():
    shipped = load_backend("llamacpp")
    assert "a" in with_variant(shipped, "a", "--x").variants
    assert "a" not in load_backend("llamacpp").variants
