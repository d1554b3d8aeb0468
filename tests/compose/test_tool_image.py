"""The image of bench itself: built, small, not run by root, and it measures a server on the host."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.host import paths
from harness.mockserver import running
from tests.compose import images
from tests.compose.conftest import docker

SIZE_MB = 500  # without the base: what the base install may weigh, and a little


@pytest.fixture(scope="module")
def tool():
    """From the Dockerfile, without a network: wheels are fetched before, pip comes as its own wheel."""
    wheels = images.tool_wheels()
    with tempfile.TemporaryDirectory(prefix="bench-image-") as folder:
        context = Path(folder, "context")
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("harness", "workloads", "backends", "compose"):
            shutil.copytree(paths.CHECKOUT / name, context / name, ignore=ignored)
        built_from = "Dockerfile .dockerignore pyproject.toml hatch_build.py README.md LICENSE"
        for name in built_from.split():
            shutil.copy(paths.CHECKOUT / name, context)
        shutil.copytree(wheels, context / "wheels")
        (pip,) = (context / "wheels").glob("pip-*.whl")
        values = {
            "BASE": images.base_image(),
            "PIP": f"python3 /src/wheels/{pip.name}/pip --no-cache-dir",
            "PACKAGE": "llm-servebench",
            "PIP_NO_INDEX": "1",
        }
        flags = [word for name, value in values.items() for word in ("--build-arg", f"{name}={value}")]
        images.run("docker", "build", "--network", "none", "--tag", images.TOOL, *flags, str(context))
    yield images.TOOL
    docker("rmi", "--force", images.TOOL)


def run(tool, *arguments, options=(), code=0):
    done = subprocess.run(
        ["docker", "run", "--rm", *options, tool, *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_it_is_small_and_not_run_by_root(tool):
    size, base = (
        int(docker("image", "inspect", "--format", "{{.Size}}", name)) for name in (tool, images.BASE)
    )
    print(f"image {size / 1e6:.0f} MB, of it the base {base / 1e6:.0f} MB")
    assert size - base <= SIZE_MB * 1e6
    assert docker("image", "inspect", "--format", "{{.Config.User}}", tool).strip() == "bench"
    assert "Compare LLM serving engines" in run(tool)
    assert "shared-prefix" in run(tool, "list", "scenarios")


def test_whoever_runs_it_may_write_results_and_fill_the_cache(tool):
    """Fails by the exit code."""
    stranger = ["--user", "12345:12345", "--entrypoint", "touch"]
    run(tool, "/work/results", "/cache/engines", options=stranger)


def test_it_measures_a_server_of_the_host_and_leaves_the_run_there(tool, tmp_path):
    quick = "--concurrency 2 --requests 6 --output-tokens 4 --no-probe --no-agreement --json".split()
    mounted = ["--network", "host", "--user", f"{os.getuid()}:{os.getgid()}", "--volume", f"{tmp_path}:/work"]
    with running(ttft_ms=50, gap_ms=5) as server:
        backend = f"truth={server.url}"
        printed = run(
            *(tool, "run", "--scenario", "fixed-length", "--backends", backend, *quick), options=mounted
        )
    summary = json.loads(printed)
    assert summary["cells"][0]["requests"]["ok"] == 6
    assert (tmp_path / "results" / summary["run"] / "report.html").is_file()
