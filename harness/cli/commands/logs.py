"""`bench logs`: what an engine in a container has to say."""

import argparse
import codecs
import sys
from dataclasses import dataclass

from harness.cli.commands import containers
from harness.cli.display.result import Result
from harness.cli.display.streams import Terminal
from harness.cli.typed import Flags
from harness.errors import SetupError, SpecError


@dataclass(frozen=True)
class Options(Flags):
    backend: str
    follow: bool
    tail: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help="engine whose container `bench up` started")
    parser.add_argument("-f", "--follow", action="store_true", help="follow until the engine ends or Ctrl-C")
    parser.add_argument("--tail", type=int, default=100, metavar="N", help="last N lines (default: 100)")


def main(given: Options) -> Result:
    """Writes as the log comes, and every byte as it is where no terminal reads."""
    from harness.engines.provide.logged import COLOUR
    from harness.engines.start.containers import daemon

    if given.tail < 0:
        raise SpecError(f"must not be negative, not {given.tail}", where="--tail")
    found = containers.of_backend(given.backend)
    if not found:
        raise SetupError(
            "it has no container here",
            where=given.backend,
            hint="`bench up` starts one; logs of runs are in their folders",
        )
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    log = daemon.Daemon().log(found[0].container_id, follow=given.follow, lines=given.tail)
    for part in log:
        if isinstance(sys.stdout, Terminal):
            sys.stdout.write(COLOUR.sub("", decode(part)))
            sys.stdout.flush()
        else:
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
    return Result()
