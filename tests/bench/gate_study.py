"""How often a gate fails on equal servers and passes worse ones: records are drawn, and compared whole.

    python -m tests.bench.gate_study [--number 60] [--noise 0.01] [--repeats 3] [--seed 0]
    python -m tests.bench.gate_study --wire N [--only NAME] [--seed 0]
    python -m tests.bench.gate_study --pauses [--number 1000] [--repeats 3] [--seed 0]

A baseline and a new run, each of some cells with 100 requests, four in flight. Every cell has a speed of its
own, with the relative deviation --noise. Prints a Markdown table. --wire N: N pairs of a kind are measured by
`bench run` on a scripted server instead, 35 s each. --pauses: the engine pauses in half of all runs, where
equal engines most often look different, at each load by itself or at all loads of a repeat; or it began to.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from harness.metrics.latency import by_arrival
from harness.metrics.pooled import samples
from harness.metrics.view import RequestView
from harness.model import EngineStall, Manifest, Standstill, from_json
from harness.records.layout import Outcome, Phase, Records
from harness.verdicts.baseline import Run, compare_runs
from tests.bench.command import options
from tests.bench.gate_wire import outcome, wire
from tests.factories.recorded import summarise_cell
from tests.factories.runs import MS, Engine, Shape, cell_facts, make_records, manifest_of
from tests.factories.summaries import summary

ENGINES, REQUESTS = (Engine("engine"),), 100
LOAD = {"kind": "concurrency", "value": 4}


@dataclass(frozen=True)
class Case:
    name: str
    slower: float = 1.0
    stalled: float = 0.0  # share of the answers that came 900 ms late
    failing: float = 0.0


CASES = (
    Case("equal"),
    Case("10% slower", slower=1.1),
    Case("20% slower", slower=1.2),
    Case("5% of the answers 0.9 s late", stalled=0.05),
    Case("1% of the requests fail", failing=0.01),
    Case("3% of the requests fail", failing=0.03),
)

PAUSES = (  # shares of the new runs and of those of the baseline; whether all loads of a repeat are alike
    ("equal, half of the runs", 0.5, 0.5, False),
    ("equal, half of the repeats", 0.5, 0.5, True),
    ("new, each run", 1.0, 0.0, False),
)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--number", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--noise", type=float, default=0.01, help="deviation of a run's speed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wire", type=int, default=0, metavar="N", help="pairs of each kind, measured")
    parser.add_argument("--only", default="", metavar="NAME", help="of --wire: rows with this in their name")
    parser.add_argument(
        "--pauses", action="store_true", help="runs in which the engine paused, at 1 to 27 loads"
    )
    arguments = parser.parse_args()
    if arguments.pauses:
        _pauses(arguments.number, arguments.repeats, np.random.default_rng(arguments.seed))
        return
    measured = wire(arguments.wire, arguments.seed, arguments.only) if arguments.wire else None
    print("| the new one | worse | not decided | passed |\n|---|---:|---:|---:|")
    for name, found in measured or _drawn(arguments):
        shares = (f"{found[kind] / found.total():.0%}" for kind in ("worse", "not decided", "passed"))
        print(f"| {name} | {' | '.join(shares)} |", flush=True)


def _drawn(arguments: argparse.Namespace) -> Iterator[tuple[str, Counter[str]]]:
    study = Study(
        Shape(ENGINES, (4,), repeats=arguments.repeats, requests=REQUESTS, output_tokens=16),
        arguments.noise,
        np.random.default_rng(arguments.seed),
    )
    for case in CASES:
        pairs = ((study.run("base", CASES[0]), study.run("new", case)) for _ in range(arguments.number))
        yield case.name, Counter(_gate(base, new) for base, new in pairs)


def _gate(base: Run, new: Run) -> str:
    return outcome({row.kind for row in compare_runs([base, new]).gate})


def _pauses(number: int, repeats: int, random: np.random.Generator) -> None:
    print("| loads | pauses | stalls | not decided | passed |\n|---:|---|---:|---:|---:|")
    for loads in (1, 3, 9, 27):
        points = tuple(range(1, loads + 1))
        shape = Shape(ENGINES, points, repeats=repeats, requests=12, output_tokens=4)
        base = _many_loads(shape, random)
        for name, now, then, common in PAUSES:
            found: Counter[str] = Counter()
            for _ in range(number):
                sides = (
                    _paused(base, side, share, common, random)
                    for side, share in (("base", then), ("new", now))
                )
                rows = {row.kind for row in compare_runs(list(sides)).gate if " paused " in row.why}
                found["stalls" if "stalls" in rows else "not decided" if rows else "passed"] += 1
            shares = " | ".join(f"{found[kind] / number:.1%}" for kind in ("stalls", "not decided", "passed"))
            print(f"| {loads} | {name} | {shares} |", flush=True)


def _many_loads(shape: Shape, random: np.random.Generator) -> Run:
    cells = []
    for load in shape.concurrency:
        point = {"kind": "concurrency", "value": load}
        for repeat in range(shape.repeats):
            records = make_records(ENGINES[0], point, np.zeros(shape.sent), random, shape)
            facts = cell_facts(ENGINES[0], f"{repeat:03d}-engine-c{load}-r{repeat}", point, repeat, shape)
            cells.append(summarise_cell(records, facts, None))
    manifest = from_json(manifest_of("base", shape, [cell.cell for cell in cells]), Manifest)
    return Run("base", manifest, summary(*cells), {})


def _paused(base: Run, name: str, share: float, common: bool, random: np.random.Generator) -> Run:
    """The run with a pause in this share of its cells; `common`: in all cells of such a share of repeats."""
    still = Standstill(lost_ms=0, share=0, longest_ms=0, hit_share=0)
    repeats = random.random(len(base.cells)) < share
    cells = [
        structs.replace(
            cell,
            standstill=still,
            engine_stall=EngineStall(at_s=1, lasted_ms=900, in_flight=4)
            if (repeats[cell.repeat] if common else random.random() < share)
            else None,
        )
        for cell in base.cells
    ]
    return replace(base, name=name, summary=structs.replace(base.summary, cells=tuple(cells)))


@dataclass(frozen=True)
class Study:
    shape: Shape
    noise: float
    random: np.random.Generator

    def run(self, name: str, case: Case) -> Run:
        shape, cells, pooled = self.shape, [], {}
        for repeat in range(shape.repeats):
            speed = case.slower * float(np.exp(self.random.normal(0, self.noise)))
            engine = Engine("engine", prefill_ms=40 * speed, step_ms=8 * speed)
            records = make_records(engine, LOAD, np.zeros(shape.sent), self.random, shape)
            _worsen(records, case, self.random)
            facts = cell_facts(engine, f"{repeat:03d}-engine-c4-r{repeat}", LOAD, repeat, shape)
            cells.append(summarise_cell(records, facts, None))
            pooled[facts.cell] = samples(RequestView(by_arrival(records)))
        manifest = from_json(manifest_of(name, shape, [cell.cell for cell in cells]), Manifest)
        return Run(name, manifest, summary(*cells), pooled)


def _worsen(records: Records, case: Case, random: np.random.Generator) -> None:
    """Some measured answers come late from their first token on, and some requests fail."""
    rows = records.requests
    drawn = random.random(len(rows))
    measured = rows["phase"] == Phase.MEASURE
    late = measured & (drawn < case.stalled)
    for name in ("first_text_ns", "last_text_ns", "end_ns"):
        rows[name][late] += 900 * MS
    records.events["stamp_ns"][late[records.events["seq"]]] += 900 * MS
    failed = measured & (drawn >= 1 - case.failing)
    rows["outcome"][failed] = Outcome.HTTP_ERROR


if __name__ == "__main__":
    main()
