import os
import shutil
from contextlib import contextmanager

import pytest

from tests.cluster.network import BIN, GAP_MS, HEAD, OTHER, TRUTH_PORT, TTFT_MS, Machines


@contextmanager
def cluster(rough=None):
    """Two nodes and a scripted server; whatever was started is gone afterwards."""
    if os.geteuid() or not shutil.which("ip"):
        pytest.fail("this lane needs root and iproute2")
    made = Machines(rough)
    try:
        made.join()
        made.start(
            "truth",
            HEAD,
            *(BIN / "bench", "truth", "--host", HEAD, "--port", TRUTH_PORT),
            *("--ttft-ms", TTFT_MS, "--gap-ms", GAP_MS, "--no-prefix-cache"),
        )
        made.head = made.node(HEAD)
        made.other = made.node(OTHER)
        made.wait_for(TRUTH_PORT)
        yield made
    finally:
        left = made.close()
    assert not left, f"still running: {left}"


@pytest.fixture(scope="module")
def machines():
    with cluster() as made:
        yield made
