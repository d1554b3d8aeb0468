"""How often verdicts of paired engines are wrong, and how soon they come, against engines that take turns.

    python -m tests.bench.pairing_study [--runs 20] [--at-once 4] [--ways starts,blocks,servers]
    python -m tests.bench.pairing_study --drawn 400     # drawn runs through the functions of the verdicts

Whole `bench run`s of servers of known truth: equal, 5% and 10% slower. The machine's speed wanders for both
(6% for 60 s), that of each by itself (3% for 2 s), and a start draws a speed of its own (1%), which it
keeps. `starts` is today's rule, `blocks` alternates short blocks between engines that bench starts, `servers`
between two URLs, whose start is not drawn: there the question is about two running servers. `turns`, where it
is asked for, alternates whole runs between such. Prints a Markdown table: false verdicts, verdicts found,
minutes to the end of a run. Exits with 1 where more than 5% of the verdicts of a row are false.
"""

import itertools
import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from tests.bench.audit.servers_load import Server, serve_at, serving
from tests.bench.command import ROOT, bench, options
from tests.bench.pairing_drawn import RUNNING, Noise, Times, decided, pairing_of

NAMES, SLOWER, WAYS = ("one", "two"), (1.0, 1.05, 1.1), ("starts", "blocks", "servers")
GAP_MS, TTFT_MS, STARTUP_S = 10.0, 20.0, 4.0
NOISE = Noise(machine=0.06, machine_s=60.0, own=0.03, own_s=2.0, start=0.01)
DRAWN = (
    NOISE,
    replace(NOISE, machine=0.0),
    replace(NOISE, machine=0.0, own=0.08, own_s=30.0, start=0.0),
    replace(NOISE, machine=0.0, own=0.08, own_s=120.0, start=0.0),
    replace(NOISE, machine=0.0, own=0.15, own_s=0.1, start=0.0),  # independent from block to block
)
FALSE_LIMIT, LIMIT_S, GRID, GRID_POINTS = 0.05, 1800, 20, 40_000
ARGUMENTS = (
    *("run", "--scenario", "fixed-length", "--concurrency", "2", "--output-tokens", "24", "--json"),
    *("--no-probe", "--no-agreement", "--no-report", "--set", 'verdict.primary="tpot_ms.p50"'),
    *("--set", 'verdict.metrics=["tpot_ms.p50"]', "--set", "verdict.cool_down_s=0"),
)
_DEFINITION = """
[backend]
name = "{name}"
title = "server of the study"
licence = "Apache-2.0"
homepage = ""
weights = "none"
simulated = true
[server]
ready_path = "/v1/models"
startup_timeout_s = 60
[process]
program = ["{{harness_python}}", "-c", "import sys; sys.path.insert(0, {root!r}); from tests.bench import \
pairing_study; pairing_study.start(*sys.argv[1:])"]
[engine]
args = ["{{port}}", "{given[0]}", "{given[1]}", "{given[2]}"]
[dialect]
exact_output = {{ ignore_eos = true }}
[prefix_cache]
enabled = false
"""


@dataclass(frozen=True)
class Noisy(Server):
    """Its gaps are `slower` times as long, times speeds that wander: the machine's from `epoch_s` on, and its
    own.
    """

    slower: float = 1.0
    machine_seed: int = 0
    epoch_s: float = 0.0
    seed: int = 0

    def factor(self, since_s: float) -> float:
        machine = _at(self.machine_seed, (time.time() - self.epoch_s) / NOISE.machine_s)
        own = _at(self.seed, since_s / NOISE.own_s)
        return self.slower * math.exp(NOISE.machine * machine + NOISE.own * own)


def _at(seed: int, times: float) -> float:
    """`times` as long as this noise lasts after its beginning."""
    return float(_path(seed)[min(int(times * GRID), GRID_POINTS - 1)])


@cache
def _path(seed: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """A stationary course of spread 1 whose correlation falls to 1/e in GRID steps."""
    draws, kept = np.random.default_rng(seed).standard_normal(GRID_POINTS), math.exp(-1 / GRID)
    values = np.empty(GRID_POINTS)
    values[0] = draws[0]
    for step in range(1, GRID_POINTS):
        values[step] = kept * values[step - 1] + math.sqrt(1 - kept**2) * draws[step]
    return values


def noisy(slower: float, machine_seed: int, epoch_s: float, *, of_start: float = 0.0) -> Noisy:
    drawn = random.SystemRandom()
    speed = slower * math.exp(of_start * drawn.gauss(0, 1))
    return Noisy(
        TTFT_MS, GAP_MS, slower=speed, machine_seed=machine_seed, epoch_s=epoch_s, seed=drawn.getrandbits(60)
    )


def start(port: str, slower: str, machine_seed: str, epoch_s: str) -> None:
    """As bench starts it: this start has a speed of its own."""
    time.sleep(STARTUP_S)
    serve_at(int(port), noisy(float(slower), int(machine_seed), float(epoch_s), of_start=NOISE.start))


@dataclass(frozen=True)
class Outcome:
    word: str
    minutes: float


def run(way: str, slower: float) -> Outcome:
    """One whole run; the word is about `one`, the faster."""
    with (
        tempfile.TemporaryDirectory(prefix="pairing-") as place,
        _backends(way, slower, Path(place)) as listed,
    ):
        pairing = ("--pairing", pairing_of(way))
        began_s = time.monotonic()
        words = (*ARGUMENTS, "--backends", listed, *pairing)
        done = bench(*words, limit_s=LIMIT_S, cwd=place, BENCH_CACHE=f"{place}/cache", TMPDIR=place)
        minutes = (time.monotonic() - began_s) / 60
    try:
        (verdict,) = json.loads(done.stdout)["comparison"]
    except ValueError:
        raise RuntimeError(f"bench run ended with {done.returncode}\n{done.stderr[-2000:]}") from None
    return Outcome(verdict["verdict"], minutes)


@contextmanager
def _backends(way: str, slower: float, place: Path) -> Iterator[str]:
    """What --backends is to be given."""
    machine = random.SystemRandom().getrandbits(60), time.time()
    with ExitStack() as stack:
        if way in RUNNING:
            urls = [stack.enter_context(serving(noisy(speed, *machine))) for speed in (1.0, slower)]
            yield ",".join(f"openai={url}" for url in urls)
            return
        (place / "backends").mkdir()
        for name, speed in zip(NAMES, (1.0, slower), strict=True):
            text = _DEFINITION.format(name=name, root=str(ROOT), given=(speed, *machine))
            (place / "backends" / f"{name}.toml").write_text(text)
        yield ",".join(NAMES)


def is_false(word: str, slower: float) -> bool:
    """A true 5% lies at the margin of same, and is beyond the floor of 2%."""
    return word in (("faster", "slower") if slower == 1 else ("slower", "same"))


def _row(way: str, slower: float, outcomes: Sequence[Outcome]) -> tuple[str, int]:
    false = sum(is_false(outcome.word, slower) for outcome in outcomes)
    right = sum(outcome.word == ("same" if slower == 1 else "faster") for outcome in outcomes)
    truth = "equal" if slower == 1 else f"{100 * (slower - 1):.0f}% slower"
    minutes = sorted(outcome.minutes for outcome in outcomes)
    shown = f"{median(minutes):.1f} ({minutes[0]:.1f} to {minutes[-1]:.1f})"
    return f"| {way} | {truth} | {false} of {len(outcomes)} | {right} of {len(outcomes)} | {shown} |", false


def draw(runs: int, ways: Sequence[str], slower: Sequence[float], noises: Sequence[Noise]) -> int:
    print("| noise | pairing | truth | false | found | minutes |\n|---|---|---|--:|--:|--:|")
    exit_code = 0
    for noise, way, truth in itertools.product(noises, ways, slower):
        drawn = np.random.default_rng(0)
        found = [Outcome(*decided(way, truth, noise, Times(), drawn)) for _ in range(runs)]
        line, false = _row(way, truth, found)
        print(f"| {noise.words} {line}", flush=True)
        exit_code |= false > FALSE_LIMIT * runs
    return exit_code


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each row")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--slower", default=",".join(map(str, SLOWER)))
    parser.add_argument("--drawn", type=int, metavar="N", help="drawn runs of each row, no servers")
    parser.add_argument("--noise", type=int, choices=range(len(DRAWN)), help="of --drawn: one kind alone")
    arguments = parser.parse_args()
    ways, truths = arguments.ways.split(","), list(map(float, arguments.slower.split(",")))
    if arguments.drawn:
        noises = DRAWN if arguments.noise is None else DRAWN[arguments.noise : arguments.noise + 1]
        return draw(arguments.drawn, ways, truths, noises)
    print("| pairing | truth | false | found | minutes |\n|---|---|--:|--:|--:|", flush=True)
    exit_code = 0
    for way in ways:
        for slower in truths:
            with ThreadPoolExecutor(arguments.at_once) as pool:
                outcomes = list(pool.map(lambda _, w=way, s=slower: run(w, s), range(arguments.runs)))
            line, false = _row(way, slower, outcomes)
            print(line, flush=True)
            exit_code |= false > FALSE_LIMIT * arguments.runs
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
