"""Ray Serve LLM before vLLM on a CPU, really run: 8 GB of memory, and minutes until it is up.

Without a way to any network: Ray's processes listen on all interfaces.
"""

import pytest

from harness.engines.provide.install import install_engine
from harness.engines.provide.models import ensure_weights
from harness.spec.backend_refs import load_backend
from harness.spec.models import choose_model
from tests.engines.runs import cells_of

pytestmark = pytest.mark.engine

NAME = "ray-vllm"
LOOPBACK_ONLY = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"')


def test_it_answers_every_request_and_its_definition_holds(tmp_path):
    env = install_engine(load_backend(NAME), print)
    name, model = choose_model(None)
    ensure_weights(name, model, "bf16-from-q4_1", env, print)
    small = ("--concurrency", "2", "--requests", "4", "--input-tokens", "32", "--output-tokens", "8")
    settings = ("--engine-set", "threads=1", "--set", "load.warmup_requests=1")
    folder, cells = cells_of(tmp_path, "fixed-length", [NAME], *small, *settings, inside=LOOPBACK_ONLY)
    cell = cells[NAME]
    assert cell["requests"]["ok"] == 4
    assert cell["output_tokens"]["total"] == 4 * 8
    assert cell["track"] == "bf16-from-q4_1"
    findings = folder.read_json(f"probe-{NAME}.json")["findings"]
    assert [finding for finding in findings if finding["holds"] is False] == []
    held = {finding["topic"] for finding in findings if finding["holds"]}
    assert {"exactly 32 tokens", "events sent", "prefix cache"} <= held
