"""How often `--find-capacity` is wrong: searches on queues of known capacity, by the code of `bench run`.

    python -m tests.bench.capacity_study                # 40 runs a row on a virtual clock: an hour of a core
    python -m tests.bench.capacity_study --times 13     # about 40 searches a row
    python -m tests.bench.capacity_study --wire 1       # through the scripted server, in real time

A row is a server of so many slots whose service times are lognormal around their mean. Its truth is the
highest load that keeps the limit over a very long time, found by bisection on a queue of 400,000 requests.
Every probe is a cell of records that `summarise_cell` and the rules of the search see as if measured. Exits
with 1 where more than 5 % of the answers lie above the truth or more than 10 % below it.
"""

import argparse
import heapq
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from harness.compare.capacity import capacity
from harness.compare.slo_check import answers_needed, kept_limits
from harness.model import CellResult, LoadPoint
from harness.plan import (
    Cell,
    Probe,
    capacity_grid,
    load_points,
    long_probe,
    measured_requests,
    probe_of,
    seed_for,
)
from harness.records.layout import EVENT_DTYPE, EventKind, Outcome, Records, empty_requests
from harness.run.prepare import PROBE_SECONDS
from harness.run.repeats import SEARCHES
from harness.run.search import Search
from harness.spec.scenario import Load
from harness.summary import summarise_cell
from harness.workload.arrivals import arrivals
from tests.bench.capacity_wire import wire
from tests.factories.recorded import facts

NS = 1_000_000_000
WRONG_LIMIT = 0.05
BELOW = 0.10
LONG = 400_000
TOKENS = 2


@dataclass(frozen=True)
class Server:
    """First token after half the service, last at its end; what finds no slot waits in line."""

    name: str
    slots: int
    service_s: float  # mean
    sigma: float  # of its logarithm
    load: Load  # what the search is given
    metric: str
    share: str
    limit_ms: float

    @property
    def slo(self) -> dict[str, dict[str, float]]:
        return {self.metric: {self.share: self.limit_ms}}

    @property
    def served_per_s(self) -> float:
        """At most."""
        return self.slots / self.service_s


def row(name: str, slots: int, service_s: float, limit_ms: float, load: Load, *, sigma: float = 0.1,
        metric: str = "e2e_ms", share: str = "p95") -> Server:  # fmt: skip
    return Server(name, slots, service_s, sigma, load, metric, share, limit_ms)


def rates(low: float, high: float, arrival: str = "poisson") -> Load:
    return Load(requests=32, rate=(low, high), arrival=arrival)  # type: ignore[arg-type]  # a literal


SERVERS = (
    row("20/s, constant", 8, 0.4, 1000, rates(1, 64, "constant")),
    row("20/s, Poisson, tight", 8, 0.4, 700, rates(1, 64)),
    row("20/s, Poisson, loose", 8, 0.4, 5000, rates(1, 64)),
    row("20/s, Poisson, p99", 8, 0.4, 1000, rates(1, 64), share="p99"),
    row("200/s, constant", 80, 0.4, 600, rates(10, 640, "constant")),
    row("200/s, Poisson, tight", 80, 0.4, 600, rates(10, 640)),
    row("200/s, Poisson, loose", 80, 0.4, 5000, rates(10, 640)),
    row("closed loop, 8 slots", 8, 0.4, 260, Load(requests=32, concurrency=(1, 64)), metric="ttft_ms"),
    row("closed loop, more jitter", 8, 0.4, 290, Load(requests=32, concurrency=(1, 64)), sigma=0.15,
        metric="ttft_ms"),
)  # fmt: skip

Floats = NDArray[np.float64]


def queue(server: Server, due_s: Floats | int, count: int, random: np.random.Generator) -> tuple[Floats, ...]:
    """Start of each response time, begin and end of service. `due_s`: arrivals, or requests in flight."""
    services = server.service_s * np.exp(server.sigma * random.standard_normal(count) - server.sigma**2 / 2)
    free = [0.0] * server.slots
    starts, begins, ends = (np.empty(count) for _ in range(3))
    # A closed loop sends its next request when any of its answers ended.
    waiting = [0.0] * due_s if isinstance(due_s, int) else None
    for number, service in enumerate(services.tolist()):
        due = heapq.heappop(waiting) if waiting is not None else float(due_s[number])  # type: ignore[index]  # an array where nothing waits
        begin = max(due, free[0])
        heapq.heapreplace(free, begin + service)
        starts[number], begins[number], ends[number] = due, begin, begin + service
        if waiting is not None:
            heapq.heappush(waiting, begin + service)
    return starts, begins, ends


def times(server: Server, point: LoadPoint, count: int, seed: int) -> tuple[Floats, ...]:
    random = np.random.default_rng(seed)
    if point.kind == "concurrency":
        return queue(server, int(point.value), count, random)
    due = arrivals(server.load.arrival, point.value, count, seed)
    return queue(server, due / NS, count, random)


@cache
def truth(server: Server) -> float:
    """Highest load that keeps the limit for ever; of a closed loop a whole number."""
    if server.load.concurrency:
        return max(n for n in range(1, 3 * server.slots) if _keeps(server, LoadPoint("concurrency", n)))
    low, high = 0.0, server.served_per_s  # more than this can never be served
    while high - low > 0.0005 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _keeps(server, LoadPoint("rate", middle)) else (low, middle)
    return low


def _keeps(server: Server, point: LoadPoint) -> bool:
    starts, begins, ends = times(server, point, LONG, 1)
    first = begins + (ends - begins) / 2
    took = (first if server.metric == "ttft_ms" else ends) - starts
    share = float(server.share.removeprefix("p")) / 100
    return bool((took[LONG // 10 :] * 1e3 <= server.limit_ms).mean() >= share)


def cell(server: Server, point: LoadPoint, repeat: int, seed: int, probe: Probe) -> CellResult:
    """As `bench run` would have measured it."""
    count = measured_requests(server.load, point, probe)
    place = seed_for(seed, "study", server.name, point.label, repeat)
    starts, begins, ends = (np.round(column * NS).astype(np.int64)
                            for column in times(server, point, count, place))  # fmt: skip
    first = begins + (ends - begins) // 2
    rows = empty_requests(count)
    rows["outcome"], rows["attempts"] = Outcome.OK, 1
    for name in ("intended_ns", "start_ns", "sent_ns"):
        rows[name] = starts
    rows["first_text_ns"], rows["last_text_ns"], rows["end_ns"] = first, ends, ends
    rows["output_tokens"] = rows["text_events"] = TOKENS
    events = np.zeros(TOKENS * count, EVENT_DTYPE)
    events["seq"], events["kind"] = np.repeat(np.arange(count), TOKENS), EventKind.TEXT
    events["stamp_ns"] = np.column_stack([first, ends]).ravel()
    made = facts(
        identity__repeat=repeat,
        load={"kind": point.kind, "value": point.value, "arrival": server.load.arrival, "over_cap": "wait"},
        workload__output_tokens=TOKENS,
        planned=count,
        slo=server.slo,
        probe={"seconds": probe.seconds, "answers": probe.answers},
    )
    records = Records(rows, events, [""] * count, ["length"] * count, [""] * count)
    return summarise_cell(records, made, None)


def search(server: Server, seed: int, repeat: int, searches: int, probe: Probe) -> list[CellResult]:
    """Its cells, as harness.run.execute walks through them."""
    points = load_points(capacity_grid(server.load))
    made, walk = [], Search([point.value for point in points], reserve=points[0].kind == "rate")
    while (tried := walk.next) is not None:
        planned = Cell("", 0, points[tried.place], repeat)
        if tried.long:
            planned = long_probe(planned, searches)
        size = probe_of(probe, planned, searches)
        made.append(cell(server, planned.load, planned.repeat, seed, size))
        walk.told(tried, kept=kept_limits(made[-1]))
    return made


@dataclass
class Studied:
    """Loads in the unit of the row; 0 where there was no answer."""

    answers: list[float]  # of whole runs
    single: list[float]  # of their searches
    probes: float  # of a run, on average


def shares(answers: list[float], true: float) -> tuple[float, float]:
    """Of answers above the truth, and of those too far below it."""
    found = np.array(answers)
    return float((found > true).mean()), float((found < (1 - BELOW) * true).mean())


def study(server: Server, runs: int, searches: int, seconds: float) -> Studied:
    probe = Probe(seconds, answers_needed(server.slo))
    answers, single, probes = [], [], 0
    for number in range(runs):
        cells = [
            made for repeat in range(searches) for made in search(server, number, repeat, searches, probe)
        ]
        (found,) = capacity(cells, searches)
        answers.append(found.value or 0.0)
        single += [kept or 0.0 for kept in found.kept_by_search]
        probes += len(cells)
    return Studied(answers, single, probes / runs)


def table(arguments: argparse.Namespace) -> list[str]:
    """Prints a line per server; those that are wrong too often."""
    bad = []
    print(f"{arguments.times} runs a row of {arguments.searches} searches, {arguments.seconds:g} s a probe; "
          "answers: lowest, median, highest")  # fmt: skip
    print(f"{'server':<25} {'serves':>6} {'truth':>6}  {'answers':<21} {'above':>6} {'>10 % below':>11}  "
          f"{'of single searches':<20} {'probes':>6}")  # fmt: skip
    for server in SERVERS:
        if arguments.only not in server.name:
            continue
        true = truth(server)
        found = study(server, arguments.times, arguments.searches, arguments.seconds)
        above, below = shares(found.answers, true)
        alone = "{:.1%}, {:.1%}".format(*shares(found.single, true))
        spread = ", ".join(f"{value:.4g}" for value in np.quantile(found.answers, [0, 0.5, 1]))
        print(f"{server.name:<25} {server.served_per_s:>6.4g} {true:>6.4g}  {spread:<21} {above:>6.1%} "
              f"{below:>11.1%}  {alone:<20} {found.probes:>6.1f}", flush=True)  # fmt: skip
        if above + below > WRONG_LIMIT:
            bad.append(server.name)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--searches", type=int, default=SEARCHES, help="of one run")
    parser.add_argument("--seconds", type=float, default=PROBE_SECONDS["gpu"])
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds it")
    parser.add_argument("--wire", type=int, metavar="N", help="real runs of N searches instead")
    parser.add_argument("--requests", type=int, default=32, help="least of a load point, with --wire")
    arguments = parser.parse_args()
    bad = wire(arguments.wire, arguments.seconds, arguments.requests) if arguments.wire else table(arguments)
    if bad:
        print(f"wrong in more than {WRONG_LIMIT:.0%}: {', '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
