"""`bench claims`: what others have published about engines; with a run, whether it holds there."""

import argparse
import dataclasses
import shlex
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.output import printed_command
from harness.cli.display.result import Result
from harness.cli.flags import argument_types, options
from harness.cli.typed import Flags
from harness.errors import SpecError
from harness.model import as_json
from harness.model.lines import wrap
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.claims import Catalog, Claim


@dataclasses.dataclass(frozen=True)
class Options(Flags):
    run: str | None
    systems: tuple[str, ...]
    out: Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        nargs="?",
        metavar="RUN|CLAIM",
        help="run folder, or name of a run under --out; or a claim such as A0-003: which run decides it",
    )
    parser.add_argument(
        "--system",
        dest="systems",
        default=(),
        metavar="NAME,…",
        type=argument_types.names,
        help="engine that the claims are about; of several, all of them (default: any)",
    )
    options.add_runs_folder(parser)
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.claims import load_catalog

    catalog = load_catalog()
    known = {name.partition("@")[0] for claim in catalog.claims for name in claim.systems}
    if unknown := [name for name in given.systems if name not in known]:
        raise SpecError(f"no claim is about '{unknown[0]}'", hint=f"known: {', '.join(sorted(known))}")
    chosen = [claim for claim in catalog.claims if _is_about(claim, given.systems)]
    named = (given.run or "").casefold()
    if single := [claim for claim in catalog.claims if claim.id.casefold() == named]:
        return Result(
            lambda screen: _decided(catalog, single[0], screen.width), lambda: _plain(single[0], catalog)
        )
    if given.run is not None:
        if given.run.upper().partition("-")[0] in catalog.sources:
            raise SpecError("no such claim", where=given.run, hint="`bench claims` lists them")
        return _held_against(given.run, given.out, {claim.id for claim in chosen})
    return Result(
        lambda screen: _listed(catalog, chosen, screen.width),
        lambda: [_plain(claim, catalog) for claim in chosen],
    )


def _is_about(claim: "Claim", systems: Collection[str]) -> bool:
    return {name.partition("@")[0] for name in claim.systems}.issuperset(systems)


def _held_against(run: str, out: Path, wanted: set[str]) -> Result:
    from harness.report.text.claims import terminal
    from harness.store import open_run
    from harness.summary import summarise_folder
    from harness.validity.notices import left_out

    summary = summarise_folder(open_run(run, out))
    entries = [entry for entry in summary.claims if entry.id in wanted]
    return Result(
        lambda screen: terminal(entries, screen.width),
        lambda: as_json(entries),
        notes=[f"warning: {warning.text}" for warning in left_out(summary.warnings)],
    )


def _listed(catalog: "Catalog", chosen: "list[Claim]", width: int) -> Iterator[str]:
    from harness.report.text.claims import by_version

    for key, source in catalog.sources.items():
        mine = [claim for claim in chosen if claim.source == key]
        if not mine:
            continue
        yield f"{key}  {source.title}\n    {source.url}"
        for claim in mine:
            decides = f" (needs {claim.needs})" if claim.needs else ""
            yield from wrap(f"{claim.id:<7} {claim.says}{decides}", width, subsequent_indent=" " * 8)
        yield ""
    # One statement about several pairs has an entry for each: `A0-003`, `A0-003b`.
    statements = {claim.id.rstrip("bcd") for claim in chosen}
    decidable = {claim.id.rstrip("bcd") for claim in chosen if claim.needs is None}
    ids = {claim.id for claim in chosen}
    conflicts = sum(not ids.isdisjoint(conflict.claims) for conflict in catalog.conflict)
    yield f"{counted(len(statements), 'claim')}, decidable by a run: {len(decidable)}"
    yield f"{counted(conflicts, 'matter')} in which the sources contradict each other"
    yield from by_version((claim.measure for claim in chosen if claim.measure), width)


def _decided(catalog: "Catalog", claim: "Claim", width: int) -> Iterator[str]:
    """The claim, its conditions, and the command of the run that decides it."""
    from harness.claims.catalog import HARDWARE

    source, command = catalog.sources[claim.source], catalog.command(claim)
    indented = partial(wrap, width=width, initial_indent=" " * 8, subsequent_indent=" " * 10)
    yield from wrap(f"{claim.id:<7} {claim.says}", width, subsequent_indent=" " * 8)
    yield from indented(source.title)
    yield from indented(source.url)
    yield from indented(f"stated under: {claim.stated_under}")
    if command is None:
        yield from indented(f"not decided by a run of scenarios; what it needs: {claim.needs}")
        return
    yield from indented(f"by {claim.measure}: {_wanted(claim)}")
    yield printed_command("", command)
    yield "bench claims latest"
    if claim.hardware:
        yield from wrap(
            f"A run on anything but {HARDWARE[claim.hardware][0]} leaves it not decidable.", width
        )


def _wanted(claim: "Claim") -> str:
    """What a run has to show to reproduce it."""
    low, high = claim.limits
    within = f"{low:g} or more" if high == float("inf") else f"{low:g} to {high:g}"
    if claim.order:
        return claim.order
    if claim.ratio:
        return f"{claim.of[0]} better than {claim.of[1]} by a factor of {within}"
    return f"{claim.of[0]} {within}{' times that of one user' if claim.scaling else ''}"


def _plain(claim: "Claim", catalog: "Catalog") -> dict[str, object]:
    """Keys that are given, and the command that decides it. A limit without an end is null."""
    given = {key: value for key, value in dataclasses.asdict(claim).items() if value is not None}
    if (command := catalog.command(claim)) is not None:
        given["command"] = shlex.join(command)
    return {
        key: [None if end == float("inf") else end for end in value] if isinstance(value, tuple) else value
        for key, value in given.items()
    }
