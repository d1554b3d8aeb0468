"""Claims of others beside what was measured, as lines of text."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from harness.plan import LoadPoint
from harness.report.text import counted, listing, number, plain
from harness.report.view import Json

WORDS = ("reproduced", "contradicted", "not decidable here")


def by_verdict(entries: Sequence[Json]) -> dict[str, list[Json]]:
    """In the order of WORDS; words that no claim has are left out."""
    found = {word: [entry for entry in entries if entry["verdict"] == word] for word in WORDS}
    return {word: mine for word, mine in found.items() if mine}


def counts(entries: Sequence[Json]) -> str:
    groups = by_verdict(entries)
    if not groups:
        return "No claim in the list is about these engines under this scenario."
    parts = listing([f"{len(mine)} {word}" for word, mine in groups.items()])
    verb = "is" if len(entries) == 1 else "are"
    return f"{counted(len(entries), 'published claim')} {verb} about this run: {parts}."


def stated(found: Json, kind: str) -> str:
    """`1.1× or more`, `10 to 30`."""
    low, high = found["stated"]
    sign = "" if kind == "value" else "×"
    if high is None:
        return f"more than 1{sign}" if low == 1 and sign else f"{number(low)}{sign} or more"
    return f"{number(low)} to {number(high)}{sign}" if low else f"at most {number(high)}{sign}"


def measured(found: Json, kind: str) -> str:
    triple = found.get("measured")
    if not triple:
        return "no interval"
    low, middle, high = (number(value) for value in triple)
    sign = "" if kind == "value" else "×"
    return f"{middle}{sign} [{low}, {high}]"


def place(found: Json) -> str:
    return LoadPoint(found["load"]["kind"], found["load"]["value"]).label


def terminal(entries: Sequence[Json], width: int) -> str:
    return "\n".join(_lines(entries, width)) + "\n"


def _lines(entries: Sequence[Json], width: int) -> Iterator[str]:
    yield from textwrap.wrap(counts(entries), width)
    for word, mine in by_verdict(entries).items():
        yield ""
        yield word
        for entry in mine:
            yield from _entry(entry, width)


def _entry(entry: Json, width: int) -> Iterator[str]:
    def wrapped(text: str) -> list[str]:
        return textwrap.wrap(plain(text, 1000), width, initial_indent=" " * 10, subsequent_indent=" " * 12)

    yield from textwrap.wrap(f"  {entry['id']:<7} {entry['says']}", width, subsequent_indent=" " * 10)
    for found in entry["found"]:
        yield from wrapped(
            f"{place(found)} {found['about']} {entry['measure']}: stated {stated(found, entry['kind'])}, "
            f"measured {measured(found, entry['kind'])}"
        )
    yield from wrapped(entry["why"])
    yield from wrapped(f"stated under: {entry['stated_under']}")
    for conflict in entry["conflicts"]:
        yield from wrapped(f"the sources contradict each other: {conflict}")


def shared(entries: Sequence[Json]) -> list[str]:
    """Differences in conditions that hold for every claim alike: said once."""
    common = [set(entry["differs"]) for entry in entries]
    return [text for text in (entries[0]["differs"] if entries else ()) if all(text in one for one in common)]


def own(entry: Json, said: Sequence[str]) -> list[Any]:
    return [text for text in entry["differs"] if text not in said]
