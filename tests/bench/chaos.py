"""Foreign data of drawn shapes through every parser, and processes of a run killed at every stage.

    python -m tests.bench.chaos parsers [--count 100000] [--seconds 900] [--seed 0] [--only NAME]
    python -m tests.bench.chaos processes [--seconds 900] [--only NAME]

Prints a Markdown table, as docs/reliability.md holds it. Exits 1 where anything failed: a traceback, with the
case that brings it, or a promise that a killed process broke.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import chdir, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "unit"))
sys.path.append(str(Path(__file__).parents[1] / "integration"))
sys.path.append(str(Path(__file__).parents[2]))
from hypothesis import HealthCheck, Phase, given, seed, settings
from shapes import SUBJECTS, Folders, Subject, judge
from struck import SIGNALS, STAGES, WHO, Strike, broken, strikes

_SLOW_SHARE = 0.002  # of all cases: each is a few whole commands
_CASE_CHARS = 300


class _OverError(Exception):
    """The time is up."""


@dataclass
class Tally:
    name: str
    counts: Counter[str] = field(default_factory=Counter)
    found: dict[str, str] = field(default_factory=dict)  # place that raised it → traceback and case

    @property
    def cases(self) -> int:
        return sum(self.counts.values())


def campaign(subject: Subject, folders: Folders, count: int, number: int, until: float) -> Tally:
    """Cases are drawn, not shrunk: a finding is one by the place that raised it."""
    tally = Tally(subject.name)

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
    return tally


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {frame.filename}:{frame.lineno}"


def _story(error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/harness/" in frame.filename]
    places = "".join(f"\n  {frame.filename}:{frame.lineno} {frame.line}" for frame in frames[-4:])
    return f"{type(error).__name__}: {str(error)[:_CASE_CHARS]}{places}"


def shares(chosen: Sequence[Subject], count: int) -> list[int]:
    slow = [max(1, int(count * _SLOW_SHARE)) if subject.slow and len(chosen) > 1 else 0 for subject in chosen]
    quick = max(1, sum(not subject.slow for subject in chosen))
    each = -(-(count - sum(slow)) // quick)
    return [few or each for few in slow]


def parsers(arguments: argparse.Namespace) -> int:
    chosen = [subject for subject in SUBJECTS if arguments.only in ("", subject.name)]
    began = time.monotonic()
    tallies: list[Tally] = []
    with tempfile.TemporaryDirectory(prefix="chaos-") as room:
        os.environ["BENCH_CACHE"] = f"{room}/cache"
        _without_plots()
        folders = Folders(Path(room, "results"))
        for place, (subject, count) in enumerate(zip(chosen, shares(chosen, arguments.count), strict=True)):
            now = time.monotonic()
            until = now + (began + arguments.seconds - now) / (len(chosen) - place) * 2
            until = min(until, began + arguments.seconds)
            tallies.append(campaign(subject, folders, count, arguments.seed, until))
            for where, story in tallies[-1].found.items():
                print(f"{subject.name}: {where}\n{story}\n", file=sys.stderr)
    print("| parser | cases | accepted | refused | tracebacks |\n|---|--:|--:|--:|--:|")
    for tally in tallies:
        counts = tally.counts
        print(
            f"| {tally.name} | {tally.cases:,} | {counts['accepted']:,} | {counts['refused']:,} "
            f"| {counts['traceback']:,} |"
        )
    total = sum(tally.cases for tally in tallies)
    print(f"\n{total:,} cases, seed {arguments.seed}, {time.monotonic() - began:.0f} s.")
    return 1 if any(tally.found for tally in tallies) or not total else 0


def _without_plots() -> None:
    """Pictures take a second each, and are drawn from what the report took."""
    from harness.report import plots

    plots.draw = lambda *_arguments, **_options: []  # type: ignore[assignment]


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
                found[strike] = [f"{type(error).__name__}: {error}"[:_CASE_CHARS]]
        for line in found[strike]:
            print(f"{strike}: {line}", file=sys.stderr, flush=True)
    print(f"| struck | {' | '.join(STAGES)} |\n|---|{'---|' * len(STAGES)}")
    for who in WHO:
        for name in SIGNALS:
            cells = (_cell(found.get(Strike(who, name, stage))) for stage in STAGES)
            print(f"| {who}, SIG{name} | {' | '.join(cells)} |")
    print(f"\n{len(found)} of {len(asked)} strikes, {time.monotonic() - began:.0f} s.")
    return 1 if any(found.values()) or not found else 0


def _cell(promises: Sequence[str] | None) -> str:
    """Of a stage that has no such process, or was not asked for, nothing."""
    return "" if promises is None else "; ".join(promises).replace("|", "/") or "held"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(required=True)
    for name, work in (("parsers", parsers), ("processes", processes)):
        one = kinds.add_parser(name)
        one.set_defaults(work=work)
        one.add_argument("--seconds", type=float, default=1200)
        one.add_argument("--only", default="", metavar="NAME")
        if work is parsers:
            one.add_argument("--count", type=int, default=100_000)
            one.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    return int(arguments.work(arguments))


if __name__ == "__main__":
    sys.exit(main())
