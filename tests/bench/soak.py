"""A long load on a simulated engine: memory and descriptors of every process, and times that must not drift.

    python -m tests.bench.soak [--minutes 120] [--rate 200]

From the second minute of the load to its end no process may grow by 1 MB a minute or more. Nor may it hold
more descriptors at the end, unless no more than the requests that were in flight at once: connections are
kept, and one stall of this machine needs many. The median TTFT and answer time of the last tenth may not
differ from the first's by more than 0.1 ms. At 200 requests/s two hours are 10^8 tokens. Prints a Markdown
table, the drift, and what a request takes on the disk; exits 1 where something grows or drifts.
"""

import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import chdir, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.metrics import in_flight
from harness.records.layout import Outcome
from harness.store import columns
from harness.store.confined import Confined
from tests.bench.command import options
from tests.integration.attacked import MARKS, Attacked
from tests.integration.scripted import define

WARM_UP_S = 120.0
MOST_MB_PER_MINUTE = 1.0
MOST_DRIFT_MS = 0.1
_TOKENS_PER_EVENT, _EVENTS = 9, 8  # after the first token
_EVERY_S = 1.0
_SPARE = 16  # descriptors that are no connections: files, pipes, the poller
_KEPT = 1000  # by the scripted server, so that it does not grow either
_END_S = 600.0  # for the summary, after the load


@dataclass(frozen=True)
class Sample:
    at_s: float
    rss_mb: float
    descriptors: int


class Soak(Attacked):
    def __init__(self, room: Path, minutes: float, rate: float) -> None:
        super().__init__(room)
        # Prompts are counted in words: asking a server for each of a million would take longer than the load.
        definition = define(
            "first",
            *("--keep-requests", str(_KEPT), "--tokens-per-event", str(_TOKENS_PER_EVENT)),
            ttft_ms=100,
            gap_ms=5 / _TOKENS_PER_EVENT,
        )
        lines = definition.read_text().splitlines(keepends=True)
        definition.write_text("".join(line for line in lines if not line.startswith("tokenize")))
        self.shell = 'exec "$@" >said 2>&1'  # a pipe that nobody reads is full after an hour
        self.minutes, self.rate = minutes, rate
        self.samples: dict[str, list[Sample]] = defaultdict(list)  # by process
        self.requests = self.tokens = self.most_in_flight = 0
        self.drift_ms: dict[str, float] = {}  # by metric, from the first tenth of the requests to the last

    def measure(self) -> None:
        words = (
            *("run", "--scenario", "fixed-length", "--backends", "first", "--rate", f"{self.rate:g}"),
            *("--duration", f"{60 * self.minutes:g}", "--requests", f"{60 * self.minutes * self.rate:.0f}"),
            *("--output-tokens", str(1 + _TOKENS_PER_EVENT * _EVENTS), "--no-probe", "--no-report"),
        )
        bench = self.begin(*words)
        try:
            until = time.monotonic() + 60 * self.minutes + _END_S
            while bench.poll() is None and time.monotonic() < until:
                self._sample(bench.pid)
                time.sleep(_EVERY_S)
                if self._set_aside():  # a busy machine: `bench` would load for the same hours again
                    bench.send_signal(signal.SIGINT)
                    break
        finally:
            code = self.finish(bench)
        assert code in (0, 4, 130), f"exit code {code}: {Path('said').read_text()[-2000:]}"
        self._look_back()

    def _set_aside(self) -> list[Path]:
        return [path for run in Path("results").glob("2*") for path in run.glob("set-aside/*")]

    def _look_back(self) -> None:
        (cell,) = self._set_aside() or [self.run().cell_path(name) for name in self.run().cells()]
        rows = columns.read_records(Confined(cell.parent), cell.name, closed_loop=False).requests
        answered = rows[rows["outcome"] == Outcome.OK]
        self.requests, self.tokens = len(rows), int(answered["output_tokens"].sum())
        self.most_in_flight = int(in_flight.steps(rows).counts.max())
        tenth = len(answered) // 10
        for name, end in (("TTFT", "first_text_ns"), ("answer time", "last_text_ns")):
            first, last = (
                np.median(part[end] - part["sent_ns"]) / 1e6 for part in (answered[:tenth], answered[-tenth:])
            )
            self.drift_ms[name] = float(last - first)

    def _sample(self, pid: int) -> None:
        """While there is a load."""
        if not self.processes("load worker"):
            return
        for name in ("bench", *MARKS):
            for number, one in enumerate([pid] if name == "bench" else self.processes(name)):
                with suppress(OSError):
                    self.samples[f"{name} {number}" if number else name].append(_sample_of(one))

    @property
    def disk_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.run().path.rglob("*") if path.is_file())


def _sample_of(pid: int) -> Sample:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    open_now = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Sample(time.monotonic(), pages * os.sysconf("SC_PAGESIZE") / 1e6, open_now)


def slope_mb_per_minute(samples: list[Sample]) -> float:
    minutes = np.array([one.at_s / 60 for one in samples])
    return float(np.polyfit(minutes - minutes[0], [one.rss_mb for one in samples], 1)[0])


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--rate", type=float, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as room, chdir(room):
        soak = Soak(Path(room), arguments.minutes, arguments.rate)
        soak.measure()
        disk = soak.disk_bytes / soak.requests
    print("| process | RSS, MB | slope, MB/min | descriptors | result |\n|---|--:|--:|--:|---|")
    wrong = 0
    for name, samples in soak.samples.items():
        steady = [one for one in samples if one.at_s - samples[0].at_s >= WARM_UP_S]
        if len(steady) < 60:
            wrong += 1
            print(f"| {name} | | | | {len(steady)} samples after {WARM_UP_S:g} s: too few |")
            continue
        slope, first, last = slope_mb_per_minute(steady), steady[0], steady[-1]
        needed = max(first.descriptors + 2, soak.most_in_flight + _SPARE)
        grows = slope >= MOST_MB_PER_MINUTE or last.descriptors > needed
        wrong += grows
        print(
            f"| {name} | {first.rss_mb:.0f} to {last.rss_mb:.0f} | {slope:+.3f} "
            f"| {first.descriptors} to {last.descriptors} | {'**grows**' if grows else 'flat'} |"
        )
    print(
        f"\n{soak.requests:,} requests and {soak.tokens:,} tokens in {arguments.minutes:g} minutes, "
        f"at most {soak.most_in_flight} in flight; {disk:,.0f} bytes on the disk each request."
    )
    for name, drift_ms in soak.drift_ms.items():
        wrong += abs(drift_ms) > MOST_DRIFT_MS
        print(f"Median {name}, last tenth minus first: {drift_ms:+.3f} ms.")
    return 1 if wrong or not soak.samples else 0


if __name__ == "__main__":
    sys.exit(main())
