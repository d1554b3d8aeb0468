"""How many processes send a cell's requests, and by what that was decided."""

from harness.doctor.result import per_worker
from harness.load.share import workers_for
from harness.model import LoadPoint, Workers
from harness.observe import host
from harness.run.options import RunOptions


def choose_workers(options: RunOptions, point: LoadPoint) -> Workers:
    given = options.workers if options.load_from is None else options.load_from.workers
    if given is not None:
        return Workers(given, "given")
    figure = None if point.kind == "trace" else per_worker(point.kind, host.host_facts())
    if figure is None:
        return Workers(None, "constants")
    return Workers(workers_for(point.value / figure), "doctor", figure)
