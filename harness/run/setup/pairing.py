"""Decides how the engines of a run share the machine: one after the other, or all up together."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.engines.start.command import configured, settable
from harness.engines.start.gpus import chosen_gpus, gpus_needed
from harness.errors import SpecError
from harness.host.address import address_of
from harness.host.cpus import usable_cpus
from harness.host.nvml import gpu_count
from harness.metrics.distribution import samples_needed
from harness.model.choices import Pairing
from harness.model.numbers import counted
from harness.plan import load_points, slots_of
from harness.run.setup.backends import ChosenBackend
from harness.run.setup.options import RunOptions
from harness.spec.scenario import Scenario
from harness.spec.scenario.limits import MOST_REPEATS, at_most
from harness.spec.scenario.load import Load

BLOCKS = 8  # of each engine in one start; even, so that drift within a start favours nobody
_FLAG, _BLOCKS_FLAG = "--pairing", "--blocks"
_INSTEAD = "`--pairing starts` measures them one after the other"


@dataclass(frozen=True, slots=True)
class Together:
    """Engines that are up together. Each start gives every engine the next seat: what it may use.

    Attached servers have no seats. `blocks` is the number for each engine in one start; it is 1 for attached
    servers, whose blocks are all repeats of one start.
    """

    kind: Pairing
    blocks: int
    cores: tuple[tuple[int, ...], ...] = ()
    gpus: tuple[tuple[str, ...], ...] = ()

    @property
    def attached(self) -> bool:
        return not self.cores

    def counted(self, repeats: int) -> str:
        return counted(repeats, "block") if self.attached else counted(repeats // self.blocks, "start")

    def cores_of(self, backend: int, start: int) -> tuple[int, ...]:
        return self.cores[(backend + start) % len(self.cores)] if self.cores else ()

    def gpus_of(self, backend: int, start: int) -> tuple[str, ...]:
        return self.gpus[(backend + start) % len(self.gpus)] if self.gpus else ()


def together_of(
    options: RunOptions, chosen: Sequence[ChosenBackend], each_cell: Sequence[bool]
) -> Together | None:
    """Seats and blocks of engines that are up together; None if they take turns.

    Raises SpecError with the reason if they cannot be up together.
    """
    kind, blocks = options.pairing, options.blocks
    if kind == "starts":
        if blocks is not None:
            raise SpecError("only applies to --pairing blocks and duet", where=_BLOCKS_FLAG)
        return None
    if options.find_capacity:
        raise SpecError("a capacity search has no pairs", where=_FLAG, hint="leave --pairing out")
    if len(chosen) < 2:
        raise SpecError("needs two backends: a single one has no partner", where=_FLAG, hint="leave it out")
    if kind == "duet" and options.load_from is not None:
        raise SpecError(
            "loads two servers at once, from this machine alone", where=_FLAG, hint="--pairing blocks"
        )
    if blocks is not None:
        if blocks < 2:
            raise SpecError(f"must be at least 2, not {blocks}", where=_BLOCKS_FLAG)
        at_most(blocks, _BLOCKS_FLAG, MOST_REPEATS)
    attached = [ref.label for _, ref, launch in chosen if launch.mode == "attach"]
    addresses = [address_of(url) for _, ref, _ in chosen for url in ref.urls]
    if kind == "duet" and len(set(addresses)) < len(addresses):
        raise SpecError(
            "two of these backends are the same server: each would be measured under the load of the other",
            where=_FLAG,
            hint="`--pairing blocks` loads it in turns",
        )
    if len(attached) == len(chosen):
        if blocks is not None:
            raise SpecError(
                "servers that run have one start",
                where=_BLOCKS_FLAG,
                hint="--repeats N sets the number of their blocks",
            )
        return Together(kind, 1)
    if attached:
        raise _apart(f"bench did not start {attached[0]}, so it cannot swap its cores with the others'")
    containers = [ref.label for _, ref, launch in chosen if launch.mode == "compose"]
    if containers:
        raise _apart(f"{containers[0]} runs in a container, which bench does not hold to a part of the cores")
    if any(each_cell):
        label = chosen[list(each_cell).index(True)].ref.label
        raise _apart(f"{label} has no cache reset, so it is started again for every cell")
    return Together(kind, blocks or BLOCKS, _core_seats(len(chosen)), _gpu_seats(options, chosen))


def sized(scenario: Scenario, options: RunOptions, blocks: int) -> Scenario:
    """Gives each block its share of the requests of a run, and of the least that a run needs."""
    load = scenario.load
    asked = load.requests if "load.requests" in options.overrides else _share(load, blocks)
    least = math.ceil(load.min_answers / blocks)
    block = replace(load, requests=asked, min_answers=least, min_seconds=load.min_seconds / blocks)
    return replace(scenario, load=block)


def _share(load: Load, blocks: int) -> int:
    """Requests of one block: its share of the run, but two for each slot and enough for a median."""
    slots = max(slots_of(load, point) or 1 for point in load_points(load))
    return min(load.requests, max(math.ceil(load.requests / blocks), 2 * slots, samples_needed(50)))


def _core_seats(engines: int) -> tuple[tuple[int, ...], ...]:
    if not hasattr(os, "sched_getaffinity"):
        raise _apart("this system cannot hold a process to some of the cores")
    # No more than there is CPU time for: a limit of two CPUs is a core each for two engines.
    cores = sorted(os.sched_getaffinity(0))[: usable_cpus()]
    each = len(cores) // engines
    if not each:
        raise _apart(f"{engines} engines need a core each, and there are {len(cores)}")
    return tuple(tuple(cores[seat * each : (seat + 1) * each]) for seat in range(engines))


def _gpu_seats(options: RunOptions, chosen: Sequence[ChosenBackend]) -> tuple[tuple[str, ...], ...]:
    """The GPUs that may be used, in equal parts; () if no engine needs one."""
    needed = []
    for _, ref, launch in chosen:
        if launch.device == "cuda":
            own = settable(ref.definition, launch)
            given = {key: value for key, value in options.engine_values.items() if key in own}
            needed.append(gpus_needed(configured(ref.definition, None, given, launch)))
    if not needed:
        return ()
    most, engines = max(needed), len(chosen)
    wanted = most * engines
    listed = chosen_gpus(min(wanted, gpu_count() or wanted), options.gpus)
    if len(listed) < wanted:
        raise _apart(f"{engines} engines need {wanted} GPUs, and there are {len(listed)} for them")
    return tuple(tuple(listed[seat * most : (seat + 1) * most]) for seat in range(engines))


def _apart(why: str) -> SpecError:
    return SpecError(f"these engines cannot be up together: {why}", where=_FLAG, hint=_INSTEAD)
