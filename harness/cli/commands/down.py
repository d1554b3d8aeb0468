"""`bench down`: removes what `bench up` started."""

import argparse
import sys

from harness.errors import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="BACKEND", help="backends to stop (default: all)")


def main(arguments: argparse.Namespace) -> int:
    from harness.engines.start.containers.daemon import Daemon
    from harness.engines.start.containers.owners import running
    from harness.engines.start.containers.service import STOP_GRACE_S

    daemon = Daemon()
    for name in arguments.names or [""]:
        up = [container for container in running(daemon, name) if container.kept]
        if not up:
            print(f"{name or 'nothing'} is {'not ' if name else ''}up", file=sys.stderr)
        for container in up:
            daemon.remove_project(container.project, grace_s=STOP_GRACE_S)
            print(f"{container.engine}: stopped and removed")
    return ExitCode.OK
