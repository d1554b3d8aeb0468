"""How many processes send a cell's requests, and by what that was decided."""

import math
from dataclasses import dataclass
from typing import Literal

from harness.doctor.result import per_worker
from harness.load.share import cores
from harness.observe import host
from harness.plan import LoadPoint


@dataclass(frozen=True, slots=True)
class Workers:
    count: int | None  # None: the load room decides, by constants
    source: Literal["given", "doctor", "constants"]
    per_worker: int | None = None  # streams, or arrivals per second, as `bench doctor` found


def choose_workers(given: int | None, point: LoadPoint) -> Workers:
    """At most every second core, since the server may live here as well."""
    if given is not None:
        return Workers(given, "given")
    figure = None if point.kind == "trace" else per_worker(point.kind, host.host_facts())
    if figure is None:
        return Workers(None, "constants")
    return Workers(max(1, min(math.ceil(point.value / figure), cores() // 2)), "doctor", figure)
