"""`bench claims`: what others have published about engines; with a run, whether it holds there."""

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from harness.cli.display.output import page_width
from harness.cli.flags import options
from harness.errors import ExitCode, SpecError
from harness.model import as_json
from harness.model.lines import wrap
from harness.model.numbers import counted

if TYPE_CHECKING:
    from harness.claims import Catalog, Claim


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="run folder, or name of a run under --out")
    parser.add_argument("--system", metavar="NAME", help="engine that the claims are about (default: all)")
    options.add_runs_folder(parser)
    options.add_json(parser)


def main(arguments: argparse.Namespace) -> int:
    from harness.claims import load_catalog

    width = page_width()
    catalog = load_catalog()
    known = {name.partition("@")[0] for claim in catalog.claims for name in claim.systems}
    if arguments.system and arguments.system not in known:
        raise SpecError(f"no claim is about '{arguments.system}'", hint=f"known: {', '.join(sorted(known))}")
    chosen = [claim for claim in catalog.claims if _is_about(claim, arguments.system)]
    if arguments.run is None:
        _list(catalog, chosen, width, as_json=arguments.json)
    else:
        _held_against(arguments, {claim.id for claim in chosen}, width)
    return ExitCode.OK


def _is_about(claim: "Claim", system: str | None) -> bool:
    return system is None or any(name.partition("@")[0] == system for name in claim.systems)


def _held_against(arguments: argparse.Namespace, wanted: set[str], width: int) -> None:
    from harness.report.text.claims import terminal
    from harness.store import open_run
    from harness.summary import summarise_folder
    from harness.validity.notices import left_out

    summary = summarise_folder(open_run(arguments.run, arguments.out))
    for warning in left_out(summary.warnings):
        print(f"warning: {warning.text}", file=sys.stderr)
    entries = [entry for entry in summary.claims if entry.id in wanted]
    print(json.dumps(as_json(entries), indent=1) if arguments.json else terminal(entries, width), end="")


def _list(catalog: "Catalog", chosen: "list[Claim]", width: int, *, as_json: bool) -> None:
    from harness.report.text.claims import by_version

    if as_json:
        print(json.dumps([_plain(claim) for claim in chosen], indent=1))
        return
    for key, source in catalog.sources.items():
        mine = [claim for claim in chosen if claim.source == key]
        if not mine:
            continue
        print(f"{key}  {source.title}\n    {source.url}")
        for claim in mine:
            decides = f" (needs {claim.needs})" if claim.needs else ""
            for line in wrap(f"{claim.id:<7} {claim.says}{decides}", width, subsequent_indent=" " * 8):
                print(line)
        print()
    # One statement about several pairs has an entry for each: `A0-003`, `A0-003b`.
    statements = {claim.id.rstrip("bcd") for claim in chosen}
    decidable = {claim.id.rstrip("bcd") for claim in chosen if claim.needs is None}
    ids = {claim.id for claim in chosen}
    conflicts = sum(not ids.isdisjoint(conflict.claims) for conflict in catalog.conflict)
    print(f"{counted(len(statements), 'claim')}, decidable by a run: {len(decidable)}")
    print(f"{counted(conflicts, 'matter')} in which the sources contradict each other")
    for line in by_version((claim.measure for claim in chosen if claim.measure), width):
        print(line)


def _plain(claim: "Claim") -> dict[str, object]:
    """A limit without an end is null."""
    given = {key: value for key, value in dataclasses.asdict(claim).items() if value is not None}
    return {
        key: [None if end == float("inf") else end for end in value] if isinstance(value, tuple) else value
        for key, value in given.items()
    }
