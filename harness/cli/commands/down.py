"""`bench down`: removes what `bench up` started."""

import argparse
from dataclasses import dataclass

from harness.cli.commands import containers
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import Flags


@dataclass(frozen=True)
class Options(Flags):
    names: tuple[str, ...]
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="BACKEND", help="backends to stop (default: all)")
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.engines.start.containers import daemon
    from harness.engines.start.containers.service import STOP_GRACE_S

    stopped, absent = list[str](), list[str]()
    found = {name: containers.of_backend(name) for name in given.names or [""]}  # a wrong name stops none
    for name, of_name in found.items():
        up = [container for container in of_name if container.kept and container.engine not in stopped]
        if not up:
            absent.append(f"{name or 'nothing'} is {'not ' if name else ''}up")
        for container in up:  # each takes seconds
            daemon.Daemon().remove_project(container.project, grace_s=STOP_GRACE_S)
            put(Result(f"{container.engine}: stopped and removed"), as_json=given.json)
            stopped.append(container.engine)
    return Result(document=lambda: {"stopped": stopped}, notes=absent)
