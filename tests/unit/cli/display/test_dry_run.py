"""What `bench run --dry-run` says of a plan, before anything is started."""

import json
import re

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import as_json
from harness.store import RunFolder
from tests.bench.audit.gates import change_json
from tests.factories import documents
from tests.factories.runs import TWO, Shape, copy_of, edit_summary, make_run

SEARCH = ["--find-capacity", "--rate", "1,64", "--set", "slo.ttft_ms.p95=500"]
SIMULATED = ["--launch", "simulate", "--set", "load.warmup_requests=0", "--dry-run"]
RUN = ["run", "--scenario", "shared-prefix", "--backends", "llamacpp", *SIMULATED]
CLOSED = ["--concurrency", "4", "--requests", "40"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    shape = Shape(TWO[:1], concurrency=(4,), repeats=2, requests=32, output_tokens=2)
    run = make_run(tmp_path_factory.mktemp("runs"), shape)
    edit_summary(run, cells=[documents.changed(cell, launch="simulate") for cell in run.read_summary().cells])

    def started(manifest):
        backend = manifest["backends"]["llamacpp"]
        backend["launch"]["mode"] = "simulate"
        backend["engine"]["startup_s"] = 5.0

    change_json(run.path / "manifest.json", started)
    return run


@pytest.fixture
def earlier(here, made):
    """A run of this scenario: 36 requests in 9 s in each of two cells, and a start of 5 s."""
    return copy_of(made, here / "results")


def planned(capsys, *words):
    assert main([*RUN, *words]) == ExitCode.OK
    return capsys.readouterr().out.splitlines()


def document(capsys, *words):
    return json.loads("\n".join(planned(capsys, *words, "--json")))


def test_loads_that_differ_in_the_seventh_digit_are_two(capsys):
    lines = planned(capsys, "--rate", "1000.25,1000.254", "--repeats", "1", "--requests", "4")
    assert "1 engine × 2 loads × 1 repeat (-v lists each cell)" in lines
    assert [line.split()[1] for line in lines if "requests/s" in line] == ["1000.25", "1000.254"]


def test_a_search_says_how_many_probes_it_may_take(capsys):
    run = ["run", "--scenario", "fixed-length", "--launch", "simulate", "--backends", "vllm"]
    assert main([*run, *SEARCH, "--dry-run"]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "for each engine 3 searches among 193 loads, usually at most 16 probes" in shown
    assert "decides and lasts 45 to 225 s" in shown
    assert main([*run, *SEARCH, "--rate", "5,10", "--repeats", "1", "--dry-run"]) == ExitCode.OK
    assert "1 search among 33 loads, usually at most 9 probes" in " ".join(capsys.readouterr().out.split())
    assert main([*run, "--concurrency", "4", "--repeats", "2", "--dry-run"]) == ExitCode.OK
    assert "2 cells, " in capsys.readouterr().out


def test_lengths_and_limits_are_named(capsys):
    limits = ["--set", "slo.ttft_ms.p95=500", "--set", "slo.e2e_ms.p50=2000"]
    lengths = ["prefix_tokens=512", "question_tokens=64", "output_tokens=1024"]
    lines = planned(capsys, *limits, *(word for each in lengths for word in ("--set", f"prompts.{each}")))
    assert (
        "tokens: prefix 512, question 64, output 1,024; limits: TTFT p95 ≤ 500 ms, E2E p50 ≤ 2000 ms" in lines
    )


def test_a_length_that_nobody_set_is_not_named(capsys):
    """The file has lengths of its own, and `prompts.output_tokens` may replace them."""
    run = ["run", "--scenario", "prompt-file", "--backends", "vllm", "--launch", "simulate", "--dry-run"]
    assert main(run) == ExitCode.OK
    limits = "min input 1, max input 1,536, max output 256"
    lengths = f"{limits}, output as the file says, or 64"
    assert f"tokens: {lengths}" in capsys.readouterr().out
    assert main([*run, "--output-tokens", "32"]) == ExitCode.OK
    assert f"tokens: output 32, {limits}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "price", "says"),
    [
        ("192.0.2.1", "--price-per-gpu-hour", True),
        ("127.0.0.1", "--price-per-gpu-hour", False),
        ("192.0.2.1", "--price-per-hour", False),
    ],
)
def test_a_price_that_leads_nowhere_is_named_before_the_run(capsys, monkeypatch, host, price, says):
    monkeypatch.setattr("harness.cli.display.dry_run.lacks", lambda *_given: [])
    run = ["run", "--scenario", "fixed-length", "--backends", f"openai=http://{host}:9", "--dry-run"]
    assert main([*run, price, "3"]) == ExitCode.OK
    assert ("note: openai: no cost from a price per GPU: " in capsys.readouterr().out) is says


def test_the_probes_of_a_closed_loop_have_answers_and_no_time(capsys):
    search = ["--find-capacity", "--concurrency", "1,16", "--set", "slo.ttft_ms.p95=500"]
    lines = planned(capsys, *search)
    assert "decides and has 40 answers of each slot or more; 3 engine starts" in lines[-1]
    assert main([*RUN, *search, "--probe-seconds", "5"]) == ExitCode.USAGE
    assert "--probe-seconds: only applies to --rate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "expected_s"),
    [
        ({}, 18.0),  # two cells of 9 s
        ({"state": "interrupted"}, None),
        ({"capacity": None}, None),
    ],
)
def test_a_search_takes_as_long_as_the_last_one(earlier, capsys, changes, expected_s):
    """The sum over the loads that it may try would be hours, for which no night has the time."""
    found = {"label": "llamacpp", "kind": "concurrency", "value": 4, "interval": [4, 4, 5], "highest": 16}
    edit_summary(earlier, **{"capacity": [found], **changes})
    search = ["--find-capacity", "--concurrency", "1,16", "--set", "slo.ttft_ms.p95=500"]
    assert document(capsys, *search)["expected_s"] == expected_s
    shown = " ".join(planned(capsys, *search))
    assert (" probes, about 18 s of load; the last one" in shown) == (expected_s is not None)
    other = document(capsys, *search[:2], "1,32", *search[3:])
    assert other["expected_s"] is None
    two = document(capsys, *search, "--backends", "llamacpp,llamacpp@no-prefix-cache")
    assert two["expected_s"] is None, "it measured but one of them"


def test_each_earlier_summary_is_read_once(earlier, capsys, monkeypatch):
    read, reads = RunFolder.read_summary, []
    monkeypatch.setattr(RunFolder, "read_summary", lambda folder: reads.append(folder) or read(folder))
    assert planned(capsys, "--find-capacity", "--concurrency", "1,16", "--set", "slo.ttft_ms.p95=500")
    assert len(reads) == 1


def test_a_search_that_never_ended_takes_no_known_time(capsys):
    """Of an open loop the time at each load is known."""
    run = ["run", "--scenario", "fixed-length", "--launch", "simulate", "--backends", "vllm", *SEARCH]
    assert main([*run, "--dry-run", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["expected_s"] is None


def test_time_is_that_of_earlier_requests_and_starts_with_the_pause_between_them(earlier, capsys):
    lines = planned(capsys, *CLOSED, "--repeats", "2")
    assert "  llamacpp  4 in flight  10 s each: 1 earlier run of this scenario in results" in lines
    assert "2 cells, about 20 s of load, and 2 engine starts, about 12 s with pauses" in lines
    found = document(capsys, *CLOSED, "--repeats", "2")
    assert (found["expected_s"], found["expected_starts_s"]) == (20.0, 12.0)
    assert "1 cell, about 10 s of load, and 1 engine start, about 5 s with pauses" in planned(
        capsys, *CLOSED, "--repeats", "1"
    )


def test_a_time_that_is_not_known_is_that_of_the_cells(capsys):
    unknown = "how long the cells take is not known: results has no earlier run of all of them"
    assert planned(capsys, *CLOSED, "--repeats", "2")[-1] == unknown


def test_requests_that_were_hung_up_on_took_their_part_of_the_time(earlier, capsys):
    cells = earlier.read_summary().cells
    halves = ({**as_json(cell.requests), "ok": 16, "outcomes": {"ok": 16, "abandoned": 16}} for cell in cells)
    pairs = zip(cells, halves, strict=True)
    edit_summary(earlier, cells=[documents.changed(cell, requests=half) for cell, half in pairs])
    (cell,) = document(capsys, *CLOSED, "--repeats", "1")["cells"]
    assert cell["expected_s"] == pytest.approx(10.0)


def test_prefixes_of_a_cache_of_unknown_size_took_their_part_of_the_time(here, earlier, capsys):
    """No plan knows how many they are, so that the others are estimated to take as long as all together."""
    load = {"kind": "working-set", "value": 8.0}
    cells = [
        documents.changed(cell, load=load, requests={**as_json(cell.requests), "warmup": 400})
        for cell in earlier.read_summary().cells
    ]
    edit_summary(earlier, scenario="kv-working-set", cells=cells)
    earlier.path.rename(here / "results" / "20261120T080000Z-kv-working-set-abcdef")
    words = ["--scenario", "kv-working-set", "--set", "load.working_set=[8]", "--requests", "32"]
    (cell,) = document(capsys, *words, "--repeats", "1")["cells"]
    assert cell["expected_s"] == pytest.approx(9.0)


def test_a_server_that_runs_already_is_not_started(capsys):
    urls = "vllm=http://127.0.0.1:9,tgi=http://127.0.0.1:10"
    load = ["--requests", "1", "--rate", "2", "--repeats", "3", "--set", "load.warmup_requests=0"]
    words = ["run", "--scenario", "shared-prefix", "--backends", urls, *load]
    assert main([*words, "--set", "verdict.cool_down_s=2", "--dry-run"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "6 cells, about 3 s of load, and no engine start, about 10 s of pauses" in shown
    assert "1 request at this rate" in shown


def test_a_long_plan_is_in_minutes_and_hours(capsys):
    assert main([*RUN, "--rate", "1", "--requests", "3600", "--repeats", "3"]) == ExitCode.OK
    assert "3 cells, about 3.0 h of load" in capsys.readouterr().out


def test_each_cell_is_listed_on_request(earlier, capsys):
    lines = planned(capsys, *CLOSED, "--repeats", "2", "-v")
    rows = [line.split() for line in lines if "-llamacpp-c4-r" in line]
    assert [row[0] for row in rows] == ["000-llamacpp-c4-r0", "001-llamacpp-c4-r1"]
    assert [row[1:6] for row in rows] == [["4", "in", "flight", "10", "s"]] * 2


@pytest.mark.parametrize(("words", "column"), [([], r"requests/s +(?=\d)"), (["-v"], r" s(?=  )")])
def test_loads_of_any_length_stand_in_columns(capsys, words, column):
    lines = planned(capsys, "--rate", "1,1000.254", "--repeats", "1", "--requests", "400", *words)
    ends = [found.end() for line in lines if "requests/s" in line and (found := re.search(column, line))]
    assert len(ends) == 2
    assert len(set(ends)) == 1


@pytest.mark.parametrize(
    "other", [["--concurrency", "8"], ["--concurrency", "4", "--scenario", "fixed-length"]]
)
def test_another_load_or_scenario_says_nothing_about_this_one(earlier, capsys, other):
    found = document(capsys, "--requests", "40", "--repeats", "2", *other)
    assert {cell["expected_s"] for cell in found["cells"]} == {None}
    assert found["expected_s"] is None
    assert {cell["basis"] for cell in found["cells"]} == {"40 requests"}


def test_a_scenario_whose_name_ends_in_that_of_another_says_nothing_about_it(here, earlier, capsys):
    earlier.path.rename(here / "results" / "20261120T080000Z-my-shared-prefix-abcdef")
    other = here / "results" / "20261120T080000Z-my-shared-prefix-abcdef" / "summary.json"
    change_json(other, lambda summary: summary.update(scenario="my-shared-prefix"))
    assert document(capsys, *CLOSED, "--repeats", "2")["expected_s"] is None


def test_a_run_that_cannot_be_read_says_nothing(earlier, capsys):
    (earlier.path / "summary.json").write_text("{")
    (earlier.path / "manifest.json").write_text("{")
    found = document(capsys, *CLOSED, "--repeats", "2")
    assert (found["expected_s"], found["expected_starts_s"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "seconds", "basis"),
    [
        (["--rate", "2"], 20.0, "40 requests at this rate"),
        (["--rate", "2", "--duration", "5"], 5.0, "--duration"),
        (["--rate", "20", "--duration", "5"], 2.0, "40 requests at this rate"),
        (["--concurrency", "8", "--duration", "5"], 5.0, "--duration, unless 40 requests end sooner"),
        (
            ["--concurrency", "8", "--duration", "5", "--set", "load.warmup_requests=8"],
            5.0,
            "--duration after 40 requests of warm-up, unless 80 requests end sooner",
        ),
        (
            ["--rate", "8", "--duration", "5", "--set", "load.warmup_requests=8"],
            6.0,
            "48 requests at this rate",
        ),
        (
            ["--rate", "4", "--duration", "5", "--set", "load.warmup_requests=8"],
            7.0,
            "--duration after 8 requests of warm-up",
        ),
    ],
)
def test_an_open_loop_lasts_as_long_as_its_arrivals_and_no_longer_than_was_allowed(
    capsys, words, seconds, basis
):
    found = document(capsys, "--requests", "40", "--repeats", "2", *words)
    assert [(cell["expected_s"], cell["basis"]) for cell in found["cells"]] == [(seconds, basis)] * 2


def test_weights_that_an_engine_fetches_have_the_name_of_their_repository(capsys):
    words = ["run", "--scenario", "single-user", "--backends", "vllm", "--model", "qwen2.5-7b-instruct"]
    assert main([*words, "--launch", "process", "--dry-run"]) == ExitCode.OK
    shown = capsys.readouterr().out.splitlines()
    assert "  vllm: process, weights bf16 of Qwen/Qwen2.5-7B-Instruct (model hub, about 15 GB)" in shown


def test_a_trace_says_how_many_of_its_requests_are_used(here, capsys):
    line = {"at_s": 0, "input_tokens": 8, "output_tokens": 4}
    (here / "t.jsonl").write_text("".join(json.dumps(line | {"at_s": at}) + "\n" for at in range(8)))
    words = ["run", "--trace", "t.jsonl", "--backends", "vllm", "--requests", "6", *SIMULATED]
    assert main(words) == ExitCode.OK
    shown = capsys.readouterr().out.splitlines()
    assert "  vllm  1 times the trace's pace  5 s each: 6 of 8 requests of the trace" in shown
    assert shown[-1] == "warning: trace-changed: t.jsonl: 2 requests after the first 6, left out"
    assert main([*words, "--requests", "9"]) == ExitCode.OK
    assert "7 s each: 8 requests of the trace\n" in capsys.readouterr().out
    assert main([*words, "--json"]) == ExitCode.OK
    assert [warning["code"] for warning in json.loads(capsys.readouterr().out)["warnings"]] == [
        "trace-changed"
    ]


def test_a_rate_that_changes_is_counted_to_its_last_request(capsys):
    """A rise to 4/s brings 20 requests in 10 s, and 20 more at 4/s take 5 s."""
    profile = "load.profile=[{seconds=10,start=0,end=1},{seconds=5,start=1,end=1}]"
    words = ["--requests", "40", "--rate", "4", "--set", profile]
    (cell,) = document(capsys, *words, "--repeats", "1")["cells"]
    assert cell["expected_s"] == 15.0
    assert cell["basis"] == "40 requests at a rate that changes"


@pytest.mark.parametrize(
    "change",
    [
        lambda backend: backend["engine"].update(startup_s="soon"),
        lambda backend: backend.pop("launch"),
        lambda backend: backend.update(engine=None),
    ],
    ids=["no number", "no launch", "no engine"],
)
def test_a_start_of_which_a_folder_says_nothing_usable_is_not_known(earlier, capsys, change):
    change_json(earlier.path / "manifest.json", lambda manifest: change(manifest["backends"]["llamacpp"]))
    found = document(capsys, *CLOSED, "--repeats", "2")
    assert (found["expected_s"], found["expected_starts_s"]) == (20.0, None)


def test_engines_that_a_run_would_install_are_named_with_their_sizes(here, monkeypatch, capsys):
    monkeypatch.setenv("BENCH_CACHE", str(here / "cache"))
    backends = "vllm,vllm@no-prefix-cache,llamacpp"
    words = ["run", "--scenario", "shared-prefix", "--backends", backends, "--launch", "process", "--dry-run"]
    assert main(words) == ExitCode.OK
    assert "to be installed first: vllm (about 3,620 MB), llamacpp (about 218 MB)" in capsys.readouterr().out


def test_a_scripted_server_needs_nothing_installed(here, monkeypatch, capsys):
    monkeypatch.setenv("BENCH_CACHE", str(here / "cache"))
    assert not any("installed first" in line for line in planned(capsys))


@pytest.mark.parametrize(
    ("words", "asked", "keys"),
    [
        ([], [], (0, 0)),
        (
            ["--agreement"],
            ["then 58 questions to each engine, one at a time and under load, for at most 10 min"],
            (58, 600),
        ),
        (
            ["--accuracy", "300"],
            ["then 358 questions to each engine, one at a time and under load, for at most 60 min"],
            (358, 3600),
        ),
    ],
)
def test_questions_after_the_cells_are_announced_with_the_longest_that_they_take(capsys, words, asked, keys):
    assert [line for line in planned(capsys, *words) if "questions" in line] == asked
    plan = document(capsys, *words)
    assert (plan["questions"], plan["longest_questions_s"]) == keys


def test_rows_that_are_wider_than_the_terminal_go_on_below_their_beginning(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    lines = planned(capsys, "--concurrency", "4", "--requests", "40", "-v")
    row = next(index for index, line in enumerate(lines) if line.startswith("  000-llamacpp"))
    assert lines[row : row + 2] == ["  000-llamacpp-c4-r0  4 in flight       ?", "    40 requests"]
    assert max(map(len, lines)) <= 50


@pytest.mark.parametrize(
    ("words", "small", "large"),
    [
        ([], "12 requests after one of each prefix", "12 requests after one of each prefix"),
        (["--set", "load.kv_tokens=1024"], "16 requests", "49 requests"),
    ],
)
def test_one_request_of_each_prefix_is_counted_once(capsys, words, small, large):
    """Eight times a cache of 1,024 tokens are 37 prefixes of 216 tokens with question and answer."""
    what = ["run", "--scenario", "kv-working-set", "--profile", "cpu", "--backends", "vllm", "--launch"]
    assert main([*what, "simulate", "--dry-run", "--json", *words]) == ExitCode.OK
    basis = {cell["load"]: cell["basis"] for cell in json.loads(capsys.readouterr().out)["cells"]}
    assert basis["0 times the KV cache"] == "16 requests"
    assert basis["0.5 times the KV cache"] == small
    assert basis["8 times the KV cache"] == large


def test_what_each_engine_would_be_started_with_is_named(capsys):
    words = [
        "--scenario",
        "fixed-length",
        "--backends",
        "llamacpp,llamacpp@a",
        "--launch",
        "process",
        "--dry-run",
    ]
    words += ["--variant", "a=GGML_X=1 /builds/llama-server --ubatch-size 16 --no-mmap"]
    assert main(["run", *words, "-v"]) == ExitCode.OK
    shown = capsys.readouterr().out
    shipped, _, own = shown.partition("  llamacpp@a:")
    assert "--ubatch-size 512" in shipped
    assert "--no-mmap" not in shipped
    assert "variables:" not in shipped
    assert "    program: /builds/llama-server\n" in own
    assert "--ubatch-size 16" in own
    assert "--seed 0 --no-mmap\n" in own
    assert "    variables: GGML_X=1\n" in own
    assert "    known of it: GGUF weights differ" in shipped
    assert "known of it" not in own  # what is known of both is printed once

    assert main(["run", *words, "--json"]) == ExitCode.OK
    planned = json.loads(capsys.readouterr().out)["backends"]["llamacpp@a"]
    assert planned["variables"] == {"GGML_X": "1"}
    assert planned["flags"][-1] == "--no-mmap"


@pytest.mark.parametrize(
    ("words", "vllm", "sglang"),
    [
        ((), ["0"], ["0"]),
        (("--engine-set", "tensor_parallel=2", "--gpus", "3,1,0"), ["3", "1"], ["3", "1"]),
        (("--pairing", "blocks", "--gpus", "3,1"), ["3"], ["1"]),  # of the first start: then they swap
    ],
)
def test_the_gpus_of_each_engine_are_named(capsys, monkeypatch, tmp_path, words, vllm, sglang):
    monkeypatch.setattr("harness.engines.start.launch_choice.DEVICE_FILES", {"cuda": tmp_path})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    run = ["run", "--scenario", "fixed-length", "--launch", "process", "--backends", "vllm,sglang"]
    run += ["--concurrency", "4", "--model", "qwen2.5-7b-instruct", "--dry-run", *words]
    assert main(run) == ExitCode.OK
    shown = capsys.readouterr().out
    assert f"  vllm: process on GPU {', '.join(vllm)}, weights bf16 of" in shown
    assert main([*run, "--json"]) == ExitCode.OK
    backends = json.loads(capsys.readouterr().out)["backends"]
    assert [backends[name]["gpus"] for name in ("vllm", "sglang")] == [vllm, sglang]


def test_an_engine_that_gets_no_gpu_names_none(capsys):
    assert document(capsys)["backends"]["llamacpp"]["gpus"] == []
