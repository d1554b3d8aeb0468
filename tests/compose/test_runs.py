"""`bench run --launch compose`: real llama.cpp in a container, and everything that goes wrong on the way."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
from pathlib import Path

import httpx
import pytest

from harness.host import paths
from tests.compose.conftest import SMALL, composes, docker
from tests.waiting import until

MEASURED = (0, 4)  # on a busy machine a cell may be INVALID: what it measured is not the question here
RUN = ["run", "--scenario", "shared-prefix", "--launch", "compose", *SMALL]


def manifest(bench):
    return json.loads((bench.runs()[-1] / "manifest.json").read_text())


def summary(bench):
    return json.loads((bench.runs()[-1] / "summary.json").read_text())


@pytest.fixture
def only(tmp_path):
    """A PATH on which `argv` is the only Compose; of the two, one needs no docker command."""

    def only(argv):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("docker", "docker-compose"):
            if found := shutil.which(name):
                (folder / name).symlink_to(found)
        if argv == ("docker-compose",):
            (folder / "docker").unlink()
        else:
            (folder / "docker-compose").unlink(missing_ok=True)
        return f"{folder}:/usr/sbin:/sbin"

    return only


def test_real_llamacpp_is_brought_up_measured_and_gone(bench, llamacpp):
    backends = ("--backends", "llamacpp,llamacpp@no-prefix-cache")
    # One thread: on two shared cores, threads that spin at their barriers crawl.
    shorter = ("--engine-set", "threads=1", "--set", "prompts.prefix_tokens=256")
    shorter += ("--set", "load.warmup_requests=4")
    done = bench(*RUN, *backends, *shorter, "-v", code=MEASURED, BENCH_IMAGE_LLAMACPP=llamacpp)
    cells = {cell["label"]: cell for cell in summary(bench)["cells"]}
    for cell in cells.values():
        assert cell["requests"]["ok"] == 8
        assert cell["output_tokens"]["total"] == 8 * 4
        assert not cell["simulated"]
        assert cell["server"]["cpu_cores"] > 0.2  # of the processes in the container
        assert cell["server"]["rss_bytes"]["max"] > 100e6
    assert cells["llamacpp"]["prefix_cache_hit_rate"] > 0.7
    assert cells["llamacpp@no-prefix-cache"]["prefix_cache_hit_rate"] < 0.02
    assert "launch compose" in done.stdout
    engine = manifest(bench)["backends"]["llamacpp"]["engine"]
    container = engine["container"]
    assert container["image"]["name"] == llamacpp
    assert container["image"]["overridden"]
    assert container["image"]["image_id"].startswith("sha256:")
    assert container["image"]["digest"] is None, "it was built here"
    assert "/models/SmolLM2-135M-Instruct.Q4_1.gguf" in engine["command"]
    assert engine["weights"]["sha256"]
    assert container["address"] == "published port"
    assert re.fullmatch(r"[\d.]+:8080", container["direct_address"])
    assert container["compose_file"].startswith("services:")
    assert engine["base_url"].startswith("http://127.0.0.1:")
    log = (bench.runs()[-1] / "logs" / "llamacpp-r0.log").read_text()
    assert "listening on http://0.0.0.0:8080" in log


@pytest.mark.parametrize("argv", composes(), ids=" ".join)
def test_each_compose_of_this_machine_does(bench, simulator, only, argv):
    env = {"BENCH_IMAGE_VLLM": simulator(), "PATH": only(argv)}
    done = bench(*RUN, "--backends", "vllm", code=MEASURED, **env)
    assert f"with {' '.join(argv)} " in done.stderr
    assert "SIMULATED" in done.stdout
    assert summary(bench)["cells"][0]["requests"]["ok"] == 8


def test_engines_with_a_cpu_image_in_one_matrix(bench, simulator):
    """Simulated, each in its dialect: entrypoints, ports, files and volumes as declared."""
    # TGI's CPU image asks for a capability, which not every CI gives.
    names = ["vllm", "sglang", "llamacpp", "ollama"]
    env = {f"BENCH_IMAGE_{name.upper()}": simulator(TRUTH=f"--dialect {name}") for name in names}
    bench(*RUN, "--backends", ",".join(names), code=MEASURED, **env)
    cells = {cell["label"]: cell for cell in summary(bench)["cells"]}
    assert list(cells) == names
    for cell in cells.values():
        assert cell["requests"]["ok"] == 8
        assert cell["simulated"]


def test_metrics_on_a_port_of_their_own_are_read(bench, simulator):
    """Of an engine whose definition says so, as Modular MAX's does."""
    text = (paths.shipped("backends") / "vllm.toml").read_text().replace('name = "vllm"', 'name = "apart"')
    text = text.replace("[metrics]\n", "[metrics]\nown_port = true\n")
    text = text.replace("env = { VLLM_S", 'env = { METRICS_PORT = "{second_port}", VLLM_S')
    definition = bench.folder / "backends" / "apart.toml"
    definition.parent.mkdir()
    definition.write_text(text)
    bench(*RUN, "--backends", "apart", code=MEASURED, BENCH_IMAGE_APART=simulator(TRUTH="--dialect vllm"))
    (cell,) = summary(bench)["cells"]
    assert cell["server"]["output_tokens"] >= 8 * 4
    container = manifest(bench)["backends"]["apart"]["engine"]["container"]
    assert re.findall(r"127\.0\.0\.1:\d+:(\d+)", container["compose_file"]) == ["8000", "8001"]


def test_a_gpu_that_is_not_there_is_told_before_anything_starts(bench, simulator):
    run = ("run", "--scenario", "shared-prefix", "--launch", "compose", "--device", "cuda")
    done = bench(*run, "--backends", "lmdeploy", code=3, BENCH_IMAGE_LMDEPLOY=simulator())
    assert "lmdeploy: needs an NVIDIA GPU (cuda), and this machine has none" in done.stderr
    assert "nothing was downloaded or started" in done.stderr


def test_death_while_loading_shows_the_engines_own_lines_and_the_rest_goes_on(bench, simulator):
    done = bench(
        *RUN,
        "--backends",
        "vllm,llamacpp",
        code=3,
        BENCH_IMAGE_VLLM=simulator(HABITS="dies"),
        BENCH_IMAGE_LLAMACPP=simulator(),
    )
    assert "vllm: ended while loading: exit code 3" in done.stderr
    assert "  | RuntimeError: CUDA out of memory" in done.stderr
    assert "it ran out of memory" in done.stderr
    assert [cell["label"] for cell in summary(bench)["cells"]] == ["llamacpp"]


def test_an_engine_that_runs_out_of_memory_in_mid_cell_is_kept_as_such_and_the_rest_goes_on(bench, simulator):
    process = bench.begin(
        *RUN,
        *("--requests", "500", "--duration", "10", "--backends", "vllm,llamacpp"),
        *("--set", "prompts.prefix_tokens=64", "--set", "load.warmup_requests=0"),  # on one slow thread
        BENCH_IMAGE_VLLM=simulator(HABITS="grows"),
        BENCH_IMAGE_LLAMACPP=simulator(),
        BENCH_MEM_LIMIT="900m",
    )
    until(lambda: measures(process), "the load runs")
    docker("exec", *ours(), "touch", "/tmp/grow")
    _out, err = process.communicate(timeout=180)
    assert process.returncode == 4, err
    assert "the engine died during 000-vllm-c2-r0: killed for lack of memory (exit code 137)" in err
    cells = {cell["label"]: cell for cell in summary(bench)["cells"]}
    assert cells["vllm"]["validity"]["verdict"] == "INVALID"
    assert cells["vllm"]["requests"]["ok"] > 0
    assert cells["llamacpp"]["requests"]["ok"] > 0
    assert any(warning["code"] == "engine-died" for warning in summary(bench)["warnings"])


def test_an_image_that_is_nowhere_is_said_before_anything_is_measured(bench, llamacpp):
    done = bench(
        *RUN,
        "--backends",
        "llamacpp,vllm",
        code=3,
        BENCH_IMAGE_LLAMACPP=llamacpp,
        BENCH_IMAGE_VLLM="127.0.0.1:1/no/such:image",
    )
    assert "image 127.0.0.1:1/no/such:image is not on this machine and cannot be pulled" in done.stderr
    assert "BENCH_IMAGE_VLLM=NAME" in done.stderr
    assert "000-" not in done.stderr


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"DOCKER_HOST": "unix:///nowhere/docker.sock"}, "no Docker daemon answers"),
        ({"PATH": "/nowhere"}, "neither `docker compose` nor `docker-compose` is installed"),
    ],
)
def test_no_docker_is_one_clear_error(bench, env, message):
    done = bench(*RUN, "--backends", "llamacpp", code=3, **env)
    assert message in done.stderr
    assert "hint:" in done.stderr


def test_a_port_that_is_taken_is_named_with_its_owner(bench, llamacpp):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        what = ("--backends", "llamacpp", "--engine-set", f"port={port}")
        done = bench(*RUN, *what, code=3, BENCH_IMAGE_LLAMACPP=llamacpp)
    assert f"port {port} is taken by " in done.stderr


def test_ctrl_c_in_mid_cell_leaves_what_was_measured_and_no_container(bench, simulator):
    process = bench.begin(*RUN, "--requests", "500", "--backends", "vllm", BENCH_IMAGE_VLLM=simulator())
    until(lambda: measures(process), "the load runs")
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert summary(bench)["cells"][0]["requests"]["ok"] > 0


@pytest.mark.parametrize("keeper_too", [False, True], ids=["bench", "bench and its keeper"])
def test_what_a_killed_bench_leaves_is_gone_at_the_next_start(bench, simulator, keeper_too):
    process = bench.begin(*RUN, "--requests", "500", "--backends", "vllm", BENCH_IMAGE_VLLM=simulator())
    until(lambda: measures(process), "the load runs")
    (container,) = ours()
    if keeper_too:
        kill_all(process)
        assert ours() == [container]
    else:
        process.kill()
        process.communicate(timeout=60)
        until(lambda: not ours() and not networks(), "the keeper removes it")
    done = bench(*RUN, "--backends", "llamacpp", code=MEASURED, BENCH_IMAGE_LLAMACPP=simulator())
    what = "removed its container" if keeper_too else "nothing of its container is left"
    assert f"vllm was left by a bench that was killed: {what}" in done.stderr
    assert manifest(bench)["backends"]["llamacpp"]["engine"]["remarks"]
    assert not ours()


def test_leftovers_are_found_by_their_labels_alone(bench, simulator):
    """As after a restart of the machine, or with another cache."""
    process = bench.begin(*RUN, "--requests", "500", "--backends", "vllm", BENCH_IMAGE_VLLM=simulator())
    until(lambda: measures(process), "the load runs")
    kill_all(process)
    for note in (bench.folder / "cache" / "running").iterdir():
        note.unlink()
    done = bench(*RUN, "--backends", "llamacpp", code=MEASURED, BENCH_IMAGE_LLAMACPP=simulator())
    assert "removed the container of vllm, left by a bench that was killed" in done.stderr


def measures(process):
    """The simulated engine has served some twenty requests."""
    assert process.poll() is None, process.communicate()
    for container in ours():
        ports = json.loads(docker("inspect", container))[0]["NetworkSettings"]["Ports"]
        for place in ports.get("8000/tcp") or ():
            try:
                text = httpx.get(f"http://127.0.0.1:{place['HostPort']}/metrics").text
            except httpx.HTTPError:
                continue
            counts = re.findall(r"^vllm:generation_tokens_total\S* (\S+)", text, re.M)
            return sum(map(float, counts)) > 100
    return False


def kill_all(process):
    """With its guard, keeper and workers, and none of them is given time to clean up."""
    process.send_signal(signal.SIGSTOP)
    for pid in descendants(process.pid):
        with contextlib.suppress(ProcessLookupError):  # it died with another
            os.kill(int(pid), signal.SIGKILL)
    process.kill()
    process.communicate(timeout=60)


def ours():
    return docker("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=llm-servebench.engine").split()


def networks():
    return docker("network", "ls", "--quiet", "--filter", "label=llm-servebench.engine").split()


def descendants(pid):
    """Of /proc: pids as text, the nearest first."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in thread.read_text().split():
            found += [child, *descendants(child)]
    return found
