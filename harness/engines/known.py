"""Facts about a system that bear on every figure of it: its kind, the state of its project, its own bias."""

from harness.engines.start.launch_choice import LaunchChoice
from harness.spec.backend import Backend, CudaProcess, Process

_KINDS = {
    "library": "a library behind bench's shim: what that adds per token is measured when it starts",
    "front": "a front: its own hop and the engines behind it are in every figure",
    "hosted": "a hosted service: the way there, its queue and its limits are in every figure",
}
_STATES = {
    "maintenance": "in maintenance: its makers fix it and add nothing",
    "dormant": "dormant: no release for a year or more",
    "finished": "finished: its makers have ended it",
}


def known(
    definition: Backend, shim_us_per_token: float | None = None, *, launch: LaunchChoice | None = None
) -> list[str]:
    """One line each, what weighs most first. `shim_us_per_token`: of a library, once it was measured.

    With `launch`, also what holds only for an engine that is started so.
    """
    header = definition.backend
    kind = _KINDS.get(header.kind)
    if header.kind == "library" and not definition.dialect.chat_path:
        kind = "a library behind bench's shim: what that adds is in every figure"
    if shim_us_per_token is not None:
        kind = f"a library behind bench's shim, {shim_us_per_token:+.0f} µs/token"
    caveat = definition.process.caveat if definition.process and launch and launch.mode == "process" else ""
    marks = (caveat, kind, _STATES.get(header.status), not_run(definition.process))
    return [*filter(None, marks), *header.bias]


def not_run(process: Process | None) -> str:
    """The mark of packages that were not seen at work on their device; "" where they were."""
    if not isinstance(process, CudaProcess) or not process.not_run:
        return ""
    return f"its packages for CUDA were not run on {process.not_run} yet"
