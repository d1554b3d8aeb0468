import os
import shutil

import pytest
from network import BIN, GCS_PORT, HEAD, OTHER, TRUTH_PORT, Machines

# Known to the server: what a client must find.
TTFT_MS, GAP_MS = 50, 10


@pytest.fixture(scope="session")
def machines():
    if os.geteuid() or not shutil.which("ip"):
        pytest.fail("this lane needs root and iproute2")
    made = Machines()
    try:
        made.join()
        made.start(
            "truth",
            HEAD,
            *(BIN / "bench", "truth", "--host", HEAD, "--port", TRUTH_PORT),
            *("--ttft-ms", TTFT_MS, "--gap-ms", GAP_MS),
        )
        made.head = made.node(HEAD)
        made.wait_for(GCS_PORT)
        made.other = made.node(OTHER)
        made.wait_for(TRUTH_PORT)
        yield made
    finally:
        left = made.close()
    assert not left, f"still running: {left}"
