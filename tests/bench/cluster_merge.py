"""Seconds and memory to put the records of many load processes together, on one clock.

`python -m tests.bench.cluster_merge [--events N] [--workers 10,100,1000]`. Each line is a process of its own;
exits 1 where memory that is not a mapped file grows with the events: of the figures it may by 32 bytes, since
exact percentiles need every gap.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from harness.load.spill import ROW_DTYPE, merge, move
from harness.records.layout import EVENT_DTYPE, EventKind, Outcome, Phase, empty_requests
from harness.store import RunFolder
from tests.factories.recorded import facts, summarise_cell

PER_REQUEST = 200  # events
GAP_NS = 20_000_000
BASE_MB, REQUEST_BYTES, GAP_BYTES = 128, 4096, 32


def anonymous_mb() -> float:
    """Memory of this process that no file stands behind."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this needs Linux")


class Steps:
    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        self._base = anonymous_mb()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        ended, most = threading.Event(), [0.0]

        def watch() -> None:
            while not ended.wait(0.01):
                most[0] = max(most[0], anonymous_mb() - self._base)

        thread, began = threading.Thread(target=watch), time.monotonic()
        thread.start()
        yield
        self.figures[f"{name}_s"] = time.monotonic() - began
        ended.set()
        thread.join()
        self.figures[f"{name}_mb"] = most[0]


def write(folder: Path, worker: int, workers: int, requests: int) -> None:
    """As a load process of an open loop leaves them: every `workers`th request."""
    rows = np.zeros(requests, ROW_DTYPE)
    plain = empty_requests(requests)
    for name in plain.dtype.names:
        rows[name] = plain[name]
    seqs = worker + workers * np.arange(requests)
    rows["seq"], rows["worker"] = seqs, worker
    rows["phase"], rows["outcome"] = Phase.MEASURE, Outcome.OK
    rows["intended_ns"] = rows["sent_ns"] = rows["start_ns"] = seqs * 1_000_000
    rows["first_text_ns"] = rows["sent_ns"] + 5 * GAP_NS
    rows["last_text_ns"] = rows["end_ns"] = rows["first_text_ns"] + (PER_REQUEST - 1) * GAP_NS
    rows["text_events"] = rows["output_tokens"] = PER_REQUEST
    rows["events"], rows["texts"] = PER_REQUEST * EVENT_DTYPE.itemsize, PER_REQUEST * 4
    folder.mkdir()
    (folder / "rows").write_bytes(rows.tobytes())
    events = np.zeros((requests, PER_REQUEST), EVENT_DTYPE)
    events["seq"], events["kind"], events["text_chars"] = seqs[:, None], EventKind.TEXT, 4
    events["stamp_ns"] = rows["first_text_ns"][:, None] + np.arange(PER_REQUEST) * GAP_NS
    (folder / "events").write_bytes(events.tobytes())
    (folder / "texts").write_bytes(b"word" * (PER_REQUEST * requests))
    for name in ("calls", "reasons", "errors"):
        (folder / name).touch()


def measure(events: int, workers: int) -> dict[str, float]:
    requests = events // PER_REQUEST // workers
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folders = [scratch / str(worker) for worker in range(workers)]
        for worker, folder in enumerate(folders):
            write(folder, worker, workers, requests)
        steps = Steps()
        with steps.step("move"):
            for folder in folders:
                move(folder, lambda since_t0: -(since_t0 // 1_000_000))
        with steps.step("merge"):
            records = merge(folders, empty_requests(0), "")
        assert len(records.events) == requests * workers * PER_REQUEST
        assert (np.diff(records.requests["seq"]) == 1).all()
        about = facts(planned=len(records.requests), load__kind="rate", load__value=1000)
        run_folder = RunFolder.create(scratch, "merged")
        with steps.step("store"):
            run_folder.write_cell(records, about)
        with steps.step("figures"):
            summarise_cell(records, about, None)
    return steps.figures | {"requests": requests * workers, "events": requests * workers * PER_REQUEST}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=50_000_000)
    parser.add_argument("--workers", default="10,100,1000")
    parser.add_argument("--here", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measure(arguments.events, arguments.here)))
        return 0
    steps = ("move", "merge", "store", "figures")
    heads = "".join(f"{f'{step} s':>11}{'MiB':>7}" for step in steps)
    print(f"{'workers':>7}{'requests':>10}{'events':>12}{heads}")
    failed = False
    for workers in map(int, arguments.workers.split(",")):
        here = ("--events", str(arguments.events), "--here", str(workers))
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, *here], stdout=subprocess.PIPE, check=True
        )
        figures = json.loads(done.stdout)
        cells = "".join(f"{figures[f'{step}_s']:>11.1f}{figures[f'{step}_mb']:>7.0f}" for step in steps)
        print(f"{workers:>7,}{figures['requests']:>10,.0f}{figures['events']:>12,.0f}{cells}", flush=True)
        limit_mb = BASE_MB + figures["requests"] * REQUEST_BYTES / 2**20
        failed |= max(figures[f"{step}_mb"] for step in ("move", "merge", "store")) > limit_mb
        failed |= figures["figures_mb"] > limit_mb + figures["events"] * GAP_BYTES / 2**20
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
