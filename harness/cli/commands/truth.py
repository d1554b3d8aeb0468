"""`bench truth`: a scripted server, until a signal or a fault ends it."""

import argparse
from dataclasses import dataclass
from typing import Self

from harness.cli.display.result import Result
from harness.cli.typed import Flags
from harness.mockserver.cli import add_arguments, options_of, serve
from harness.mockserver.options import Options as ServerOptions

__all__ = ["Options", "add_arguments", "main"]


@dataclass(frozen=True)
class Options(Flags):
    server: ServerOptions

    @classmethod
    def from_parsed(cls, parsed: argparse.Namespace) -> Self:
        return cls(options_of(parsed))


def main(given: Options) -> Result:
    return Result(code=serve(given.server))
