"""`bench logs`: what an engine in a container has to say."""

import argparse
import codecs
import sys

from harness.cli.display.streams import Terminal
from harness.errors import ExitCode, SetupError, SpecError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help="engine whose container `bench up` started")
    parser.add_argument("-f", "--follow", action="store_true", help="follow until the engine ends or Ctrl-C")
    parser.add_argument("--tail", type=int, default=100, metavar="N", help="last N lines (default: 100)")


def main(arguments: argparse.Namespace) -> int:
    from harness.engines.provide.logged import COLOUR
    from harness.engines.start.containers.daemon import Daemon
    from harness.engines.start.containers.owners import running

    if arguments.tail < 0:
        raise SpecError(f"must not be negative, not {arguments.tail}", where="--tail")
    daemon = Daemon()
    containers = running(daemon, arguments.backend)
    if not containers:
        raise SetupError(
            "it has no container here",
            where=arguments.backend,
            hint="`bench up` starts one; logs of runs are in their folders",
        )
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    for part in daemon.log(containers[0].container_id, follow=arguments.follow, lines=arguments.tail):
        if isinstance(sys.stdout, Terminal):
            sys.stdout.write(COLOUR.sub("", decode(part)))
            sys.stdout.flush()
        else:
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
    return ExitCode.OK
