"""Lines of a dry run on memory: what weights and the KV cache take, and what a GPU leaves for requests."""

from collections.abc import Iterator

from harness.engines.check.available import Machine
from harness.engines.check.memory import token_bytes, weights_bytes
from harness.engines.start.gpus import gpus_needed
from harness.engines.start.request import Planned
from harness.model.grouping import grouped
from harness.model.numbers import GIB
from harness.report.wording import listing
from harness.run.setup.prepare import Prepared

_TOKENS = 1000  # of a request, where no GPU says how many there is room for


def memory_lines(prepared: Prepared, machine: Machine) -> Iterator[str]:
    """A line for all engines that take the same on their GPUs; none of those of which that is not known."""
    loads = (cell.load for block in prepared.plan for cell in block.cells)
    users = max((int(load.value) for load in loads if load.kind == "concurrency"), default=1)
    words = (
        (_words(engine, machine, users), label)
        for label, engine in prepared.engines.items()
        if engine.choice.device == "cuda"
    )
    for text, labels in grouped(words).items():
        if text:
            yield f"memory of {listing(labels)}: {text}"


def _words(engine: Planned, machine: Machine, users: int) -> str:
    weights, token = weights_bytes(engine, machine), token_bytes(engine)
    if not weights or not token:
        return ""
    sizes = f"weights {weights / GIB:.1f} GiB, KV cache {token / 1024:.0f} KiB a token in 16 bits"
    wanted = gpus_needed(engine.ref.definition)
    gpus = machine.chosen_gpus(wanted)
    there = machine.gpu_memory_bytes(gpus) if len(gpus) == wanted else None
    if there is None:
        many = "a request" if users == 1 else f"{users} requests at once"
        return f"{sizes}; {many} of {_TOKENS:,} tokens: {users * _TOKENS * token / GIB:.1f} GiB"
    if there <= weights:
        return sizes  # what the engine lacks is a warning of its own
    room = int((there - weights) // token)
    each = f", {_about(room // users)} for each of {users} requests at once" if users > 1 else ""
    on = f"GPU {', '.join(gpus)} with {there / GIB:.1f} GiB"
    return (
        f"{sizes}; {on} has room for at most {_about(room)} tokens{each}, less what the engine itself needs"
    )


def _about(tokens: int) -> str:
    """Three digits, rounded down: what the engine needs is not known so exactly."""
    unit = 10 ** max(len(str(tokens)) - 3, 0)
    return f"{tokens // unit * unit:,}"
