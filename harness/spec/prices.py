"""Prices of hardware per hour, from flags or a file. There is no default: a price is never made up."""

import re
from dataclasses import fields
from pathlib import Path

from harness.errors import SpecError
from harness.model import Prices
from harness.spec import files
from harness.spec.scenario.limits import positive
from harness.spec.strict import build
from harness.untrusted import LIMIT

ANY_GPU = "*"  # in gpu_per_hour: whatever its name
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
    if per_hour is not None:
        amount, currency = _amount(per_hour, used[0])
        return Prices(currency, used[0], machine_per_hour=amount)
    if per_gpu_hour is not None:
        amount, currency = _amount(per_gpu_hour, used[0])
        return Prices(currency, used[0], gpu_per_hour={ANY_GPU: amount})
    return None


def load_prices(path: Path) -> Prices:
    prices = build(Prices, files.read_toml(path), str(path))
    if misplaced := [field.name for field in fields(Prices) if field.name in prices.gpu_per_hour]:
        raise SpecError(
            "is a key of the file, not the name of a GPU",
            where=f"{path}:gpu_per_hour.{misplaced[0]}",
            hint="write it above [gpu_per_hour]",
        )
    amounts = {"machine_per_hour": prices.machine_per_hour, **prices.gpu_per_hour}
    for key, amount in amounts.items():
        if amount is not None:
            positive(amount, f"{path}:{key}")
    if prices.machine_per_hour is None and not prices.gpu_per_hour:
        raise SpecError("has neither machine_per_hour nor gpu_per_hour", where=str(path))
    if prices.machine_per_hour is not None and prices.gpu_per_hour:
        raise SpecError("has both machine_per_hour and gpu_per_hour", where=str(path), hint="leave one out")
    return prices


def _amount(text: str, flag: str) -> tuple[float, str]:
    match = _AMOUNT.fullmatch(text.strip())
    if not match or not 0 < float(match[1]) < LIMIT:
        raise SpecError(
            f"'{text}' is not a price above 0", where=flag, hint="write 1.99, or 1.99EUR; USD is assumed"
        )
    return float(match[1]), (match[2] or "USD").upper()
