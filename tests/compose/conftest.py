"""A Docker engine, images made here, and the proof that nothing is left of a test."""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.engines.start.containers import compose_tool, owners
from harness.engines.start.containers.daemon import Daemon
from harness.engines.start.containers.files import MAIN
from harness.engines.start.containers.service import VOLUME_PREFIX
from harness.host import paths
from tests.compose import images

SMALL = ["--concurrency", "2", "--requests", "8", "--output-tokens", "4", "--repeats", "1"]
SMALL += ["--set", "load.start=together", "--set", "load.warmup_requests=2"]
SMALL += ["--no-agreement", "--no-probe"]


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session", autouse=True)
def _engine(tmp_path_factory):
    """The one that answers; else one of our own for the session."""
    if subprocess.run(["docker", "info"], capture_output=True).returncode == 0:
        yield
        return
    folder = tmp_path_factory.mktemp("dockerd")
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [*images.ROOT, "dockerd", "--pidfile", str(folder / "pid")], stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(["docker", "info"], capture_output=True).returncode:
            if daemon.poll() is not None or time.monotonic() > deadline:
                pytest.fail((folder / "log").read_text()[-3000:])
            time.sleep(0.5)
        yield
    finally:
        if daemon.poll() is None:
            subprocess.run([*images.ROOT, "kill", (folder / "pid").read_text().strip()], check=True)
        daemon.wait(timeout=60)


@pytest.fixture(scope="session", autouse=True)
def _caches(_engine):
    """Volumes that outlive engines on purpose: all there at the first test, and as before after the last.

    What an earlier session left when it was killed is removed first: the first run of this one would do it.
    """
    owners.clear(Daemon())
    there = set(docker("volume", "ls", "--quiet").split())
    declared = (paths.shipped("compose") / MAIN).read_text(encoding="utf-8")
    names = set(re.findall(f'name: "({VOLUME_PREFIX}[^"]+)"', declared)) - there
    for name in names:
        docker("volume", "create", name)
    yield
    for name in names:
        docker("volume", "rm", name)


@pytest.fixture(autouse=True)
def _limits(monkeypatch):
    """As high as this machine lets Docker set them."""
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    monkeypatch.setenv("BENCH_ULIMIT_MEMLOCK", str(hard))


@pytest.fixture(scope="session")
def llamacpp():
    return images.llamacpp_image()


@pytest.fixture(scope="session")
def simulator():
    return images.simulator_image


def composes():
    """Every Compose on this machine, by its command."""
    found = [argv for argv in compose_tool.CANDIDATES if compose_tool.version_of(argv)]
    assert found, "neither `docker compose` nor `docker-compose` is installed"
    return found


@pytest.fixture(autouse=True)
def nothing_left():
    """Containers, networks and volumes are the same before and after."""

    def listed():
        return {
            what: set(docker(*command.split()).split())
            for what, command in (
                ("containers", "ps --all --quiet --no-trunc"),
                ("networks", "network ls --quiet --no-trunc"),
                ("volumes", "volume ls --quiet"),
            )
        }

    before = listed()
    yield
    assert listed() == before


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """`bench(...)` in an empty directory, with the weights of the machine's cache and notes of its own."""
    models = paths.cache_dir() / "models"
    models.mkdir(parents=True, exist_ok=True)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "models").symlink_to(models)
    monkeypatch.setenv("BENCH_CACHE", str(cache))
    return Bench(tmp_path)


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "harness", *arguments]

    def __call__(self, *arguments: str, code: int | tuple[int, ...] = 0, timeout: float = 420, **env: str):
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        expected = (code,) if isinstance(code, int) else code
        assert done.returncode in expected, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def begin(self, *arguments: str, **env: str) -> subprocess.Popen:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def runs(self) -> list[Path]:
        return sorted((self.folder / "results").iterdir())
