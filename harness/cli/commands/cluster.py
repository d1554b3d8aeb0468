"""`bench cluster`: a Ray cluster on this machine, for load from several."""

import argparse

from harness.errors import ExitCode, SetupError, SpecError
from harness.host.cpus import usable_cpus
from harness.model.numbers import counted

HOST, PORT = "127.0.0.1", 6379


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("up", "down", "status"), help="start, stop or show the cluster")
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help=f"up: address of this machine for the nodes (default: {HOST})",
    )
    parser.add_argument("--port", type=int, metavar="N", help=f"up: port of the head node (default: {PORT})")
    parser.add_argument(
        "--cpus", type=int, metavar="N", help="up: CPUs that load may take here (default: every second one)"
    )


def main(arguments: argparse.Namespace) -> int:
    from harness.cluster.options import require_ray

    given = {"--host": arguments.host, "--port": arguments.port, "--cpus": arguments.cpus}
    if arguments.action != "up" and (flags := [flag for flag, value in given.items() if value is not None]):
        raise SpecError("only applies to `bench cluster up`", where=flags[0])
    if arguments.cpus is not None and arguments.cpus < 1:
        raise SpecError(f"must be at least 1, not {arguments.cpus}", where="--cpus")
    require_ray()
    return {"up": _up, "down": _down, "status": _status}[arguments.action](arguments)


def _up(arguments: argparse.Namespace) -> int:
    from harness.cluster import local

    cpus = arguments.cpus or max(usable_cpus() // 2, 1)
    port = PORT if arguments.port is None else arguments.port
    head = local.up(arguments.host or HOST, port, cpus)
    print(f"a cluster of this machine alone is up at {head.address}, {counted(cpus, 'CPU')} for load")
    if head.host == HOST:
        print("for a second machine: bench cluster down, then up --host ADDRESS")
    else:
        print("on a second machine, with the same Python, Ray and llm-servebench:")
        print(f"  scp {head.host}:{local.ensure_token()} ~/.ray/auth_token")
        print(f"  RAY_AUTH_MODE=token ray start --address={head.address} --num-cpus=N")
    print(f"measure from it:  bench run … --cluster {head.address} --load-nodes 1")
    return ExitCode.OK


def _down(_arguments: argparse.Namespace) -> int:
    from harness.cluster import local

    head = local.down()
    print("no cluster is up" if head is None else f"{head.address}: stopped")
    return ExitCode.OK


def _status(_arguments: argparse.Namespace) -> int:
    from harness.cluster import local
    from harness.cluster.placement import members

    head = local.running()
    if head is None:
        raise SetupError("no cluster of `bench cluster up` is running", where="bench cluster")
    for node in members(head.address):
        cpus = counted(int(node["Resources"].get("CPU", 0)), "CPU")
        print(f"{node['NodeManagerAddress']:<16} {'up' if node['Alive'] else 'lost':<5} {cpus}")
    return ExitCode.OK
