"""The files for use by hand, with every Compose of this machine."""

import json
import os
import re
import shutil
import subprocess
import time

import httpx
import pytest

from harness.engines.start.containers.files import CPU, MAIN, ROCM
from harness.engines.start.ports import free_port
from harness.host import paths
from harness.spec.backend_refs import load_backend
from tests.compose.conftest import composes, docker

FOLDER = paths.shipped("compose")
PROFILES = {
    name: definition
    for name in sorted(set(paths.definitions("backends")) - {"models"})
    if (definition := load_backend(name)).compose
}
OVERLAYS = {"default": (), "cpu": ("-f", MAIN, "-f", CPU), "rocm": ("-f", MAIN, "-f", ROCM)}


def compose(argv, *arguments, folder=FOLDER, check=True, **env):
    done = subprocess.run(
        [*argv, *arguments],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 or not check, done.stderr
    return done


@pytest.mark.parametrize("argv", composes(), ids=" ".join)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_profile_is_accepted(argv, overlay):
    every = [word for profile in PROFILES for word in ("--profile", profile)]
    shown = compose(argv, *OVERLAYS[overlay], *every, "config").stdout
    section = re.search(r"^services:\n((?: +.*\n)+)", shown, re.M)[1]
    services = dict(re.findall(r"^  ([a-z-]+):\n((?:    .*\n)+)", section, re.M))
    for profile, definition in PROFILES.items():
        nvidia = overlay == "default" and definition.image.cuda is not None
        assert ("driver: nvidia" in services[profile]) == nvidia
        assert "127.0.0.1" in services[profile]


@pytest.mark.parametrize("argv", composes(), ids=" ".join)
def test_a_token_of_the_environment_reaches_the_container_and_no_file(argv):
    shown = compose(argv, "--profile", "vllm", "config", HF_TOKEN="hf_secret")
    assert "hf_secret" in shown.stdout, "Compose passes it on"
    assert "hf_secret" not in "".join(path.read_text() for path in FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("argv", composes(), ids=" ".join)
def test_by_hand_an_engine_comes_up_healthy_and_goes(argv, simulator, tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "byhand")
    port = str(free_port("127.0.0.1"))
    env = {"BENCH_IMAGE_VLLM": simulator(), "BENCH_PORT": port, "BENCH_MEM_LIMIT": "1g", "BENCH_CPUSET": "0"}
    arguments = ("-f", MAIN, "-f", CPU, "--profile", "vllm")
    try:
        compose(argv, *arguments, "up", "-d", folder=folder, **env)
        (container,) = docker("ps", "--quiet", "--filter", "label=com.docker.compose.service=vllm").split()
        deadline = time.monotonic() + 40
        while (state := inspect(container)["State"]["Health"])["Status"] != "healthy":
            assert time.monotonic() < deadline, state
            time.sleep(0.5)
        assert httpx.get(f"http://127.0.0.1:{port}/v1/models").status_code == 200
        about = inspect(container)
        assert about["HostConfig"]["Memory"] == about["HostConfig"]["MemorySwap"] == 1 << 30
        assert about["HostConfig"]["CpusetCpus"] == "0"
        assert about["HostConfig"]["IpcMode"] == "host"
        assert "--max-model-len" in about["Config"]["Cmd"]
        (published,) = about["NetworkSettings"]["Ports"]["8000/tcp"]
        assert published == {"HostIp": "127.0.0.1", "HostPort": port}
    finally:
        compose(argv, *arguments, "down", "--timeout", "2", folder=folder, **env)


@pytest.mark.parametrize("argv", composes(), ids=" ".join)
def test_without_a_gpu_the_default_says_so(argv, simulator, tmp_path):
    if shutil.which("nvidia-container-runtime"):
        pytest.fail("this machine gives GPUs to containers: the message cannot be seen here")
    folder = shutil.copytree(FOLDER, tmp_path / "nogpu")
    env = {"BENCH_IMAGE_VLLM": simulator(), "BENCH_PORT": str(free_port("127.0.0.1"))}
    done = compose(argv, "--profile", "vllm", "up", "-d", folder=folder, check=False, **env)
    compose(argv, "--profile", "vllm", "down", folder=folder, **env)
    assert done.returncode
    assert "could not select device driver" in done.stdout + done.stderr


def inspect(container):
    return json.loads(docker("inspect", container))[0]
