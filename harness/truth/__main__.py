"""`python -m harness.truth`: the server alone, without the rest of `bench`."""

import argparse
import sys

from harness.truth.cli import add_arguments, main

parser = argparse.ArgumentParser(prog="python -m harness.truth")
add_arguments(parser)
sys.exit(main(parser.parse_args()))
