"""`python -m harness.mockserver`: the server alone, without the rest of `bench`."""

import argparse
import sys

from harness.errors import BenchError
from harness.mockserver.cli import add_arguments, main

parser = argparse.ArgumentParser(prog="python -m harness.mockserver")
add_arguments(parser)
try:
    sys.exit(main(parser.parse_args()))
except BenchError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
