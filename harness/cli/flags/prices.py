"""The flags for the price of an hour, of a run and of its report afterwards."""

import argparse
from pathlib import Path

from harness.errors import page_address
from harness.model import Prices


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cost = parser.add_argument_group("cost (no price is assumed)")
    cost.add_argument(
        "--price-per-hour",
        metavar="PRICE",
        help="price of the engine's machine, such as 1.99 or 1.99EUR; of several machines BACKEND=PRICE,…",
    )
    cost.add_argument("--price-per-gpu-hour", metavar="PRICE", help="price of each GPU the engine used")
    about = f"TOML file with prices; see {page_address('cost')}"
    cost.add_argument("--prices", type=Path, metavar="FILE", help=about)


def given(arguments: argparse.Namespace) -> Prices | None:
    """Raises SpecError."""
    from harness.spec.prices import given_prices

    return given_prices(arguments.price_per_hour, arguments.price_per_gpu_hour, arguments.prices)
