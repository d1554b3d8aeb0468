"""Every engine's definition against the scripted server in its dialect: the whole matrix, offline."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines.session import open_engine
from harness.engines.simulate import simulated
from harness.engines.start.launch_choice import LaunchChoice
from harness.engines.start.request import EngineRequest
from harness.errors import SetupError
from harness.host import paths
from harness.spec.backend import Process
from harness.spec.backend_refs import parse_backend_list
from harness.spec.models import Model, Track
from harness.store import RunFolder
from tests.integration.scripted import bench_in, run_folder
from tests.integration.scripted import summary as summary_of
from tests.long import others_long

EIGHT = ("vllm", "sglang", "tgi", "llamacpp", "ollama", "lmdeploy", "tensorrt-llm", "aphrodite")
# The others speak much as vLLM does; each of them is probed below.
SIX = EIGHT[:-2]
DYING_AT_START, DYING_IN_A_CELL, OVERLOADED = "sglang", "tgi", "lmdeploy"
REQUESTS, WARMUPS = 12, 4
AMID = WARMUPS + 10  # the request that a fault strikes: the first six only check the engine


@pytest.fixture(
    scope="module", params=[SIX, pytest.param(EIGHT, marks=pytest.mark.long)], ids=["six", "eight"]
)
def engines(request):
    return request.param


@pytest.fixture(scope="module")
def matrix(tmp_path_factory, engines):
    """These engines, three of them in trouble: (run folder, what was printed)."""
    here = tmp_path_factory.mktemp("matrix")
    done = bench_in(
        here,
        *("run", "--scenario", "shared-prefix", "--launch", "simulate", "--backends", ",".join(engines)),
        *("--requests", str(REQUESTS), "--concurrency", "2", "--output-tokens", "8", "--repeats", "1"),
        *("--set", f"load.warmup_requests={WARMUPS}", "--set", "load.think_time_s=0"),
        *("--no-probe", "--no-agreement", "--set", "verdict.cool_down_s=0"),
        *("--simulate-fault", f"{DYING_AT_START}=die-loading:for=0.3"),
        *("--simulate-fault", f"{DYING_IN_A_CELL}=die:at={AMID}:after=2"),
        *("--simulate-fault", f"{OVERLOADED}=503:at={AMID}:times=3"),
        code=3,  # one was not measured at all
    )
    return RunFolder(run_folder(here)), done


@pytest.fixture(scope="module")
def summary(matrix):
    return summary_of(matrix[0].path.parents[1])


def test_the_others_complete(summary, engines):
    cells = {cell["label"]: cell for cell in summary["cells"]}
    assert set(cells) == set(engines) - {DYING_AT_START}
    for label, cell in cells.items():
        if label not in (DYING_IN_A_CELL, OVERLOADED):
            assert cell["requests"]["outcomes"] == {"ok": REQUESTS}, label
            assert cell["output_tokens"]["total"] == REQUESTS * 8, label
    assert len({cell["workload_sha256"] for cell in cells.values()}) == 1


def test_an_engine_that_dies_while_loading_is_named_with_its_own_words(matrix, summary):
    (warning,) = [warning for warning in summary["warnings"] if warning["code"] == "not-measured"]
    assert DYING_AT_START in warning["text"]
    assert "CUDA out of memory" in warning["text"]
    assert "memory_share" in warning["hint"]
    assert "CUDA out of memory" in matrix[1].stdout


def test_an_engine_that_dies_in_a_cell_ends_that_cell_only(matrix, summary):
    (cell,) = [cell for cell in summary["cells"] if cell["label"] == DYING_IN_A_CELL]
    assert cell["validity"]["verdict"] == "INVALID"
    assert "engine-died" in {reason["code"] for reason in cell["validity"]["reasons"]}
    assert 0 < cell["requests"]["ok"] < REQUESTS
    assert "Not enough memory to handle" in matrix[1].stderr  # the end of its log
    assert "engine-died" in matrix[1].stdout
    assert "engine-died" in (matrix[0].path / "report.html").read_text()


def test_an_engine_that_was_overloaded_for_a_while_keeps_what_it_answered(summary):
    (cell,) = [cell for cell in summary["cells"] if cell["label"] == OVERLOADED]
    outcomes = cell["requests"]["outcomes"]
    assert outcomes["http_error"] == 3
    # The next turn of a chat that broke off is not asked.
    assert REQUESTS - 2 * 3 <= outcomes["ok"] <= REQUESTS - 3
    assert cell["validity"]["verdict"] == "INVALID"


def test_the_time_to_the_first_token_is_taken_apart_where_the_engine_counts_it(matrix, summary):
    cells = {cell["label"]: cell for cell in summary["cells"]}
    assert cells["llamacpp"]["ttft_parts"] is None
    parts = cells["vllm"]["ttft_parts"]
    assert sum(parts[part] for part in ("queue_ms", "engine_ms", "rest_ms")) == pytest.approx(
        parts["client_ms"]
    )
    assert parts["engine_ms"] > parts["queue_ms"] >= 0  # it serves all of them at once
    table = (matrix[0].path / "table.txt").read_text()
    assert "mean TTFT of all answers, warm-up included, in parts" in table
    assert "closed loop, concurrency 2, vllm " in table


def test_every_output_says_that_it_is_simulated(matrix, summary):
    folder, done = matrix
    assert summary["simulated"]
    assert all(cell["simulated"] for cell in summary["cells"])
    assert done.stdout.startswith("SIMULATED")
    for name in ("table.txt", "table.md", "report.html"):
        assert "SIMULATED" in (folder.path / name).read_text(), name
    backends = folder.read_json("manifest.json")["backends"]
    assert {entry["launch"]["mode"] for entry in backends.values()} == {"simulate"}


def test_engines_tell_what_their_definitions_ask_of_them(matrix, summary):
    backends = matrix[0].read_json("manifest.json")["backends"]
    engines = {label: entry["engine"] for label, entry in backends.items()}
    assert engines["llamacpp"]["info"]["total_slots"] == 8
    assert engines["ollama"]["info"]["models"]
    assert engines["vllm"]["server_version"].endswith("+simulated")
    for cell in summary["cells"]:
        if cell["label"] not in ("tgi", "ollama"):  # which do not tell
            assert cell["prefix_cache_hit_rate"] > 0.5, cell["label"]


DEFINED = sorted(set(paths.definitions("backends")) - {"models", "truth", "openai"})
OFTEN = ("vllm", "tgi", "llamacpp", "ollama")  # those of the others speak much as vLLM does


@pytest.mark.parametrize("name", [*others_long(DEFINED, lambda name: name in OFTEN)])
def test_every_definition_holds_on_its_simulator(tmp_path, name):
    done = bench_in(tmp_path, "probe", name, "--launch", "simulate", "--json")
    probed = json.loads(done.stdout)
    assert probed["simulated"]
    assert [finding for finding in probed["findings"] if finding["holds"] is False] == []
    asked = any(finding["topic"].startswith("structured") for finding in probed["findings"])
    assert asked or name not in EIGHT


def test_a_front_that_answers_before_its_worker_is_there_is_waited_for(tmp_path):
    short = ("--requests", "4", "--concurrency", "1", "--output-tokens", "2", "--repeats", "1")
    options = (*short, "--launch", "simulate", "--no-probe", "--no-agreement", "--no-report")
    early = "503:at=0:times=3"
    for name, code in (("dynamo", 0), ("nim", 3)):
        fault = ("--backends", name, "--simulate-fault", f"{name}={early}")
        done = bench_in(tmp_path, "run", "--scenario", "fixed-length", *options, *fault, code=code)
        assert ("cannot generate" in done.stderr) is bool(code)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backends", "vllm", "--simulate-fault", "vllm=explode"], "'explode' is not a fault"),
        (["--backends", "vllm", "--simulate-fault", "tgi=die"], "'tgi' is not one of the backends"),
        (["--backends", "vllm", "--simulate-fault", "die"], "is not BACKEND=FAULT"),
        (["--backends", "vllm=http://127.0.0.1:1"], "means attach"),
        (["--backends", "openai"], "nothing simulates 'openai'"),
    ],
)
def test_a_wrong_wish_is_one_line_before_anything_starts(tmp_path, arguments, message):
    done = bench_in(tmp_path, "run", "--scenario", "fixed-length", "--launch", "simulate", *arguments, code=2)
    assert message in done.stderr


def test_faults_of_a_simulator_are_not_for_real_engines(tmp_path):
    arguments = ("--backends", "truth", "--simulate-fault", "truth=die")
    done = bench_in(tmp_path, "run", "--scenario", "fixed-length", *arguments, code=2)
    assert "--launch simulate" in done.stderr


@pytest.fixture
def ollama():
    """Its definition with the simulator in place of the program, and the weights still to be brought in."""
    (ref,) = parse_backend_list("ollama")
    speaking = simulated(ref, ()).definition
    program = ("{harness_python}", "-m", "harness", "truth", "--model-name", "other")
    args = tuple(arg for arg in speaking.engine.args if arg not in ("--model-name", "{served_name}"))
    return replace(
        ref,
        definition=replace(
            speaking,
            backend=replace(speaking.backend, weights="gguf"),
            engine=replace(speaking.engine, args=args),
            process=Process(program=program),
        ),
    )


def test_a_local_file_is_brought_to_an_engine_over_its_own_api(tmp_path, ollama, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    weights = tmp_path / "small.gguf"
    weights.write_bytes(b"GGUF and more")
    model = Model("small", "none", tracks={"gguf": Track("gguf", "GGUF", path=str(weights))})
    said = []
    choice = LaunchChoice("process", "as a test")
    log = tmp_path / "log"
    with open_engine(EngineRequest(ollama, choice, "small", model, log_path=log), said.append) as engine:
        assert engine.served_name == "bench"
        assert set(engine.model_names()) == {"other", "bench"}
        assert engine.reset_prefix_cache().done
    assert f"ollama: /api/blobs/sha256:{hashlib.sha256(b'GGUF and more').hexdigest()}" in said
    assert not Path(f"/proc/{engine.facts['pid']}").exists()


def test_a_folder_is_no_file_to_hand_over(tmp_path, ollama, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    model = Model("small", "none", tracks={"gguf": Track("gguf", "GGUF", path=str(tmp_path))})
    choice = LaunchChoice("process", "as a test")
    opening = open_engine(EngineRequest(ollama, choice, "small", model, log_path=tmp_path / "log"), print)
    with pytest.raises(SetupError, match="takes one file"):
        opening.__enter__()
