"""Foreign data of drawn shapes through every parser."""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.bench.chaos.cheaper import cheaper
from tests.bench.chaos.page import Table
from tests.factories.shapes import SUBJECTS, Folders, Subject, judge

_SLOW_SHARE = 0.001  # of all cases: each is a few whole commands
_CASE_CHARS = 300
_COLUMNS = ("parser", "cases", "accepted", "refused", "tracebacks", "seconds")


class _OverError(Exception):
    """The time is up."""


@dataclass
class Tally:
    counts: Counter[str] = field(default_factory=Counter)
    found: dict[str, str] = field(default_factory=dict)  # place that raised it → traceback and case
    seconds: float = 0.0

    @property
    def cells(self) -> list[str]:
        counts = [
            sum(self.counts.values()),
            *(self.counts[one] for one in ("accepted", "refused", "traceback")),
        ]
        return [f"{count:,}" for count in [*counts, round(self.seconds)]]


def campaign(subject: Subject, folders: Folders, count: int, number: int, until: float) -> Tally:
    """Cases are drawn, not shrunk: a finding is one by the place that raised it."""
    tally = Tally()
    began = time.monotonic()

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(subject.cases(folders))
    def check(case: Any) -> None:
        if time.monotonic() > until:
            raise _OverError
        try:
            tally.counts[judge(subject, folders, case)] += 1
        except Exception as error:  # whatever it is, it is the finding
            tally.counts["traceback"] += 1
            tally.found.setdefault(_place(error), f"{_story(error)}\n  case: {case!r:.{_CASE_CHARS}}")

    with suppress(_OverError):
        check()
    tally.seconds = time.monotonic() - began
    return tally


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {frame.filename}:{frame.lineno}"


def _story(error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/harness/" in frame.filename]
    places = "".join(f"\n  {frame.filename}:{frame.lineno} {frame.line}" for frame in frames[-4:])
    return f"{type(error).__name__}: {str(error)[:_CASE_CHARS]}{places}"


def shares(count: int) -> list[int]:
    """Of each of SUBJECTS."""
    slow = [max(1, int(count * _SLOW_SHARE)) if subject.slow else 0 for subject in SUBJECTS]
    each = -(-(count - sum(slow)) // sum(not subject.slow for subject in SUBJECTS))
    return [few or each for few in slow]


def parsers(arguments: argparse.Namespace) -> int:
    part, parts = arguments.part
    asked = [
        (subject, count)
        for subject, count in list(zip(SUBJECTS, shares(arguments.count), strict=True))[part - 1 :: parts]
        if arguments.only in ("", subject.name)
    ]
    began = time.monotonic()
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory(prefix="chaos-") as room:
        os.environ["BENCH_CACHE"] = f"{room}/cache"
        cheaper()
        folders = Folders(Path(room, "results"))
        for place, (subject, count) in enumerate(asked):
            now = time.monotonic()
            left = began + arguments.seconds - now
            until = now + min(left, left / (len(asked) - place) * 3)
            tallies[subject.name] = campaign(subject, folders, count, arguments.seed, until)
            for where, story in tallies[subject.name].found.items():
                print(f"{subject.name}: {where}\n{story}\n", file=sys.stderr)
    table = Table("parsers", _COLUMNS, tuple(subject.name for subject in SUBJECTS), summed=True)
    table.publish({name: tally.cells for name, tally in tallies.items()}, arguments)
    return 1 if any(tally.found for tally in tallies.values()) or not tallies else 0


def part(text: str) -> tuple[int, int]:
    """`2/5`: every fifth parser from the second on."""
    one, _, parts = text.partition("/")
    if not 1 <= int(one) <= int(parts):
        raise ValueError(text)
    return int(one), int(parts)
