"""`python -m harness.mockserver`: the server alone, without the rest of `bench`."""

import argparse
import sys

from harness.errors import BenchError
from harness.mockserver.cli import add_arguments, options_of, serve

parser = argparse.ArgumentParser(prog="python -m harness.mockserver")
add_arguments(parser)
try:
    sys.exit(serve(options_of(parser.parse_args())))
except BenchError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
