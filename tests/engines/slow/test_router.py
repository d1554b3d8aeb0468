"""A real router before two real llama.cpp servers: one URL for the requests, the counters behind it."""

import subprocess
import venv
from contextlib import contextmanager

import httpx
import pytest

from harness.engines.start.ports import free_port
from harness.host import paths
from tests.engines.runs import cells_of
from tests.waiting import until

pytestmark = pytest.mark.engine

PACKAGE, VERSION = "sglang_router", "0.3.2"
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def python():
    """That of the router's environment, in the cache."""
    room = paths.cache_dir() / "test-wheels" / f"{PACKAGE}-{VERSION}"
    own = room / "bin" / "python"
    if not (room / "ready").exists():
        venv.create(room, clear=True, with_pip=True)
        subprocess.run([own, "-m", "pip", "install", "--quiet", f"{PACKAGE}=={VERSION}"], check=True)
        (room / "ready").touch()
    return own


@contextmanager
def router(python, log, *workers):
    """Its URL."""
    port, metrics = free_port(HOST), free_port(HOST)
    flags = ["--host", HOST, "--port", port, "--prometheus-port", metrics, "--policy", "round_robin"]
    command = [python, "-m", f"{PACKAGE}.launch_router", "--worker-urls", *workers, *flags]
    url = f"http://{HOST}:{port}"

    def answers():
        try:
            return httpx.get(f"{url}/v1/models").is_success
        except httpx.TransportError:
            return False

    with log.open("wb") as out, subprocess.Popen([*map(str, command)], stdout=out, stderr=out) as process:
        try:
            until(answers, "the router answers")
            yield url
        finally:
            process.terminate()


def test_the_servers_counters_add_up_to_the_answers(python, start, tmp_path):
    definition = (paths.shipped("backends") / "llamacpp.toml").read_text()
    definition = definition.replace('name = "llamacpp"', 'name = "routed"')
    definition = definition.replace("top_k = 0", "top_k = -1")  # the router refuses llama.cpp's word for all
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends" / "routed.toml").write_text(definition)
    with (
        start("llamacpp") as one,
        start("llamacpp") as other,
        router(python, tmp_path / "router.log", one.base_url, other.base_url) as url,
    ):
        metrics = [word for engine in (one, other) for word in ("--metrics-url", engine.base_url)]
        small = ("--concurrency", "4", "--requests", "16", "--input-tokens", "32", "--output-tokens", "8")
        warm = ("--set", "load.warmup_requests=4", "--no-probe")
        _, cells = cells_of(tmp_path, "fixed-length", [f"routed={url}"], *small, *warm, *metrics)
        (cell,) = cells.values()
        assert cell["requests"]["ok"] == 16
        assert cell["output_tokens"]["total"] == 16 * 8
        assert cell["server"]["output_tokens"] == (16 + 4) * 8
        shares = [engine.counters()["output_tokens"] for engine in (one, other)]
        assert min(shares) > 0.4 * sum(shares)  # each gets its turn
