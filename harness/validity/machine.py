"""Machine and network: what else went on, and what slowed them down."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from harness.model import Gpu, IssueCode
from harness.model.numbers import GIB, apart, percent_apart
from harness.validity.rule import Evidence, Rule, Violation

OTHER_CORES_SHARE = 0.1  # of the machine's cores, kept busy by neither engine nor load generator
STOLEN_SUSPECT, STOLEN_INVALID = OTHER_CORES_SHARE, 0.2  # what computes is slower by that share and more
GPU_BUSY_BEFORE_PCT = 5.0  # by NVML, in the seconds before the first request
OTHER_GPU_MEMORY_BYTES = GIB
THROTTLED_SHARE = 0.05
# A power cap is how a GPU normally runs at full load; these are not.
THROTTLING = ("hardware slowdown", "software thermal", "hardware thermal", "power brake")
MAX_LOSS_SHARE = 0.01  # of the requests: a percentile up to p99 does not show fewer


@partial(
    Rule,
    code=IssueCode.CONTENDED,
    measures="cores kept busy by other work; what a hypervisor takes counts",
    limit=f"{OTHER_CORES_SHARE:.0%} of the cores",
    hint="stop what else runs on this machine, or measure again when it is idle",
    cause="machine",
)
def _contended(cell: Evidence) -> Iterator[Violation]:
    host = cell.watched.host if cell.watched else None
    if host is None or host.other_cores is None or not host.cpus:
        return
    others, cpus = host.other_cores, host.cpus
    if others < OTHER_CORES_SHARE * cpus:
        return
    stolen = host.stolen_cores or 0.0
    taken = f", {stolen:.2f} of it taken by the hypervisor" if stolen >= 0.01 else ""
    yield Violation(f"{others:.2f} of {cpus} cores ({others / cpus:.0%}) kept busy by other work{taken}")


@partial(
    Rule,
    code=IssueCode.STOLEN_TIME,
    measures="time of the machine's cores that a hypervisor gave to others though work waited for it",
    limit=f"{STOLEN_SUSPECT:.0%} suspect, {STOLEN_INVALID:.0%} invalid",
    verdicts=("SUSPECT", "INVALID"),
    hint="another guest had the cores of this one: take a machine with cores of its own",
    cause="machine",
)
def _stolen(cell: Evidence) -> Iterator[Violation]:
    host = cell.watched.host if cell.watched else None
    if host is None or host.stolen_cores is None or not host.cpus:
        return
    share = host.stolen_cores / host.cpus
    if share >= STOLEN_SUSPECT:
        yield Violation(
            f"{host.stolen_cores:.2f} of {host.cpus} cores ({percent_apart(share, STOLEN_INVALID)}%)",
            verdict="INVALID" if share >= STOLEN_INVALID else "SUSPECT",
        )


def _gpu(cell: Evidence) -> Gpu | None:
    return cell.watched.gpu if cell.watched else None


@partial(
    Rule,
    code=IssueCode.GPU_BUSY,
    measures="how busy the GPU was in the seconds before the first request",
    limit=f"{GPU_BUSY_BEFORE_PCT:g}%",
    hint="something else computes on this GPU: see nvidia-smi",
    cause="machine",
)
def _gpu_busy(cell: Evidence) -> Iterator[Violation]:
    gpu = _gpu(cell)
    before = gpu.idle_utilisation_pct if gpu else None
    if before is not None and before > GPU_BUSY_BEFORE_PCT:
        yield Violation(
            f"{percent_apart(before / 100, GPU_BUSY_BEFORE_PCT / 100)}% busy before the first request"
        )


@partial(
    Rule,
    code=IssueCode.GPU_SHARED,
    measures="memory of the engine's GPUs that other processes held",
    limit=f"{OTHER_GPU_MEMORY_BYTES / GIB:g} GiB",
    hint="stop the other processes on this GPU: see nvidia-smi",
    cause="machine",
)
def _gpu_shared(cell: Evidence) -> Iterator[Violation]:
    gpu = _gpu(cell)
    others = gpu.other_memory_bytes.max if gpu and gpu.other_memory_bytes else None
    if others is not None and others > OTHER_GPU_MEMORY_BYTES:
        held = apart(others / GIB, OTHER_GPU_MEMORY_BYTES / GIB, 1)[0]
        yield Violation(f"{held} GiB of GPU memory held by other processes")


@partial(
    Rule,
    code=IssueCode.GPU_THROTTLED,
    measures="time in which a GPU slowed itself down for heat, power brake or hardware",
    limit=f"{THROTTLED_SHARE:.0%} of the time",
    hint="the GPU slowed itself down: look at its cooling and power supply",
    cause="machine",
)
def _gpu_throttled(cell: Evidence) -> Iterator[Violation]:
    gpu = _gpu(cell)
    for device in gpu.devices if gpu else ():
        slowed = {name: share for name, share in (device.throttled_share or {}).items() if name in THROTTLING}
        if gpu and device.index in gpu.engine_gpus and max(slowed.values(), default=0.0) > THROTTLED_SHARE:
            words = ", ".join(
                f"{name} {percent_apart(share, THROTTLED_SHARE)}%" for name, share in slowed.items()
            )
            yield Violation(f"GPU {device.index}: {words}")


@partial(
    Rule,
    code=IssueCode.PACKET_LOSS,
    measures="requests in which TCP retransmitted segments or received them out of order",
    limit=f"{MAX_LOSS_SHARE:.0%} of the requests",
    hint="the network lost or reordered packets, so latencies contain its recovery: check the link",
    cause="machine",
)
def _packet_loss(cell: Evidence) -> Iterator[Violation]:
    """None is judged where the loss is not known."""
    rows = cell.view.measured_requests
    retransmits, out_of_order = (np.maximum(rows[name], 0) for name in ("retransmits", "out_of_order"))
    hit = int(np.count_nonzero(retransmits + out_of_order))
    if hit > MAX_LOSS_SHARE * len(rows):
        share = percent_apart(hit / len(rows), MAX_LOSS_SHARE, decimals=1)
        yield Violation(
            f"{retransmits.sum()} segments retransmitted, {out_of_order.sum()} out of order, "
            f"in {hit} of {len(rows)} requests ({share}%)"
        )


RULES = (_contended, _stolen, _gpu_busy, _gpu_shared, _gpu_throttled, _packet_loss)
