"""Processes of a run stopped for a while in its load: all of them, bench's own, or the engine."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from harness.model import CellResult, IssueCode
from tests.bench.chaos.page import Table
from tests.integration.frozen import TRUE_PER_S, Frozen, Outcome

SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_OFF = 0.02  # of the true rate, by which a cell that is not INVALID may be off
_ENGINE_SECONDS = 1.0  # from which on a stall of the engine is to be named
_STILL = {IssueCode.MACHINE_STALLED, IssueCode.CLIENT_STALLED}
_COLUMNS = ("stopped", "requests/s of that cell", "off", "its verdict", "its issues", "again", "printed")


def freezes(arguments: argparse.Namespace) -> int:
    """`--only`: a part of the name of a row, such as `engine, 2 s`."""
    began = time.monotonic()
    asked = {"nobody": ("nobody", 0.0)}
    asked |= {f"{who}, {lasts:g} s": (who, lasts) for who in ("all", "client", "engine") for lasts in SECONDS}
    rows, bad, tried = {}, 0, 0
    for name, (who, lasts) in asked.items():
        if arguments.only not in name or time.monotonic() - began > arguments.seconds:
            continue
        tried += 1
        with tempfile.TemporaryDirectory(prefix="freeze-") as room, chdir(room):
            found = Frozen(Path(room)).strike(who, lasts)
        for line in _broken(who, lasts, found):
            bad += 1
            print(f"{name}: {line}", file=sys.stderr, flush=True)
        rows[name] = _cells(found)
        print(f"{name}: {', '.join(rows[name])}", file=sys.stderr, flush=True)
    Table("freezes", _COLUMNS, tuple(asked)).publish(rows, arguments)
    print(f"\n{TRUE_PER_S:.2f} requests/s are true. {tried} runs, {time.monotonic() - began:.0f} s.")
    return 1 if bad or not tried else 0


def _off(cell: CellResult) -> float:
    return (cell.requests_per_s or 0.0) / TRUE_PER_S - 1


def _broken(who: str, lasts: float, found: Outcome) -> Iterator[str]:
    codes = {reason.code for reason in found.struck.validity.reasons}
    named = IssueCode.ENGINE_STALLED in found.warnings
    if who in ("nobody", "engine"):
        if codes & _STILL or found.again:
            yield "the load generator or the machine has the blame"
        if named != (who == "engine" and lasts >= _ENGINE_SECONDS) and lasts != 0.5:
            yield "the engine's stall is not named" if who == "engine" else "a stall of the engine is named"
        return
    if abs(_off(found.struck)) > MOST_OFF and not (found.again and codes & _STILL):
        yield f"{_off(found.struck):+.1%} off, {found.struck.validity.verdict}"
    if abs(_off(found.kept)) > MOST_OFF and not found.kept.invalid:
        yield f"{_off(found.kept):+.1%} off is printed"


def _cells(found: Outcome) -> list[str]:
    """`contended` says what else this machine does, so it is left out."""
    issues = [reason.code for reason in found.struck.validity.reasons if reason.code != IssueCode.CONTENDED]
    if IssueCode.ENGINE_STALLED in found.warnings:
        issues.append(IssueCode.ENGINE_STALLED)
    return [
        f"{found.struck.requests_per_s:.2f}",
        f"{_off(found.struck):+.1%}",
        found.struck.validity.verdict,
        ", ".join(f"`{code}`" for code in issues) or "none",
        "yes" if found.again else "no",
        "withheld" if found.kept.invalid else f"{found.kept.requests_per_s:.2f}",
    ]
