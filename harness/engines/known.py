"""What is known of a system whatever is measured on it: its kind, the state of its project, its own bias."""

from harness.spec.backend import Backend

_KINDS = {
    "front": "a front: its own hop and the engines behind it are in every figure",
    "hosted": "a hosted service: the way there, its queue and its limits are in every figure",
}
_STATES = {
    "maintenance": "in maintenance: its makers fix it and add nothing",
    "dormant": "dormant: no release for a year or more",
    "finished": "finished: its makers have ended it",
}


def known(definition: Backend) -> list[str]:
    """One line each, what weighs most first."""
    header = definition.backend
    return [*filter(None, (_KINDS.get(header.kind), _STATES.get(header.status))), *header.bias]
