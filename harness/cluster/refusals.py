"""The reasons a run cannot join a cluster, each once and with what to do. Ray's own texts go over many
lines.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.cluster.options import ClusterOptions
from harness.cluster.worker_pool import reason_of
from harness.errors import SetupError
from harness.model.numbers import counted


def cannot_join(address: str, error: Exception) -> SetupError:
    text, where = str(error), f"--cluster {address}"
    if "authentication" in text.lower() or type(error).__name__ == "AuthenticationError":
        return SetupError(
            "the cluster asks for its token",
            where=where,
            hint="copy the head's ~/.ray/auth_token here, or name such a file in RAY_AUTH_TOKEN_PATH",
        )
    if "ersion mismatch" in text:
        return SetupError(
            f"the cluster has another version of Ray or Python: {' '.join(text.split())[:200]}",
            where=where,
            hint="every node and this machine need the same versions of both",
        )
    if isinstance(error, ImportError):
        return SetupError(
            f"a package is missing: {reason_of(error)}",
            where=where,
            hint="ray:// needs pip install 'ray[client]'; HOST:PORT does not",
        )
    return SetupError(
        f"cannot be joined: {reason_of(error)}",
        where=where,
        hint="HOST:PORT needs this machine to be a node of the cluster: `ray start --address=HOST:PORT`; a "
        "cluster of `bench cluster up` asks for the head's ~/.ray/auth_token",
    )


def cannot_place(
    asked: ClusterOptions, nodes: Sequence[Mapping[str, Any]], lost: Sequence[str] = ()
) -> SetupError:
    """`lost`: nodes that were lost in the window before, each with why. Ray lists such a node for a while,
    and its CPUs as taken.
    """
    cpus = [int(node["Resources"].get("CPU", 0)) for node in nodes]
    fit = sum(cores >= asked.workers_per_node for cores in cpus)
    wanted = f"{counted(asked.nodes, 'node')} with {counted(asked.workers_per_node, 'free CPU')} each"
    if lost:
        return SetupError(
            f"has no {wanted} any more: lost {'; '.join(lost)}",
            where="--load-nodes",
            hint="bring that node back, or `ray start --address=…` adds another; then `bench resume` goes on",
        )
    if fit < asked.nodes:
        return SetupError(
            f"has no {wanted}: {counted(len(nodes), 'node')}, CPUs {', '.join(map(str, cpus))}",
            where="--load-nodes",
            hint="`ray start --address=…` adds a node; or ask for fewer --load-nodes or --workers-per-node",
        )
    return SetupError(
        f"{wanted}: taken by other work", where="--load-nodes", hint="`ray status` shows by what"
    )
