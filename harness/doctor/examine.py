"""The whole examination, as one document."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime

from harness import __version__
from harness.apis import ApiName
from harness.cluster.placement import Cluster
from harness.doctor.cores import shared_out
from harness.doctor.loads import Load, whole
from harness.doctor.machine import clock_facts, limit_facts, machine_hints
from harness.doctor.measure import measure
from harness.doctor.verdict import conclude, faults
from harness.errors import SetupError
from harness.host import descriptors
from harness.model import DoctorResult
from harness.sampling.machine import host_facts


def examine(
    loads: Sequence[Load],
    say: Callable[[str], None],
    cluster: Cluster | None = None,
    api: ApiName = "chat",
) -> DoctorResult:
    """Leaves out loads that the limit of open files does not allow; SetupError if it allows none.

    `cluster`: its nodes send the load, and this machine has the server. A load with faults is measured once
    more: a limit shows again, a moment's stall of the machine does not.
    """
    host, clock, limits = host_facts(), clock_facts(), limit_facts()
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
    hints = machine_hints(host, clock)
    if left_out:
        needed = max(load.connections for load in left_out) + descriptors.SPARE
        hints.append(f"raise the hard limit of open files to {needed} or more (ulimit -Hn)")
    verdict = conclude(measured, left_out, hints, repeated, whole=whole(api))
    return DoctorResult(
        api=api,
        version=__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        verdict=verdict,
        host=host,
        clock=clock,
        limits=limits,
        server_core=core,
        loads=tuple(measured),
        repeated=tuple(repeated),
        left_out=tuple(load.title for load in left_out),
    )
