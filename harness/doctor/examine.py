"""The whole examination, as one document."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

from harness import __version__
from harness.apis import ApiName
from harness.cluster.placement import Cluster
from harness.doctor.cores import shared_out
from harness.doctor.loads import Load, whole
from harness.doctor.machine import MachineFacts, machine_facts, machine_hints
from harness.doctor.measure import measure
from harness.doctor.verdict import conclude, faults
from harness.errors import SetupError
from harness.host import descriptors
from harness.model import DoctorResult, Exactness, MeasuredLoad


@dataclass(frozen=True, slots=True)
class Examination:
    machine: MachineFacts
    server_core: int | None
    measured: Sequence[MeasuredLoad]
    repeated: Sequence[MeasuredLoad]  # what came of a load before it was measured once more
    left_out: Sequence[Load]
    verdict: Exactness
    api: ApiName = "chat"

    @property
    def unit(self) -> str:
        """The unit of a load."""
        return "answer" if whole(self.api) else "token"

    @property
    def document(self) -> DoctorResult:
        return DoctorResult(
            api=self.api,
            version=__version__,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            verdict=self.verdict,
            host=self.machine.host,
            clock=self.machine.clock,
            limits=self.machine.limits,
            server_core=self.server_core,
            loads=tuple(self.measured),
            repeated=tuple(self.repeated),
            left_out=tuple(load.title for load in self.left_out),
        )


def examine(
    loads: Sequence[Load],
    say: Callable[[str], None],
    cluster: Cluster | None = None,
    api: ApiName = "chat",
) -> Examination:
    """Leaves out loads that the limit of open files does not allow; SetupError if it allows none.

    `cluster`: its nodes send the load, and this machine has the server. A load with faults is measured once
    more: a limit shows again, a moment's stall of the machine does not.
    """
    machine = machine_facts()
    allowed = descriptors.allow(max(load.connections for load in loads))
    fitting = [load for load in loads if load.connections <= allowed]
    if not fitting:
        raise SetupError(
            f"{allowed + descriptors.SPARE} open files are too few for any load",
            where="the limit of open files (ulimit -n)",
            hint="raise the hard limit, e.g. `ulimit -Hn 65536` as root",
        )
    measured, repeated = [], []
    with shared_out() if cluster is None else nullcontext() as core:
        for number, load in enumerate(fitting, 1):
            say(f"{load.title}: load {number} of {len(fitting)}")
            result = measure(load, core, cluster, api)
            if any(faults(result)):
                say(f"{load.title}: {result.verdict}, once more")
                repeated.append(result)
                result = measure(load, core, cluster, api)
            measured.append(result)
    left_out = [load for load in loads if load.connections > allowed]
    hints = machine_hints(machine)
    if left_out:
        needed = max(load.connections for load in left_out) + descriptors.SPARE
        hints.append(f"raise the hard limit of open files to {needed} or more (ulimit -Hn)")
    verdict = conclude(measured, left_out, hints, repeated, whole=whole(api))
    return Examination(machine, core, measured, repeated, left_out, verdict, api)
