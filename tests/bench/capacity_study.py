"""How often `--find-capacity` is wrong: searches on queues of known capacity, by the code of `bench run`.

    python -m tests.bench.capacity_study             # 40 runs a row on a virtual clock: 20 minutes of a core
    python -m tests.bench.capacity_study --arrivals  # how far chance moves a probe, plain and typical
    python -m tests.bench.capacity_study --pairs     # verdicts on the capacities of two servers
    python -m tests.bench.capacity_study --slots     # verdicts on servers of few slots, and of half as many
    python -m tests.bench.capacity_study --disturbed # a probe is disturbed, or a start is slow
    python -m tests.bench.capacity_study --wire 1       # through the scripted server, in real time

A row is a server of so many slots whose service times are lognormal around their mean. Its truth is the
highest load that keeps the limit over a very long time, found by bisection on a queue of 400,000 requests.
Every probe is a cell of records that `summarise_cell` and the rules of the search see as if measured. Exits
with 1 where more than 5% of the answers lie above the truth, or more than 10% of them more than 10% below,
in one row or in all of them together, and chance alone would not do that once in a thousand times.
"""

import argparse
import heapq
import math
import sys
from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from harness.model import Capacity, CellResult, LoadPoint
from harness.model.numbers import counted
from harness.plan import (
    GRID_STEPS,
    Cell,
    ProbeSizes,
    capacity_grid,
    make_plan,
    measured_requests,
    seed_for,
)
from harness.records.layout import EVENT_DTYPE, EventKind, Outcome, Records, empty_requests
from harness.run.search import probes
from harness.run.setup.capacity_search import PROBE_SECONDS
from harness.run.setup.repeats import SEARCHES
from harness.spec.scenario import Load
from harness.stats.binomial import share_above
from harness.verdicts.capacity import capacity
from harness.verdicts.capacity_pairs import capacity_pair
from harness.verdicts.slo_check import answers_needed
from harness.workload.arrivals import arrivals
from harness.workload.typical import typical_seed
from tests.bench.capacity_wire import wire
from tests.factories.recorded import facts, summarise_cell

NS = 1_000_000_000
WRONG_LIMIT = 0.05
CONFIDENCE = 0.999  # that a share is above its limit: two of 13 answers say little
BELOW = 0.10
LONG = 400_000
TOKENS = 2
FASTER = 1.3  # in a study of pairs
SLOWED = 1.5  # of the service times of a disturbed probe
SLOW = 1.3  # times that services of a slow start take
SLOTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
LIKELY_APART = 0.02  # of the starts of one engine


@dataclass(frozen=True)
class Trouble:
    """What makes a server slower for a while."""

    name: str = "none"
    probe: tuple[bool, int] | None = None  # disturbed: whether it is a long one, and which of its length
    share: float = 0.0  # of the probes, which are disturbed by chance
    slow: int | None = None  # start whose services take SLOW times as long
    drift: float = 0.0  # of the service times, from each probe to the next


TROUBLES = (
    Trouble(),
    *(Trouble(f"{name} short", probe=(False, number)) for number, name in ((1, "2nd"), (3, "4th"))),
    *(Trouble(f"{name} long", probe=(True, number)) for number, name in enumerate(("1st", "2nd", "3rd"))),
    Trouble("one in ten", share=0.1),
    *(Trouble(f"start {start + 1} slow", slow=start) for start in range(3)),
    Trouble("drift of 0.5%", drift=0.005),
)


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
    waiting: int | None = None  # places in line; a request that finds none is refused at once
    slower: float = 0.0  # how much longer a service is for each other one in progress when it begins

    @property
    def slo(self) -> dict[str, dict[str, float]]:
        return {self.metric: {self.share: self.limit_ms}}

    @property
    def served_per_s(self) -> float:
        """At most."""
        return self.slots / (self.service_s * (1 + self.slower * (self.slots - 1)))


def row(name: str, slots: int, service_s: float, limit_ms: float, load: Load, *, sigma: float = 0.1,
        metric: str = "e2e_ms", share: str = "p95", **more: float) -> Server:  # fmt: skip
    return Server(name, slots, service_s, sigma, load, metric, share, limit_ms, **more)  # type: ignore[arg-type]  # by name


def rates(low: float, high: float, arrival: str = "poisson") -> Load:
    return Load(requests=32, rate=(low, high), arrival=arrival)  # type: ignore[arg-type]  # a literal


SERVERS = (
    row("20/s, constant", 8, 0.4, 1000, rates(1, 64, "constant")),
    row("20/s, Poisson, tight", 8, 0.4, 700, rates(1, 64)),
    row("20/s, Poisson, loose", 8, 0.4, 5000, rates(1, 64)),
    row("20/s, Poisson, p99", 8, 0.4, 1000, rates(1, 64), share="p99"),
    row("20/s, refuses the 5th in line", 8, 0.4, 1500, rates(1, 64), waiting=4),
    row("20/s, lengths vary (sigma 0.5)", 8, 0.4, 1500, rates(1, 64), sigma=0.5),
    row("20/s, slower in a batch", 32, 0.6, 2000, rates(1, 64), slower=0.053),
    row("200/s, constant", 80, 0.4, 600, rates(10, 640, "constant")),
    row("200/s, Poisson, tight", 80, 0.4, 600, rates(10, 640)),
    row("200/s, Poisson, loose", 80, 0.4, 5000, rates(10, 640)),
    row("closed loop, 8 slots", 8, 0.4, 260, Load(requests=32, concurrency=(1, 64)), metric="ttft_ms"),
    row("closed loop, more jitter", 8, 0.4, 290, Load(requests=32, concurrency=(1, 64)), sigma=0.15,
        metric="ttft_ms"),
)  # fmt: skip

Floats = NDArray[np.float64]


def queue(server: Server, due_s: Floats | int, count: int, random: np.random.Generator) -> tuple[Floats, ...]:
    """Start of each response time, begin and end of service. `due_s`: arrivals, or requests in flight.

    A refused request has no begin.
    """
    services = server.service_s * np.exp(server.sigma * random.standard_normal(count) - server.sigma**2 / 2)
    free = [0.0] * server.slots
    line: deque[float] = deque()  # when those that wait begin
    starts, begins, ends = (np.empty(count) for _ in range(3))
    # A closed loop sends its next request when any of its answers ended.
    thinking = [0.0] * due_s if isinstance(due_s, int) else None
    for number, service in enumerate(services.tolist()):
        due = heapq.heappop(thinking) if thinking is not None else float(due_s[number])  # type: ignore[index]  # an array where nobody thinks
        begin = max(due, free[0])
        while line and line[0] <= due:
            line.popleft()
        if server.waiting is not None and begin > due and len(line) >= server.waiting:
            starts[number], begins[number], ends[number] = due, np.nan, due
            continue
        if begin > due:
            line.append(begin)
        if server.slower:
            service *= 1 + server.slower * sum(until > begin for until in free)
        heapq.heapreplace(free, begin + service)
        starts[number], begins[number], ends[number] = due, begin, begin + service
        if thinking is not None:
            heapq.heappush(thinking, begin + service)
    return starts, begins, ends


def times(
    server: Server, point: LoadPoint, count: int, seed: int, *, typical: bool = False
) -> tuple[Floats, ...]:
    random = np.random.default_rng(seed)
    if point.kind == "concurrency":
        return queue(server, int(point.value), count, random)
    if typical:
        seed = typical_seed(server.load.arrival, count, seed)
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
    share = float(server.share.removeprefix("p")) / 100
    return bool(_within(server, times(server, point, LONG, 1))[LONG // 10 :].mean() >= share)


def _within(server: Server, columns: tuple[Floats, ...]) -> NDArray[np.bool_]:
    starts, begins, ends = columns
    first = begins + (ends - begins) / 2
    took = (first if server.metric == "ttft_ms" else ends) - starts
    return np.asarray((took * 1e3 <= server.limit_ms) & ~np.isnan(begins))


def cell(server: Server, planned: Cell, seed: int) -> tuple[CellResult, float]:
    """As `bench run` would have measured it, and the seconds that it would have taken."""
    point, repeat, probe = planned.load, planned.repeat, planned.probe
    assert probe is not None
    count = measured_requests(server.load, point, probe)
    place = seed_for(seed, "study", server.name, point.label, repeat)
    columns = times(server, point, count, place, typical=True)
    refused = np.isnan(columns[1])
    starts, begins, ends = (np.round(np.nan_to_num(column) * NS).astype(np.int64) for column in columns)
    first = begins + (ends - begins) // 2
    rows = empty_requests(count)
    rows["outcome"], rows["attempts"] = np.where(refused, Outcome.HTTP_ERROR, Outcome.OK), 1
    for name in ("intended_ns", "start_ns", "sent_ns"):
        rows[name] = starts
    rows["end_ns"] = ends
    answered = np.flatnonzero(~refused)
    rows["first_text_ns"][answered], rows["last_text_ns"][answered] = first[answered], ends[answered]
    rows["output_tokens"][answered] = rows["text_events"][answered] = TOKENS
    events = np.zeros(TOKENS * len(answered), EVENT_DTYPE)
    events["seq"], events["kind"] = np.repeat(answered, TOKENS), EventKind.TEXT
    events["stamp_ns"] = np.column_stack([first, ends])[answered].ravel()
    made = facts(
        identity__repeat=repeat,
        load={"kind": point.kind, "value": point.value, "arrival": server.load.arrival, "over_cap": "wait"},
        workload__output_tokens=TOKENS,
        planned=count,
        slo=server.slo,
        probe={"seconds": probe.seconds, "answers": probe.answers},
    )
    reasons = ["" if gone else "length" for gone in refused]
    records = Records(rows, events, [""] * count, reasons, [""] * count)
    return summarise_cell(records, made, None), float((ends.max() - starts.min()) / NS)


def searched(
    server: Server,
    seed: int,
    searches: int,
    sizes: ProbeSizes,
    apart: float = 0.0,
    trouble: Trouble = TROUBLES[0],
) -> tuple[list[CellResult], list[float]]:
    """Its cells as harness.run.execute asks for them, and their seconds.

    `apart`: standard deviation of the logarithm of a start's service times.
    """
    random = np.random.default_rng(seed)
    slower = np.exp(apart * random.standard_normal(searches)).tolist()
    if trouble.slow is not None:
        slower[trouble.slow] *= SLOW
    measured: list[CellResult] = []
    seconds: list[float] = []
    for block in make_plan([server.name], capacity_grid(server.load), searches):
        for planned in probes(block, searches, sizes, lambda: measured):
            factor = slower[planned.repeat % searches] * (1 + trouble.drift * len(measured))
            is_long = planned.repeat >= searches
            number = sum((other.repeat >= searches) == is_long for other in measured)
            if trouble.probe == (is_long, number) or random.random() < trouble.share:
                factor *= SLOWED
            at = replace(server, service_s=factor * server.service_s)
            result, lasted_s = cell(at, planned, seed)
            measured.append(result)
            seconds.append(lasted_s)
    return measured, seconds


@dataclass
class Studied:
    """Loads in the unit of the row; 0 where there was no answer."""

    answers: list[float]
    inside: float  # share of the intervals that hold the truth
    load_s: float  # of a run, on average
    probes: float  # likewise
    false: float  # share of the pairs of these runs, which are equal, with a verdict


def shares(answers: list[float], true: float) -> tuple[float, float]:
    """Of answers above the truth, and of those too far below it."""
    found = np.array(answers)
    return float((found > true).mean()), float((found < (1 - BELOW) * true).mean())


def study(
    server: Server,
    true: float,
    runs: int,
    searches: int,
    seconds: float,
    trouble: Trouble = TROUBLES[0],
) -> Studied:
    sizes = ProbeSizes(seconds, answers_needed(server.slo), server.load.requests)
    found: list[Capacity] = []
    load_s, probed = 0.0, 0
    for number in range(runs):
        moved = _moved(server, number / runs)
        cells, lasted_s = searched(moved, number, searches, sizes, trouble=trouble)
        found += capacity(cells, searches)
        load_s += sum(lasted_s)
        probed += len(cells)
    inside = [(low or 0.0) <= true <= (math.inf if high is None else high)
              for low, _, high in (each.interval for each in found)]  # fmt: skip
    return Studied(
        answers=[each.value or 0.0 for each in found],
        inside=float(np.mean(inside)),
        load_s=load_s / runs,
        probes=probed / runs,
        false=_false(found),
    )


def _false(equal: list[Capacity]) -> float:
    """Share of the pairs of equal servers with a verdict."""
    return float(
        np.mean(
            [capacity_pair(a, b, None).verdict != "undecided" for a, b in combinations(equal, 2)] or [0.0]
        )
    )


def pairs(arguments: argparse.Namespace) -> list[str]:
    """Prints how often two searches of equal servers get a verdict, and those of one that is faster."""
    print(f"{arguments.times} searches of each server, all pairs; false: equal servers with a verdict; then "
          f"the pairs in which one server is {FASTER:g} times as fast")  # fmt: skip
    print(f"{'server':<30} {'starts differ':>13} {'false':>6} {'true ratio':>10} {'found':>6} {'inside':>6}")
    wrong = []
    for server in SERVERS:
        if arguments.only not in server.name:
            continue
        faster = replace(server, service_s=server.service_s / FASTER)
        true = truth(faster) / truth(server)
        for apart in (0.0, 0.02, 0.05):
            equal, ahead = (
                [
                    _capacity(_moved(one, number / arguments.times), seed + number, arguments, apart)
                    for number in range(arguments.times)
                ]
                for seed, one in ((0, server), (arguments.times, faster))
            )
            false = _false(equal)
            found = [capacity_pair(a, b, None) for a in ahead for b in equal]
            inside = [
                (low or 0.0) <= true <= (high or math.inf) for low, _, high in (one.ratio for one in found)
            ]
            print(
                f"{server.name:<30} {apart:>13.0%} {false:>6.1%} {true:>10.3f} "
                f"{np.mean([one.verdict == 'more' for one in found]):>6.1%} {np.mean(inside):>6.1%}",
                flush=True,
            )
            likely = apart <= LIKELY_APART
            if (likely and false > WRONG_LIMIT) or any(one.verdict == "fewer" for one in found):
                wrong.append(server.name)
    return wrong


def slots(arguments: argparse.Namespace) -> list[str]:
    """Prints how often two searches of servers of equal slots get a verdict, and those of half as many."""
    print(f"{arguments.times} searches of each server in a closed loop, all pairs; false: equal servers "
          "with a verdict; half: found of a server of half the slots")  # fmt: skip
    print(f"{'slots':>5} {'sigma':>6} {'starts differ':>13} {'false':>6} {'half':>6}")
    wrong = []
    for sigma in (0.25, 0.4, 0.6):
        for apart in (0.0, 0.02, 0.05):
            found = {count: _of_slots(count, sigma, apart, arguments) for count in SLOTS}
            for count, mine in found.items():
                false = _false(mine)
                half = [capacity_pair(a, b, None).verdict for a in mine for b in found.get(count // 2, ())]
                share = f"{np.mean([verdict == 'more' for verdict in half]):.1%}" if half else "-"
                print(f"{count:>5} {sigma:>6} {apart:>13.0%} {false:>6.1%} {share:>6}", flush=True)
                if (apart <= LIKELY_APART and false > 2 * WRONG_LIMIT) or "fewer" in half:
                    wrong.append(f"{count} slots")
    return wrong


def disturbed(arguments: argparse.Namespace) -> list[str]:
    """Prints the answers of searches of which a probe met a server that was busy with something else, or one
    start of the engine came out slow. The truth is that of the other starts.
    """
    print(f"{arguments.times} runs a row; a disturbed probe meets services of {SLOWED:g} times the length, "
          f"a slow start {SLOW:g} times; false: pairs of these runs with a verdict")  # fmt: skip
    print(f"{'server':<30} {'trouble':<13} {'truth':>6}  {'answers':<21} {'above':>6} {'>10% below':>11} "
          f"{'inside':>6} {'false':>6} {'probes':>6} {'load':>5}")  # fmt: skip
    wrong = []
    for server in (*SERVERS, _with_slots(6, 0.6), _with_slots(24, 0.6)):
        if arguments.only not in server.name:
            continue
        true = truth(server)
        for trouble in TROUBLES:
            found = study(server, true, arguments.times, arguments.searches, arguments.seconds, trouble)
            above, below = shares(found.answers, true)
            spread = ", ".join(f"{value:.4g}" for value in np.quantile(found.answers, [0, 0.5, 1]))
            print(f"{server.name:<30} {trouble.name:<13} {true:>6.4g}  {spread:<21} {above:>6.1%} "
                  f"{below:>11.1%} {found.inside:>6.1%} {found.false:>6.1%} {found.probes:>6.1f} "
                  f"{found.load_s:>5.0f}", flush=True)  # fmt: skip
            if trouble.slow is None and np.median(found.answers) < (1 - BELOW) * true:
                wrong.append(f"{server.name}, {trouble.name}")
    return wrong


def _of_slots(count: int, sigma: float, apart: float, arguments: argparse.Namespace) -> list[Capacity]:
    server = _with_slots(count, sigma)
    return [_capacity(server, seed, arguments, apart) for seed in range(arguments.times)]


def _with_slots(count: int, sigma: float) -> Server:
    """The limit leaves 15% above the p95 of a first token that does not wait."""
    limit_ms = 200 * math.exp(1.645 * sigma - sigma**2 / 2) * 1.15
    load = Load(requests=32, concurrency=(1, 64))
    return row(f"{count} slots", count, 0.4, limit_ms, load, sigma=sigma, metric="ttft_ms")


def _capacity(server: Server, seed: int, arguments: argparse.Namespace, apart: float) -> Capacity:
    sizes = ProbeSizes(arguments.seconds, answers_needed(server.slo), server.load.requests)
    cells, _ = searched(server, seed, arguments.searches, sizes, apart)
    (found,) = capacity(cells, arguments.searches)
    return found


def _moved(server: Server, part: float) -> Server:
    """With the loads of an open loop moved by a part of a grid step, so that no load is favoured."""
    factor = 2 ** (part / GRID_STEPS)
    return replace(server, load=replace(server.load, rate=tuple(rate * factor for rate in server.load.rate)))


def table(arguments: argparse.Namespace) -> list[str]:
    """Prints a line per server; returns those that are wrong too often."""
    wrong: dict[str, tuple[float, float]] = {}
    print(f"{arguments.times} runs a row of {counted(arguments.searches, 'start')}; "
          "answers: lowest, median, highest; load: seconds")  # fmt: skip
    print(f"{'server':<30} {'serves':>6} {'truth':>6}  {'answers':<21} {'above':>6} {'>10% below':>11} "
          f"{'inside':>6} {'load':>5}")  # fmt: skip
    for server in SERVERS:
        if arguments.only not in server.name:
            continue
        true = truth(server)
        found = study(server, true, arguments.times, arguments.searches, arguments.seconds)
        above, below = shares(found.answers, true)
        spread = ", ".join(f"{value:.4g}" for value in np.quantile(found.answers, [0, 0.5, 1]))
        print(
            f"{server.name:<30} {server.served_per_s:>6.4g} {true:>6.4g}  {spread:<21} {above:>6.1%} "
            f"{below:>11.1%} {found.inside:>6.1%} {found.load_s:>5.0f}",
            flush=True,
        )
        wrong[server.name] = above, below
    rows = [(name, found, arguments.times) for name, found in wrong.items()]
    together = np.mean(list(wrong.values()), axis=0) if wrong else (0.0, 0.0)
    rows.append(("all rows together", tuple(together), arguments.times * len(wrong)))
    return [name for name, (above, below), count in rows if too_often(above, below, count)]


def too_often(above: float, below: float, count: int) -> bool:
    """Whether so many of `count` answers are wrong that chance does not explain it."""
    limits = ((above, WRONG_LIMIT), (below, 2 * WRONG_LIMIT))
    return any(share_above(round(share * count), count, CONFIDENCE) > limit for share, limit in limits)


def spread(arguments: argparse.Namespace) -> list[str]:
    """Prints how far chance moves the share of requests within the limit, at the load that is the truth."""
    seconds = 200.0
    print(f"{arguments.times} probes of {seconds:g} s a row at the truth; share beyond the limit: "
          "5%, median, 95% of the probes")  # fmt: skip
    for server in SERVERS:
        if server.load.arrival != "poisson" or not server.load.rate or arguments.only not in server.name:
            continue
        point = LoadPoint("rate", truth(server))
        count = round(seconds * point.value)
        for typical in (False, True):
            beyond = [1 - _within(server, times(server, point, count, seed, typical=typical)).mean()
                      for seed in range(1, 10_000 * arguments.times, 10_000)]  # fmt: skip
            shown = ", ".join(f"{share:.2%}" for share in np.quantile(beyond, [0.05, 0.5, 0.95]))
            print(f"{server.name:<30} {'typical' if typical else 'plain':<8} {shown}", flush=True)
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--searches", type=int, default=SEARCHES, help="of one run")
    parser.add_argument("--seconds", type=float, default=PROBE_SECONDS)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds it")
    parser.add_argument("--arrivals", action="store_true", help="what typical arrivals do, instead")
    parser.add_argument("--pairs", action="store_true", help="verdicts on two servers, instead")
    parser.add_argument("--slots", action="store_true", help="verdicts on servers of few slots, instead")
    parser.add_argument("--disturbed", action="store_true", help="disturbed probes and slow starts, instead")
    parser.add_argument("--wire", type=int, metavar="N", help="real runs of N searches instead")
    parser.add_argument("--requests", type=int, default=32, help="least of a load point, with --wire")
    arguments = parser.parse_args()
    if arguments.wire:
        bad = wire(arguments.wire, arguments.seconds, arguments.requests)
    else:
        chosen = (
            (arguments.arrivals, spread),
            (arguments.pairs, pairs),
            (arguments.slots, slots),
            (arguments.disturbed, disturbed),
        )
        shown = next((study for asked, study in chosen if asked), table)
        bad = shown(arguments)
    if bad:
        print(f"wrong in more than {WRONG_LIMIT:.0%}: {', '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
