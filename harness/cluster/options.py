"""The source of the load, as flags: nodes of a cluster, or this machine."""

from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from harness.errors import SetupError, SpecError, extra_hint

OBJECT_STORE_BYTES = 256 << 20  # of a cluster that bench starts: Ray would take a third of the memory


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    address: str  # of a Ray cluster: HOST:PORT, ray://HOST:PORT, or "auto"
    nodes: int
    workers_per_node: int = 1

    @property
    def workers(self) -> int:
        return self.nodes * self.workers_per_node


def asked(address: str | None, nodes: int | None, workers_per_node: int | None) -> ClusterOptions | None:
    """None: the load comes from this process's own workers. Raises SpecError."""
    if address is None:
        for flag, value in (("--load-nodes", nodes), ("--workers-per-node", workers_per_node)):
            if value is not None:
                raise SpecError("needs --cluster", where=flag, hint="--cluster auto or HOST:PORT")
        return None
    if nodes is None:
        raise SpecError("is missing", where="--load-nodes", hint="how many nodes send load")
    head_of(address)
    per_node = 1 if workers_per_node is None else workers_per_node
    for flag, value in (("--load-nodes", nodes), ("--workers-per-node", per_node)):
        if value < 1:
            raise SpecError(f"must be at least 1, not {value}", where=flag)
    return ClusterOptions(address, nodes, per_node)


def head_of(address: str) -> str | None:
    """HOST:PORT of a cluster's head; None: "auto" finds it. Raises SpecError: Ray would try for a minute."""
    if address == "auto":
        return None
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        raise SpecError(f"is not auto, HOST:PORT or ray://HOST:PORT: {address}", where="--cluster")
    return f"{host}:{port}"


def require_ray() -> None:
    if find_spec("ray") is None:
        raise SetupError("Ray is not installed", where="cluster", hint=extra_hint("ray"))
