"""The examination from first to last, as one document."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from harness import __version__
from harness.cluster.placement import Cluster
from harness.doctor.cores import shared_out
from harness.doctor.loads import Load
from harness.doctor.machine import (
    SPARE_DESCRIPTORS,
    MachineFacts,
    allow_connections,
    machine_facts,
    machine_hints,
)
from harness.doctor.measure import Measured, measure
from harness.doctor.result import SCHEMA
from harness.doctor.verdict import Verdict, conclude, faults
from harness.errors import SetupError
from harness.model import as_json


@dataclass(frozen=True, slots=True)
class Examination:
    machine: MachineFacts
    server_core: int | None
    measured: Sequence[Measured]
    repeated: Sequence[Measured]  # what came of a load before it was measured once more
    left_out: Sequence[Load]
    verdict: Verdict

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "version": __version__,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "verdict": asdict(self.verdict) | {"fit_to_measure": self.verdict.fit_to_measure},
            **as_json(self.machine),
            "server_core": self.server_core,
            "loads": _titled(self.measured),
            "repeated": _titled(self.repeated),
            "left_out": [load.title for load in self.left_out],
        }


def examine(loads: Sequence[Load], say: Callable[[str], None], cluster: Cluster | None = None) -> Examination:
    """Loads that the limit of open files does not allow are left out; SetupError when it allows none.

    `cluster`: its nodes send the load, and this machine has the server.
    A load with faults is measured once more: a limit shows again, a moment's stall of the machine does not.
    """
    machine = machine_facts()
    allowed = allow_connections(max(load.connections for load in loads))
    fitting = [load for load in loads if load.connections <= allowed]
    if not fitting:
        raise SetupError(
            f"{allowed + SPARE_DESCRIPTORS} open files are too few for any load",
            where="the limit of open files (ulimit -n)",
            hint="raise the hard limit, e.g. `ulimit -Hn 65536` as root",
        )
    measured, repeated = [], []
    with shared_out() if cluster is None else nullcontext() as core:
        for number, load in enumerate(fitting, 1):
            say(f"{load.title}: load {number} of {len(fitting)}")
            one = measure(load, core, cluster)
            if any(faults(one)):
                say(f"{load.title}: {one.verdict}, once more")
                repeated.append(one)
                one = measure(load, core, cluster)
            measured.append(one)
    left_out = [load for load in loads if load.connections > allowed]
    hints = machine_hints(machine)
    if left_out:
        needed = max(load.connections for load in left_out) + SPARE_DESCRIPTORS
        hints.append(f"raise the hard limit of open files to {needed} or more (ulimit -Hn)")
    verdict = conclude(measured, left_out, hints, repeated)
    return Examination(machine, core, measured, repeated, left_out, verdict)


def _titled(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    return [as_json(one) | {"title": one.load.title} for one in measured]
