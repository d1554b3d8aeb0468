"""Dispatch, before any command begins: what is mistyped, asked for in JSON, or ended by force."""

import json

import pytest

from harness.cli import main as entry
from harness.cli.main import main
from harness.errors import ExitCode


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (["rn"], "unknown command 'rn'", "did you mean 'run'?"),
        (["frobnicate"], "unknown command 'frobnicate'", "`bench --help` lists them"),
        (["me:secret@h:1"], "unknown command 'h:1'", "`bench --help` lists them"),
        (["vllm@bf16"], "unknown command 'vllm@bf16'", "`bench --help` lists them"),
        (["probe", "a", "http://me:sec@ret@h:1"], "argument 'http://***@h:1'", "`bench probe --help`"),
        (["probe", "a", "http://me:secret@h:1"], "argument 'http://***@h:1'", "`bench probe --help`"),
        (["report", "https://me:secret@h/x"], "https://***@h/x: no such run", "`bench list runs` shows"),
        (["list", "scenarios", "--jsn"], "unknown option '--jsn'", "did you mean '--json'?"),
        (["-v", "list"], "unknown option '-v'", "it follows the command: `bench list -v`"),
        (["run", "--scenaro", "x"], "unknown option '--scenaro'", "did you mean '--scenario'?"),
        (["run", "--url", "x"], "unknown option '--url'", "here --url is --backends NAME=URL"),
        (
            ["run", "--max-concurrency", "8"],
            "unknown option '--max-concurrency'",
            "here --max-concurrency is --concurrency N,…",
        ),
        (
            ["http://h:1", "--request-rate=8"],
            "unknown option '--request-rate'",
            "there --request-rate is --rate R",
        ),
        (["--url", "http://h:1"], "unknown option '--url'", "`bench URL` takes an address"),
        (
            ["run", "--base-url", "x", "--num-prompts=9", "--tokenizer", "y"],
            "unknown option '--base-url'",
            "NAME=URL, --num-prompts is --requests N, --tokenizer is not needed; flags of other tools",
        ),
        (["truth", "--itl-ms", "5"], "unknown option '--itl-ms'", "here --itl-ms is --gap-ms MS"),
        (
            ["tune", "vllm", "--scenario", "x", "--variant", "fast:a=b"],
            "unknown option '--variant'",
            "here --variant is BACKEND@VARIANT of the definition, or --engine-set KEY=VALUE for each value",
        ),
        (["run", "--rate", "8", "--concurrency", "4"], "not allowed with", "--set load.max_in_flight=N"),
        (["run", "--timeout", "9"], "unknown option '--timeout'", "keys of --set: https://"),
        (["run", "--num-prompts", "9"], "unknown option '--num-prompts'", "coming-from.html"),
        (["run", "--slo", "x"], "unknown option '--slo'", "`bench run --help` lists them"),
        (["http://h:1", "--slo", "x"], "unknown option '--slo'", "`bench URL --help` lists them"),
        (["http://h:1", "--concurrency", "50"], "unknown option '--concurrency'", "`bench run` has it: "),
        (["http://h:1", "--set", "slo.ttft_ms.p99=500"], "unknown option '--set'", "that `bench URL` prints"),
        (
            ["http://h:1", "--trace", "x"],
            "unknown option '--trace'",
            "bench run --backends openai=URL --trace",
        ),
        (["http://h:1", "--users", "50"], "unknown option '--users'", "`bench URL --help` lists them"),
        (["report", "--out-dir", "x"], "unknown option '--out-dir'", "did you mean '--out'?"),
        (["engines", "install", "vllm", "--device", "gpu"], "'gpu' is not", "hint: known: auto, cpu, cuda"),
        (["http://h:1", "--api-key", "x"], "unknown option '--api-key'", "did you mean '--api-key-env'?"),
        (["list", "scenario"], "'scenario' is not one of its values", "did you mean 'scenarios'?"),
        (["engines", "install", "vllm", "--device", "rocm"], "--device: 'rocm' is not", "auto, cpu, cuda"),
        (["engines", "install", "vllm", "--devic", "cpu"], "unknown option '--devic'", "'--device'"),
        (
            ["kit", "make", "--for", "x", "--out", "x", "--dry-run"],
            "unknown option '--dry-run'",
            "`bench kit make --help` lists them",
        ),
        (["version"], "unknown command 'version'", "did you mean '--version'?"),
        (["gate", "a", "b"], "unknown command 'gate'", "`bench compare BASELINE RUN --fail-on slower`"),
        (["diff"], "unknown command 'diff'", "`bench compare BASELINE RUN` says what changed"),
        (["benchmark"], "unknown command 'benchmark'", "`bench URL` measures a server"),
        (["help"], "unknown command 'help'", "did you mean '--help'?"),
        (["[::1]:x"], "unknown command '[::1]:x'", "`bench --help` lists them"),
        (["[::1]:1", "--slo", "x"], "unknown option '--slo'", "`bench URL --help` lists them"),
        (["report", ""], "the name of a run is empty", "`bench list runs` shows"),
        (["compare", "", ""], "the name of a run is empty", "`bench list runs` shows"),
        (["run", "--scenario", "first-look.toml", "--backends", "vllm"], "no such file", "'first-look'?"),
        (["kit", "make", "--dry-run"], "unknown option '--dry-run'", "`bench kit make --help` lists them"),
        (["run", "http://h:1"], "are required: --backends", "`bench http://h:1` measures it"),
        (["run", "http://h:1"], "are required: --backends", "--backends openai=http://h:1"),
        (["run", "vllm=http://h:1"], "are required: --backends", "--backends vllm=http://h:1"),
        (["run", "--backends", "vllm=http://h:1", "--set", "x"], "--set: 'x' is not KEY=VALUE", ""),
        (["run", "--backends", "vllm=http://h:1", "--rate", "x"], "--rate: 'x' is not", "`bench run --help`"),
        (["run", "http://me:secret@h:1"], "are required: --backends", "openai=http://***@h:1"),
        (["run", "--backends", "vLLM", "--scenario", "first-look"], "unknown backend 'vLLM'", "mean 'vllm'?"),
        (
            ["kit", "join", "part", "--model", "x"],
            "unknown option '--model'",
            "known: --help, --json, --out, -h",
        ),
        (
            ["completion", "bash", "--", "--out=x"],
            "unexpected argument '--out=x'",
            "`bench completion --help`",
        ),
        (
            ["nightly", "cpu", "--budget", "x"],
            "argument --budget: 'x' is not a number",
            "`bench nightly --help`",
        ),
        (
            ["logs", "a", "--tail", "1.5"],
            "argument --tail: '1.5' is not a whole number",
            "`bench logs --help`",
        ),
        (
            ["run", "--backends", "vllm,", "sglang", "--scenario", "x"],
            "unexpected argument 'sglang'",
            "a list has commas and no spaces: --backends vllm,sglang",
        ),
        (
            ["run", "--backends", "vllm", "--concurrency", "4", "8"],
            "unexpected argument '8'",
            "--concurrency 4,8",
        ),
        (["run", "--backends", "vllm", "--seed", "4", "8"], "unexpected argument '8'", "`bench run --help`"),
        (["resume"], "arguments are required: RUN", "`bench list runs` lists those in results"),
        (
            ["publish"],
            "arguments are required: RUN, --to",
            "`bench list runs` lists those in results; `bench publish --help` lists the options",
        ),
        (["logs"], "arguments are required: BACKEND", "hint: `bench list backends` lists the names\n"),
        (["nightly"], "arguments are required: SUITE", "hint: `bench list suites` lists the names\n"),
        (["cluster"], "arguments are required: ACTION", "`bench cluster --help` lists the options"),
        (["init"], "arguments are required: KIND, NAME", "`bench init --help` lists the options"),
        (["completion", "csh"], "argument SHELL: 'csh' is not one of its values", "known: bash, fish, zsh"),
        (["verify", "a", "b", "c\udcff"], "is not UTF-8 text", "rename the file"),
        (["run", "--seed=--"], "argument --seed: expected one argument", "`bench run --help`"),
        (["run", "--backends=--"], "argument --backends: expected one argument", "`bench run --help`"),
        (["run", "--token", "x"], "--token: a key on the command line", "--api-key-env"),
    ],
)
def test_a_mistake_names_what_was_meant(capsys, words, says, hint):
    assert main(words) == ExitCode.USAGE
    said = capsys.readouterr()
    assert says in said.err
    assert hint in said.err
    assert said.out == ""


def test_where_documents_are_asked_for_an_error_is_one_too(capsys):
    assert main(["list", "scenarios", "--json", "--nope"]) == ExitCode.USAGE
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert document["exit_code"] == ExitCode.USAGE
    assert "unknown option '--nope'" in document["error"]
    assert "error: " in said.err


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
        (MemoryError(), ExitCode.SETUP, "error: "),
        (OSError(28, "No space left on device", "/full"), ExitCode.SETUP, "/full: no space left"),
    ],
)
def test_what_a_command_ends_with_is_an_exit_code(capsys, monkeypatch, raised, code, says):
    def end(_given):
        raise raised

    monkeypatch.setattr(entry, "_run_command", end)
    assert main(["list"]) == code
    assert says in capsys.readouterr().err


def test_a_bug_is_no_error_of_the_user(monkeypatch):
    def bug(_given):
        raise ZeroDivisionError

    monkeypatch.setattr(entry, "_run_command", bug)
    with pytest.raises(ZeroDivisionError):
        main(["list"])


def test_bench_alone_says_where_to_start(capsys):
    assert main([]) == ExitCode.USAGE
    said = capsys.readouterr().out
    for start in ("bench http://", "bench run ", "bench list scenarios"):
        assert start in said
    assert len(said.splitlines()) < 12


def test_help_leads_to_the_page_that_lists_questions(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert (
        "\nQuestions, by page: https://llm-servebench.github.io/llm-servebench/index.html"
        in capsys.readouterr().out
    )
