"""Processes of a run killed at every stage."""

import argparse
import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

from tests.bench.chaos.page import Table, cell_of
from tests.integration.struck import SIGNALS, STAGES, WHO, Strike, broken, strikes

_LINE_CHARS = 300


def processes(arguments: argparse.Namespace) -> int:
    """`--only`: a part of what a strike is called, such as `KILL guard`."""
    began = time.monotonic()
    found: dict[Strike, list[str]] = {}
    asked = [one for one in strikes() if arguments.only in str(one)]
    for strike in asked:
        if time.monotonic() - began > arguments.seconds:
            break
        with tempfile.TemporaryDirectory(prefix="chaos-") as room, chdir(room):
            try:
                found[strike] = broken(Path(room), strike)
            except Exception as error:  # the strike itself did not come about, or the run cannot be read
                found[strike] = [f"{type(error).__name__}: {error}"[:_LINE_CHARS]]
        for line in found[strike]:
            print(f"{strike}: {line}", file=sys.stderr, flush=True)
    rows = {
        f"{who}, SIG{name}": [cell_of(found.get(Strike(who, name, stage))) for stage in STAGES]
        for who in WHO
        for name in SIGNALS
    }
    tried = {name: cells for name, cells in rows.items() if any(cells)}
    Table("processes", ("struck", *STAGES), tuple(rows)).publish(tried, arguments)
    print(f"\n{len(found)} of {len(asked)} strikes, {time.monotonic() - began:.0f} s.")
    return 1 if any(found.values()) or not found else 0
