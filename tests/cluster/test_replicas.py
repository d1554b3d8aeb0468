"""Two nodes load two servers of one model, joined with `+`."""

import numpy as np
import pytest

from tests.cluster.network import BIN, GAP_MS, HEAD, OTHER, TRUTH_PORT, TTFT_MS
from tests.cluster.runs import TWO, cell_of, measured

SLOWER_MS = 3 * TTFT_MS


@pytest.fixture(scope="module")
def second(machines):
    """The URLs of both servers: the second one is on the other machine and slower."""
    machines.start(
        "second",
        OTHER,
        *(BIN / "bench", "truth", "--host", OTHER, "--port", TRUTH_PORT),
        *("--ttft-ms", SLOWER_MS, "--gap-ms", GAP_MS, "--no-prefix-cache"),
    )
    machines.wait_for(TRUTH_PORT, OTHER)
    return f"http://{HEAD}:{TRUTH_PORT}+http://{OTHER}:{TRUTH_PORT}"


def test_each_node_sends_to_both_and_no_server_is_taken_for_a_node(machines, second):
    machines.ledger(reset=True, address=OTHER)
    load = ("--rate", "20", "--requests", "200")
    folder, done = measured(machines, *load, *TWO, "--backends", f"openai={second}", out="replicas")
    records, facts = cell_of(folder)
    rows = records.requests
    assert (rows["outcome"] == 0).all()
    for place, address in enumerate((HEAD, OTHER)):
        received = np.array([one["received_ns"] for one in machines.ledger(address=address)["records"]])
        here = rows[rows["replica"] == place]
        assert np.count_nonzero(received > facts.t0_monotonic_ns) == len(here) == len(rows) / 2
        ttft_ms = (here["first_text_ns"] - here["sent_ns"]) / 1e6
        for worker in (0, 1):
            assert abs(np.count_nonzero(here["worker"] == worker) - len(here) / 2) <= 1
            true_ms = (TTFT_MS, SLOWER_MS)[place]
            assert true_ms - 1 < np.median(ttft_ms[here["worker"] == worker]) < true_ms + 10
    assert "replica-slower" in done.stdout
    assert "node-differs" not in done.stdout
