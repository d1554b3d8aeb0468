"""How far the printed rates are from the truth, in closed loops whose every answer is known.

    python -m tests.bench.rates [--times N] [--wire]

Simulated cells go through the code of `bench run`: a warm-up wave, then `waves` of as many requests as
there are slots, all slots begun at once (lockstep) or one after another (spread). The truth of a cell is
slots / mean time of its measured requests; the bias is the mean over many cells. Exits with 1 where it is
above 1%, and that by more than two standard errors, in a row that is said to hold. With --wire a few cells
are measured from `bench truth` through `bench run --json` instead.
"""

import heapq
import json
import sys
import tempfile
from dataclasses import dataclass

import numpy as np

from harness.metrics.goodput import goodput
from harness.metrics.sample_size import WAVES_AT_CV_1
from harness.metrics.throughput import rates
from harness.metrics.view import RequestView
from harness.metrics.window import measured_window, work_shares
from harness.mockserver import running
from harness.records.layout import EVENT_DTYPE, EventKind, Outcome, Phase, Records, empty_requests
from tests.bench.command import bench, options

NS = 1_000_000_000
TOKENS = 60  # of an answer of mean length: each takes as long as it is long
LIMIT = 0.01
WAVES = (1, 2, 3, 5, 10, 20, 50)
REQUESTS_A_ROW = 40_000  # simulated, over all cells of one number of waves


@dataclass(frozen=True)
class Row:
    slots: int
    cv: float  # of the answers' times, lognormal; 0: equal
    spread: bool

    def holds(self, waves: int) -> bool:
        """Where `few-waves` has no doubt, the bias is at most LIMIT."""
        return self.slots == 1 or waves >= WAVES_AT_CV_1 * self.cv**2

    @property
    def title(self) -> str:
        lengths = f"lognormal, cv {self.cv:g}" if self.cv else "equal"
        return f"{self.slots:>4}  {lengths:<18} {'spread' if self.spread else 'lockstep':<9}"


def simulate(row: Row, waves: int, random: np.random.Generator) -> Records:
    count = row.slots * (waves + 1)
    sigma = np.sqrt(np.log1p(row.cv**2))
    took = np.round(random.lognormal(-(sigma**2) / 2, sigma, count) * NS).astype(np.int64)
    free = [slot * NS // row.slots if row.spread else 0 for slot in range(row.slots)]
    requests = empty_requests(count)
    for seq in range(count):
        requests["sent_ns"][seq] = sent = heapq.heappop(free)
        heapq.heappush(free, sent + took[seq])
    requests["outcome"] = Outcome.OK
    requests["phase"][: row.slots] = Phase.WARMUP
    requests["intended_ns"] = requests["start_ns"] = requests["sent_ns"]
    requests["last_text_ns"] = requests["end_ns"] = requests["sent_ns"] + took
    requests["first_text_ns"] = requests["sent_ns"] + took // 10
    requests["output_tokens"] = np.maximum(1, np.round(took * TOKENS / NS))
    events = np.zeros(count, EVENT_DTYPE)
    events["seq"], events["kind"], events["stamp_ns"] = np.arange(count), EventKind.TEXT, requests["end_ns"]
    return Records(requests, events, (), (), ())


def errors(records: Records, slots: int) -> list[float]:
    """Relative, of requests/s, tokens/s and goodput. Good: as short as the median answer, or shorter."""
    requests = records.requests
    window = measured_window(requests, slots)
    assert window is not None
    shares = work_shares(requests, records.events, window, closed_loop=True)
    rows = requests[requests["phase"] == Phase.MEASURE]
    took = (rows["end_ns"] - rows["sent_ns"]) / NS
    limit_ms = float(np.quantile(took, 0.5, method="higher")) * 1e3 + 1e-3
    shown = rates(records, window, shares)
    good = goodput(RequestView(records), {"e2e_ms": {"p50": limit_ms}}, window, shares).requests_per_s
    made = (shown["requests_per_s"], shown["output_tokens_per_s"], good)
    each = (1.0, float(rows["output_tokens"].mean()), float((took * 1e3 <= limit_ms).mean()))
    return [
        (value or 0.0) / (slots / took.mean() * amount) - 1 for value, amount in zip(made, each, strict=True)
    ]


def study(most: int) -> list[str]:
    """Prints a table; what is above LIMIT where it should hold."""
    bad = []
    print(f"bias in % of requests/s, tokens/s and goodput by measured waves, of at most {most} cells each")
    print("*: not held to 1%")
    print(f"{'slots':<6}{'answers':<19}{'start':<10}" + "".join(f"{waves:>19}" for waves in WAVES))
    for cv in (0.0, 0.5, 1.0):
        for spread in (False, True):
            for slots in (1, 8, 64, 256):
                row = Row(slots, cv, spread)
                line = row.title
                for waves in WAVES:
                    bias, error = _bias(row, waves, most)
                    held = row.holds(waves)
                    numbers = " ".join(f"{100 * value:+5.1f}" for value in bias)
                    line += numbers.rjust(18) + (" " if held else "*")
                    if held and (np.abs(bias) > LIMIT + 2 * error).any():
                        bad.append(f"{' '.join(row.title.split())}, {waves} waves")
                print(line, flush=True)
    return bad


def _bias(row: Row, waves: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean of each of the errors, and its standard error."""
    times = max(20, min(most, REQUESTS_A_ROW // (row.slots * (waves + 1)))) if row.cv else 1
    random = np.random.default_rng([row.slots, round(10 * row.cv), row.spread, waves])
    found = np.array([errors(simulate(row, waves, random), row.slots) for _ in range(times)])
    return found.mean(axis=0), found.std(axis=0) / times**0.5


# ttft, gap in ms, slots, requests, tokens of each → requests/s at its height
WIRE = (
    ("40", "16.5", 32, 64, 60),
    ("lognormal:1000:0.4", "10", 8, 16, 8),
    ("lognormal:1000:0.4", "10", 8, 24, 8),
    ("lognormal:1000:0.4", "10", 8, 32, 8),
    ("lognormal:1000:0.4", "10", 8, 64, 8),
)


def wire() -> None:
    """The truth is slots / mean time of the measured answers, and tokens/s / tokens must be the same."""
    print(
        "TTFT ms             gap ms  slots  requests  requests/s  slots/time  tokens/s/tokens  goodput  laws"
    )
    for ttft, gap, slots, requests, tokens in WIRE:
        with running(ttft_ms=ttft, gap_ms=gap) as server:
            cell = _measured(server.url, slots, requests, tokens)
        truth = slots / cell["time_in_system_ms_mean"] * 1e3
        broken = [law["law"] for law in cell["conservation"] if law["holds"] is False]
        print(
            f"{ttft:<18}  {gap:>6}  {slots:>5}  {requests:>8}  "
            f"{cell['requests_per_s']:>10.2f}  {truth:>10.2f}  "
            f"{cell['output_tokens_per_s'] / tokens:>15.2f}  {cell['goodput_requests_per_s']:>7.2f}  "
            f"{', '.join(broken) or 'hold'}",
            flush=True,
        )


def _measured(url: str, slots: int, requests: int, tokens: int) -> dict:
    what = ("--scenario", "fixed-length", "--backends", f"openai={url}", "--model-name", "simulated")
    load = ("--concurrency", slots, "--requests", requests, "--output-tokens", tokens, "--repeats", 1)
    load += ("--set", "load.warmup_requests=0", "--set", "slo.e2e_ms.max=60000")
    plain = ("--no-agreement", "--no-probe", "--json")
    with tempfile.TemporaryDirectory() as out:
        done = bench("run", *what, *load, *plain, "--out", out, limit_s=180)
    if done.returncode not in (0, 4):
        raise SystemExit(done.stderr)
    (cell,) = json.loads(done.stdout)["cells"]
    return cell


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--times", type=int, default=1500, help="most cells per number of waves (1500)")
    parser.add_argument("--wire", action="store_true", help="measure bench truth through bench run instead")
    arguments = parser.parse_args()
    if arguments.wire:
        wire()
        return 0
    bad = study(arguments.times)
    for line in bad:
        print(f"bias above {LIMIT:.0%}: {line}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
