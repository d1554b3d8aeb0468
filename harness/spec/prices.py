"""Prices of hardware per hour, from flags or a file. There is no default: a price is never made up."""

import re
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

from harness.errors import SpecError
from harness.model import Prices
from harness.spec import files
from harness.spec.scenario.limits import positive
from harness.spec.strict import build
from harness.untrusted import LIMIT

ANY_GPU = "*"  # in gpu_per_hour: whatever its name
_BY_NAME = ("gpu_per_hour", "backend_per_hour")  # tables of prices
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]{3})?")


def given_prices(per_hour: str | None, per_gpu_hour: str | None, path: Path | None) -> Prices | None:
    """Prices from whichever of the three is given; None without any.

    Raises SpecError for two, or a bad one.
    """
    flags = {"--price-per-hour": per_hour, "--price-per-gpu-hour": per_gpu_hour, "--prices": path}
    used = [flag for flag, value in flags.items() if value is not None]
    if len(used) > 1:
        raise SpecError("these prices exclude each other", where=" and ".join(used))
    if path is not None:
        return load_prices(path)
    if per_hour is not None and "=" in per_hour:
        return _by_backend(per_hour, used[0])
    if per_hour is not None:
        amount, currency = _amount(per_hour, used[0])
        return Prices(currency, used[0], machine_per_hour=amount)
    if per_gpu_hour is not None:
        amount, currency = _amount(per_gpu_hour, used[0])
        return Prices(currency, used[0], gpu_per_hour={ANY_GPU: amount})
    return None


def _by_backend(text: str, flag: str) -> Prices:
    """Prices of machines by backend, such as `vllm=3.80EUR,sglang=2.10EUR`."""
    named = [part.strip().rpartition("=") for part in text.split(",")]
    amounts = {name: _amount(amount, flag) for name, _, amount in named}
    currencies = {currency for _, currency in amounts.values()}
    if "" in amounts or len(amounts) < len(named) or len(currencies) > 1:
        raise SpecError(
            f"'{text}' is not one price for each backend, in one currency",
            where=flag,
            hint="write vllm=3.80EUR,sglang=2.10EUR, or one price for all",
        )
    return Prices(
        currencies.pop(), flag, backend_per_hour={name: amount for name, (amount, _) in amounts.items()}
    )


def check_priced(prices: Prices | None, labels: Collection[str]) -> None:
    """Raises SpecError for a price of a backend that is not in the run."""
    for name in prices.backend_per_hour if prices else ():
        if name not in labels:
            hint = f"backends of this run: {', '.join(labels)}"
            raise SpecError(f"no backend '{name}' to have a price", where="prices", hint=hint)


def load_prices(path: Path) -> Prices:
    prices = build(Prices, files.read_toml(path), str(path))
    for table in _BY_NAME:
        if misplaced := [field.name for field in fields(Prices) if field.name in getattr(prices, table)]:
            raise SpecError(
                "is a key of the file, not a name that has a price",
                where=f"{path}:{table}.{misplaced[0]}",
                hint=f"write it above [{table}]",
            )
    amounts = {"machine_per_hour": prices.machine_per_hour}
    for table in _BY_NAME:
        amounts |= {f"{table}.{name}": amount for name, amount in getattr(prices, table).items()}
    for key, amount in amounts.items():
        if amount is not None:
            positive(amount, f"{path}:{key}")
    ways = ("machine_per_hour", *_BY_NAME)
    given = [key for key in ways if getattr(prices, key)]
    if not given:
        raise SpecError(f"has none of {', '.join(ways)}", where=str(path))
    if len(given) > 1:
        raise SpecError(f"has both {given[0]} and {given[1]}", where=str(path), hint="leave one out")
    return prices


def _amount(text: str, flag: str) -> tuple[float, str]:
    match = _AMOUNT.fullmatch(text.strip())
    if not match or not 0 < float(match[1]) < LIMIT:
        raise SpecError(
            f"'{text}' is not a price above 0", where=flag, hint="write 1.99, or 1.99EUR; USD is assumed"
        )
    return float(match[1]), (match[2] or "USD").upper()
