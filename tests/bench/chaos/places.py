"""A run where something is missing: a folder to write to, a reader, descriptors, columns, letters."""

import argparse
import errno
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import ExitCode
from tests.bench.chaos.page import Table, cell_of
from tests.integration.attacked import LIMIT_S
from tests.integration.full import Full

MEASURED = (ExitCode.OK, ExitCode.INVALID)


@dataclass(frozen=True)
class Place:
    """`shell` gets the command as `$@`. `codes`: one of these ends it. `whole`: both cells are measured."""

    name: str
    shell: str = 'exec "$@"'
    codes: tuple[int, ...] = MEASURED
    whole: bool = True
    refused: str = ""  # a folder in which nothing can be made or written
    errno: int = errno.EROFS
    environment: dict[str, str] = field(default_factory=dict)


PLACES = (
    Place("results are read-only", refused="results", codes=(ExitCode.SETUP,), whole=False),
    Place("TMPDIR is read-only", refused="tmp"),
    Place("the cache is read-only", refused="cache"),
    Place("there is no /dev/shm", refused="/dev/shm", errno=errno.ENOENT),
    Place("64 descriptors", shell='ulimit -n 64 && exec "$@"'),
    Place("standard output is full", shell='exec "$@" >/dev/full', codes=(ExitCode.SETUP,)),
    Place("standard error is full", shell='exec "$@" 2>/dev/full'),
    Place(
        "nobody reads",
        shell='{ "$@" 2>&1; echo "$?" >code; } | true; exit "$(cat code)"',
        codes=(ExitCode.UNREAD,),
    ),
    Place("all three streams are closed", shell='exec "$@" <&- >&- 2>&-'),
    Place("20 columns", environment={"COLUMNS": "20"}),
    Place("a Turkish terminal", environment={"LC_ALL": "tr_TR", "PYTHONIOENCODING": "iso8859-9"}),
    Place("an ASCII terminal", environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "TERM": "dumb"}),
)


def places(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="chaos-") as home:
        for number, place in enumerate(PLACES):
            if arguments.only not in place.name or time.monotonic() - began > arguments.seconds:
                continue
            room = Path(home, str(number))
            room.mkdir()
            with chdir(room):
                found[place.name] = broken(room, place)
            for line in found[place.name]:
                print(f"{place.name}: {line}", file=sys.stderr, flush=True)
    rows = {name: [cell_of(lines)] for name, lines in found.items()}
    Table("places", ("where", "result"), tuple(place.name for place in PLACES)).publish(rows, arguments)
    print(f"\n{len(found)} places, {time.monotonic() - began:.0f} s.")
    return 1 if any(found.values()) or not found else 0


def broken(room: Path, place: Place) -> list[str]:
    """Promises that did not hold. `room` is an empty working directory, and the present one."""
    case = Full(room, (place.refused,) if place.refused else ())
    case.shell = place.shell
    refusal = {"FULL_AT": "0", "FULL_ERRNO": str(place.errno)} if place.refused else {}
    code = case.run_with(**refusal, **place.environment)
    if code is None:
        return [f"no end within {LIMIT_S} s"]
    return [*case.left_running(), *case.tracebacks(), *_result(case, place, code)]


def _result(case: Full, place: Place, code: int) -> Iterator[str]:
    if code not in place.codes:
        yield f"exit code {code}: {case.said[-300:]}"
    if code == ExitCode.SETUP and not place.shell.endswith("/dev/full") and "error:" not in case.said:
        yield "no error is shown"
    if place.whole:
        yield from (f"no cell {number}" for number in (0, 1) if not case.cells(number))
        yield from case.left_behind()
        if case.cells(1) and case.state() != "complete":
            yield f"the run is {case.state()}"
