"""One row of the table of conditions: where a value comes from, and what it means when it differs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.model import CellResult
from harness.model.numbers import GIB

# refuses: a verdict would be about this. shown: next to the verdict. ignored: it cannot change a figure.
Effect = Literal["refuses", "shown", "ignored"]
Area = Literal["work", "engine", "build", "host"]
# Two engines; variants of one; the same definition and variant, in two runs or at two addresses.
Relation = Literal["engines", "variants", "itself"]


@dataclass(frozen=True, slots=True)
class Key:
    """The first source that has a value gives it: `info`, `flags`, `variables`, `values`.

    The manifest goes first. A name may be limited to one backend, `tgi/--max-total-tokens`, or be a pattern:
    `*.model_config.dtype` is what vLLM and its forks report. A flag without an argument says what it stands
    for after `=`: `--enforce-eager=on`. Paths of `manifest` that begin with a dot lie in its entry of the
    backend.
    """

    code: str
    title: str
    engines: Effect  # between two engines
    itself: Effect  # of one engine in two runs
    why: str
    area: Area = "engine"
    info: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    manifest: tuple[str, ...] = ()
    null: str | None = None  # what null says in the manifest of a machine that is known
    cell: Callable[[CellResult], Any] | None = None  # where the cells of summary.json hold it
    scenario: tuple[str, ...] = ()  # paths that set it, or tables: the cells say what came of them
    alike: Callable[[str], str] | None = None  # values that it maps to one do not refuse, they are shown
    metrics: tuple[str, ...] = ()  # that are refused; (): all
    several: bool = False  # its sources are different things, shown by their own names
    units: Mapping[str, str] = field(default_factory=dict)  # of amounts, by source

    @property
    def named(self) -> tuple[str, ...]:
        """What sets it, apart from the manifest."""
        return (*self.info, *self.flags, *self.variables, *self.values)

    def amount(self, source: str, value: str) -> str:
        """`2 GiB`, also of `2.0` and of bytes, so that what sources with other units give can be compared."""
        unit = self.units.get(source)
        try:
            number = float(value) / (GIB if unit == "bytes" else 1)
        except ValueError:  # an amount with a unit of its own
            return value
        return f"{number:.10g} {'GiB' if unit == 'bytes' else unit}" if unit else value

    def effect(self, relation: Relation) -> Effect:
        """A variant is measured for what it sets: that is the question, no reason to refuse the answer."""
        if relation == "engines":
            return self.engines
        chosen = relation == "variants" and self.area == "engine"
        return "shown" if chosen and self.itself == "refuses" else self.itself

    def refuses(self, relation: Relation, first: Any, second: Any) -> bool:
        if self.effect(relation) != "refuses" or None in (first, second):
            return False
        return first != second if self.alike is None else self.alike(str(first)) != self.alike(str(second))


Measured = tuple[str | None, str | None]  # name of the definition, variant


def relation(first: Measured, second: Measured) -> Relation:
    if first[0] is None or first[0] != second[0]:
        return "engines"
    return "itself" if first[1] == second[1] else "variants"
