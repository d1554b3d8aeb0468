"""Mixes agreement questions into the load of the scenario's highest load point.

Questions and load are one job with one schedule, so that as much is in flight as when speed was measured. The
job is not a measured cell, so no measured request has a question next to it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from harness.engines.session import EngineSession
from harness.load.job import ClosedLoop, OpenLoop
from harness.metrics.prefix import first_turns
from harness.model import LoadPoint
from harness.plan import highest_load, seed_for, slots_of
from harness.run.measure.job import think_ns, whole_bodies
from harness.run.measure.workloads import EVERY, filling
from harness.run.setup.prepare import Prepared
from harness.workload.arrivals import NS, arrivals
from harness.workload.prompts.workload import Workload


@dataclass(frozen=True, slots=True)
class UnderLoad:
    point: LoadPoint
    fill: int  # requests of the load before the first question
    bodies: Iterator[bytes]  # of the load, without end
    schedule: Callable[[int], ClosedLoop | OpenLoop]

    def between(self, questions: Sequence[bytes]) -> tuple[list[bytes], list[int]]:
        """Bodies of the whole job, and the position of each question in it."""
        whole = [next(self.bodies) for _ in range(self.fill)]
        places = []
        for index, body in enumerate(questions):
            if index % (EVERY - 1) == 0:
                whole.append(next(self.bodies))
            places.append(len(whole))
            whole.append(body)
        return whole, places


def under_load(prepared: Prepared, workload: Workload, engine: EngineSession) -> UnderLoad:
    """Makes the load from `workload`, whose requests no cell has sent: the cache holds none of them."""
    load, seed = prepared.scenario.load, prepared.options.seed
    point = highest_load(load)
    slots = slots_of(load, point)
    sent = whole_bodies(prepared, workload, engine, first_turns(workload.requested))

    def schedule(requests: int) -> ClosedLoop | OpenLoop:
        if slots is not None:
            return ClosedLoop(slots, think_ns(prepared, point, 0, requests))
        rate = point.value
        if point.kind == "trace":
            at_ns = workload.requested.numbers["at_ns"]
            rate *= NS * len(at_ns) / max(int(np.ptp(at_ns)), 1)
        drawn = seed_for(seed, "accuracy arrivals", point.label, requests)
        process = load.arrival if point.kind == "rate" else "poisson"
        intended_ns = arrivals(process, rate, requests, drawn, burstiness=load.burstiness)
        return OpenLoop(intended_ns, load.max_in_flight, "wait")

    return UnderLoad(point, filling(load, point), cycle(sent), schedule)
