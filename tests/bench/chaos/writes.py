"""A disk that is full from one step of a run on: the first and the last step of each kind."""

import argparse
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

from tests.bench.chaos.page import Table, cell_of
from tests.integration.full import STEPS, Full

Steps = dict[tuple[str, str], list[int]]  # by file and what is done to it


def writes(arguments: argparse.Namespace) -> int:
    """`--only`: a part of `FILE: STEP`, such as `manifest.json: rename`."""
    began = time.monotonic()
    found: dict[tuple[str, str], list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="chaos-") as home:
        steps = _steps(Path(home))
        asked = {kind: numbers for kind, numbers in steps.items() if arguments.only in ": ".join(kind)}
        for kind, numbers in asked.items():
            if time.monotonic() - began > arguments.seconds:
                break
            found[kind] = [line for number in numbers for line in _broken(Path(home), number)]
            for line in found[kind]:
                print(f"{': '.join(kind)}: {line}", file=sys.stderr, flush=True)
    files = dict.fromkeys(file for file, _ in steps)
    rows = {f"`{file}`": [cell_of(found.get((file, step))) for step in STEPS] for file in files}
    tried = {name: cells for name, cells in rows.items() if any(cells)}
    Table("writes", ("file", *STEPS), tuple(rows)).publish(tried, arguments)
    print(f"\n{len(found)} of {len(asked)} kinds of steps, {time.monotonic() - began:.0f} s.")
    return 1 if any(found.values()) or not found else 0


def _steps(home: Path) -> Steps:
    """Of a run that is left alone."""
    room = home / "whole"
    room.mkdir()
    with chdir(room):
        places = Full(room).places()
    kinds: Steps = {}
    for number, kind in places:
        kinds.setdefault(kind, []).append(number)
    return {kind: sorted({numbers[0], numbers[-1]}) for kind, numbers in kinds.items()}


def _broken(home: Path, step: int) -> list[str]:
    room = home / str(step)
    room.mkdir()
    with chdir(room):
        return Full(room).broken(step)
