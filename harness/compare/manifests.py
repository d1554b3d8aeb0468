"""What differs between the conditions of two measurements, from their manifests, and whether it decides."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.fairness import TABLE, Key, Settings, classified, relation, settings

Json = Mapping[str, Any]
NOT_GIVEN = "not given"


@dataclass(frozen=True, slots=True)
class Difference:
    """`matters`: a verdict would be about this and not about what the two have in common."""

    what: str
    baseline: str
    new: str
    matters: bool

    @property
    def text(self) -> str:
        return f"{self.what}: {self.baseline} | {self.new}"


@dataclass(frozen=True, slots=True)
class Side:
    """One backend of one run."""

    manifest: Json
    label: str

    @property
    def backend(self) -> Json:
        found: Json = (self.manifest.get("backends") or {}).get(self.label) or {}
        return found


def differences(baseline: Side, new: Side) -> list[Difference]:
    """By the table of conditions, then what no row of it knows. What only one side knows is told.

    Facts of the run and the machine that one side does not know are left out: older versions kept fewer.
    """
    one, two = settings(baseline.manifest, baseline.label), settings(new.manifest, new.label)
    found = {key.code: made for key in TABLE if (made := _of_key(key, baseline, new, one, two)) is not None}
    return [*found.values(), *_raw(baseline, new, one, two, told=set(found))]


def _of_key(key: Key, baseline: Side, new: Side, one: Settings, two: Settings) -> Difference | None:
    before, after = one.known.get(key.code), two.known.get(key.code)
    kind = relation(baseline.backend, new.backend)
    if before == after or key.effect(kind) == "ignored":
        return None
    if None in (before, after) and not (key.named and one.raw and two.raw):
        return None
    # Whether a limit was reached is known of the cells, which are judged by the same table.
    matters = key.refuses(kind, before, after) and key.code != "max-sequences"
    return Difference(key.title, before or NOT_GIVEN, after or NOT_GIVEN, matters)


def _raw(baseline: Side, new: Side, one: Settings, two: Settings, told: set[str]) -> Iterator[Difference]:
    """Of one engine everything that was set otherwise, of two engines what nobody classified."""
    kind = relation(baseline.backend, new.backend)
    for what in dict.fromkeys((*one.raw, *two.raw)):
        before, after = one.raw.get(what, NOT_GIVEN), two.raw.get(what, NOT_GIVEN)
        if before == after or what[0] not in one.kinds & two.kinds:
            continue
        names = {str(side.backend.get("backend")) for side in (baseline, new)}
        rows = [row[0] for name in names if (row := classified(*what, name)) is not None]
        if rows and (
            kind == "engines" or any(row.code in told or row.effect(kind) == "ignored" for row in rows)
        ):
            continue
        yield Difference(" ".join(what) if what[1] else "command", before, after, False)
