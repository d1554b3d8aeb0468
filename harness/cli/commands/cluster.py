"""`bench cluster`: a Ray cluster on this machine, for load from several."""

import argparse
from dataclasses import dataclass

from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SetupError, SpecError
from harness.host.cpus import usable_cpus
from harness.model.numbers import counted

HOST, PORT = "127.0.0.1", 6379


@dataclass(frozen=True)
class Options(Flags):
    action: str
    host: str | None
    port: int | None
    cpus: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = "up, down or status: start, stop or show the cluster"
    parser.add_argument("action", choices=("up", "down", "status"), metavar="ACTION", help=actions)
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help=f"up: address of this machine for the nodes (default: {HOST})",
    )
    parser.add_argument("--port", type=int, metavar="N", help=f"up: port of the head node (default: {PORT})")
    parser.add_argument(
        "--cpus", type=int, metavar="N", help="up: CPUs that load may take here (default: every second one)"
    )
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.cluster.options import require_ray

    of_up = {"--host": given.host, "--port": given.port, "--cpus": given.cpus}
    if given.action != "up" and (flags := [flag for flag, value in of_up.items() if value is not None]):
        raise SpecError("only applies to `bench cluster up`", where=flags[0])
    if given.cpus is not None and given.cpus < 1:
        raise SpecError(f"must be at least 1, not {given.cpus}", where="--cpus")
    require_ray()
    return {"up": _up, "down": _down, "status": _status}[given.action](given)


def _up(given: Options) -> Result:
    from harness.cluster import local

    cpus = given.cpus or max(usable_cpus() // 2, 1)
    port = PORT if given.port is None else given.port
    head = local.up(given.host or HOST, port, cpus)
    lines = [f"a cluster of this machine alone is up at {head.address}, {counted(cpus, 'CPU')} for load"]
    if head.host == HOST:
        lines.append("for a second machine: bench cluster down, then up --host ADDRESS")
    else:
        lines += [
            "on a second machine, with the same Python, Ray and llm-servebench:",
            f"  scp {head.host}:{local.ensure_token()} ~/.ray/auth_token",
            f"  RAY_AUTH_MODE=token ray start --address={head.address} --num-cpus=N",
        ]
    lines.append(f"measure from it:  bench run … --cluster {head.address} --load-nodes 1")
    return Result(lines, lambda: {"address": head.address, "cpus": cpus})


def _down(_given: Options) -> Result:
    from harness.cluster import local

    head = local.down()
    if head is None:
        return Result(document=lambda: {"stopped": None}, notes=["no cluster is up"])
    return Result(f"{head.address}: stopped", lambda: {"stopped": head.address})


def _status(_given: Options) -> Result:
    from harness.cluster import local
    from harness.cluster.placement import members

    head = local.running()
    if head is None:
        raise SetupError("no cluster of `bench cluster up` is running", where="bench cluster")
    nodes = [
        {"node": node["NodeManagerAddress"], "state": "up" if node["Alive"] else "lost",
         "cpus": int(node["Resources"].get("CPU", 0))}
        for node in members(head.address)
    ]  # fmt: skip
    lines = [f"{node['node']:<16} {node['state']:<5} {counted(node['cpus'], 'CPU')}" for node in nodes]
    return Result(lines, lambda: {"address": head.address, "nodes": nodes})
