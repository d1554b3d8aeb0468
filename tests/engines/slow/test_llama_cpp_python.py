"""llama-cpp-python's server on a CPU, really run. Its wheel is compiled once: ten minutes on two cores."""

import subprocess
import sys

import pytest

from harness.engines.provide.install import installed
from harness.host import paths
from harness.probe import examine
from harness.spec.backend_refs import load_backend
from tests.engines.runs import cells_of

pytestmark = pytest.mark.engine

NAME = "llama-cpp-python"


@pytest.fixture(scope="module", autouse=True)
def wheel():
    """Where pip finds it, unless the environment stands already."""
    definition = load_backend(NAME)
    folder = paths.cache_dir() / "test-wheels" / NAME
    if not installed(definition) and not list(folder.glob("*.whl")):
        (asked,) = definition.process.install.requirements
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
        subprocess.run([*build, asked.replace("[server]", "")], check=True, timeout=3600)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_FIND_LINKS", str(folder))
        yield


def test_it_answers_every_request_and_tells_no_tokens(tmp_path):
    small = ("--concurrency", "2", "--requests", "4", "--input-tokens", "32", "--output-tokens", "8")
    settings = ("--engine-set", "threads=1", "--set", "load.warmup_requests=1")
    _, cells = cells_of(tmp_path, "fixed-length", [NAME], *small, *settings)
    assert cells[NAME]["requests"]["ok"] == 4
    assert cells[NAME]["output_tokens"]["total"] is None


def test_it_is_as_declared_and_a_new_request_ends_no_other(start):
    with start(NAME) as engine:
        probed = examine(engine)
    assert not probed.mismatches
    assert next(one.holds for one in probed.findings if one.topic == "3 streams at once")
