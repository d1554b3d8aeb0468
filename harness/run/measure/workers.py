"""Chooses how many processes send a cell's requests."""

from harness.doctor.result import per_worker
from harness.load.sharding import workers_for
from harness.model import LoadPoint, Workers
from harness.sampling import machine


def choose_workers(given: int | None, point: LoadPoint) -> Workers:
    if given is not None:
        return Workers(given, "given")
    figure = None
    if point.kind in ("concurrency", "rate"):  # what `bench doctor` measures
        figure = per_worker(point.kind, machine.host_facts())
    if figure is None:
        return Workers(None, "constants")
    return Workers(workers_for(point.value / figure), "doctor", figure)
