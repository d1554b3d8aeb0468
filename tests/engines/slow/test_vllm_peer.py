"""`vllm bench serve` on a server of known timing says what `bench report --as vllm` foresees."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.engines.provide.install import install_engine
from harness.engines.provide.models import ensure_weights
from harness.spec.backend_refs import load_backend
from harness.spec.models import choose_model

pytestmark = pytest.mark.engine

CHECKOUT = Path(__file__).resolve().parents[3]


def test_an_early_role_chunk_ends_its_ttft_as_foreseen():
    """The habit that makes the largest difference: 100 ms here, next to nothing there."""
    env = install_engine(load_backend("vllm"), print)
    name, model = choose_model(None)
    weights = ensure_weights(name, model, "bf16-from-q4_1", env, print)
    peers = ["--peer", f"vllm={env.bin / 'vllm'}"]
    asked = [*peers, "--tokenizer", weights.model, "--only", "role chunk at once"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.peer_views", *asked],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    row = [line for line in done.stdout.splitlines() if "TTFT p50" in line][-1]  # two, where measured again
    here, predicted, said = (float(cell) for cell in row.split("|")[4:7])
    assert here > 95
    assert max(predicted, said) < 20
