"""Processes of a run, or of a night, struck at any time."""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.bench.chaos.page import Table
from tests.integration.struck import SIGNALS, WHO, Moment, broken_at, whole_s
from tests.integration.struck import moments as drawn

T = TypeVar("T")
_LINE_CHARS = 300


class _Outcome(NamedTuple):
    """A line of the log."""

    moment: str
    signal: str
    who: str
    broken: list[str]


def moments(arguments: argparse.Namespace) -> int:
    """With `--log`, moments that held by the file are not tried again, and count in the table."""
    began = time.monotonic()
    log: Path = arguments.log or Path(tempfile.mkdtemp(prefix="chaos-"), "log")
    found = _read(log)
    left = [
        one
        for one in drawn(arguments.count, arguments.seed)
        if str(one) not in found or found[str(one)].broken
    ]
    taken: dict[bool, float] = {}
    for moment in left:
        if time.monotonic() - began > arguments.seconds:
            break
        if moment.night not in taken:
            taken[moment.night] = _in_room(partial(whole_s, night=moment.night))
        outcome = _tried(moment, taken)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(outcome) + "\n")
        found[outcome.moment] = outcome
        for line in outcome.broken:
            print(f"{moment}, {outcome.who}: {line}", file=sys.stderr, flush=True)
    rows = {who: [_cell(list(found.values()), who, name) for name in SIGNALS] for who in WHO}
    Table("moments", ("struck", *(f"SIG{name}" for name in SIGNALS)), WHO).publish(rows, arguments)
    print(f"\n{len(found)} of {arguments.count} strikes.")
    return 1 if any(one.broken for one in found.values()) or not found else 0


def _read(log: Path) -> dict[str, _Outcome]:
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return {one.moment: one for one in (_Outcome(*json.loads(line)) for line in lines)}


def _tried(moment: Moment, taken: dict[bool, float]) -> _Outcome:
    """Again where it had ended by then: it takes less than the last one took."""
    who = ""
    while not who:
        began = time.monotonic()
        try:
            who, promises = _in_room(partial(broken_at, moment=moment, whole_s=taken[moment.night]))
        except Exception as error:  # the run cannot be read: that is what was broken
            who, promises = "bench", [f"{type(error).__name__}: {error}"[:_LINE_CHARS]]
        if not who:
            taken[moment.night] = min(time.monotonic() - began, taken[moment.night] * 0.98)
    return _Outcome(str(moment), moment.signal, who, promises)


def _in_room(work: Callable[[Path], T]) -> T:
    with tempfile.TemporaryDirectory(prefix="chaos-") as room, chdir(room):
        return work(Path(room))


def _cell(found: list[_Outcome], who: str, name: str) -> str:
    struck = [one for one in found if (one.who, one.signal) == (who, name)]
    held = sum(not one.broken for one in struck)
    broken = dict.fromkeys(line for one in struck for line in one.broken)
    words = " ".join("; ".join(broken).replace("|", "/").split())  # a row is one line
    return f"{held} of {len(struck)} held" + (f": {words}" if words else "") if struck else ""
