"""Values of flags, whose mistakes are named in words: argparse names Python's types."""

import argparse
import math
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from harness.untrusted import LIMIT

if TYPE_CHECKING:
    from harness.apis import ApiName

T = TypeVar("T", int, float)

DEFAULT_QUESTIONS = 600  # of --accuracy alone
_FEWEST, _MOST = 60, 10_000  # fewer show nothing that the 58 do not
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}
_DEPTH = re.compile(r"([1-9]\d{0,6})(k?)")
_PART = re.compile(r"(\d+(?:\.\d+)?)([hms])")


def whole_number(text: str) -> int:
    """No larger than JSON documents of a run can hold."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
    if abs(value) >= LIMIT:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number below 2**63")
    return value


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None


def _from_0(what: str, text: str) -> float:
    """A finite number, 0 or more: of a wait of NaN no end would come."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not {what} from 0 on")
    return value


wait_s = partial(_from_0, "a number of seconds")
percent = partial(_from_0, "a percentage")


def _listed(kind: Callable[[str], T], text: str) -> list[T]:
    try:
        values = [kind(part) for part in text.split(",") if part]
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; a list is like 1,8,32") from None
    if not values:
        raise argparse.ArgumentTypeError(f"'{text}' holds no number; a list is like 1,8,32")
    return values


whole_numbers = partial(_listed, whole_number)
numbers = partial(_listed, number)


def names(text: str) -> list[str]:
    if found := [part for part in text.split(",") if part]:
        return found
    raise argparse.ArgumentTypeError(f"'{text}' holds no name")


def duration_s(text: str) -> float:
    """Seconds of `2h`, `45m`, `90s` or `1h30m`."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"'{text}' is not a duration like 2h, 45m, 90s or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def address(text: str) -> tuple[str, int]:
    """Host and port of `9400` or `0.0.0.0:9400`; without a host only this machine."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port, nor an address like 0.0.0.0:9400")
    return host or "127.0.0.1", int(port)


def depths(text: str) -> list[tuple[str, int]]:
    """Names and tokens of `4k,8k,16384`: k is 1,024."""
    found = [(part, _DEPTH.fullmatch(part)) for part in text.split(",")]
    named = {part: int(match[1]) * (1024 if match[2] else 1) for part, match in found if match}
    if len(named) < len(found):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a list of different numbers of tokens, like 4k,8k,16k"
        )
    return list(named.items())


def repeats(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither auto nor a whole number") from None
    return whole_number(text)


def questions(text: str) -> int:
    if not text.isdecimal() or not _FEWEST <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of questions from {_FEWEST} to {_MOST}")
    return int(text)


def apis(text: str) -> "tuple[ApiName, ...]":
    """Different APIs, separated by commas."""
    from harness.apis import API_NAMES

    known = {str(name): name for name in API_NAMES}
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is not one of {', '.join(known)}")
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"'{text}' names one of them twice")
    return tuple(known[name] for name in names)
