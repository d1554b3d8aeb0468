"""A suite file: what is measured every night, in how many minutes, and what fails the gate."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from harness.errors import SpecError
from harness.host import paths
from harness.spec.files import read_toml
from harness.spec.strict import build, nearest

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class About:
    name: str
    purpose: str
    budget_minutes: float


@dataclass(frozen=True, slots=True)
class Gate:
    floor_percent: float = 5.0  # a level that is worse by less does not fail


@dataclass(frozen=True, slots=True)
class Entry:
    """One `bench run`; each key is the flag of that name."""

    scenario: str
    backends: tuple[str, ...]
    model: str | None = None
    launch: str | None = None
    profile: str | None = None
    concurrency: Numbers = ()
    rate: Numbers = ()
    requests: int | None = None
    duration: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    repeats: int | None = None
    sample_hz: float | None = None
    set: tuple[str, ...] = ()
    engine_set: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.scenario}: {', '.join(self.backends)}"

    def flags(self) -> list[str]:
        return ["--scenario", self.scenario, "--backends", ",".join(self.backends), *self._others()]

    def _others(self) -> Iterator[str]:
        for field in fields(self):
            value = getattr(self, field.name)
            flag = f"--{field.name.replace('_', '-')}"
            if field.name in ("scenario", "backends") or value is None or value == ():
                continue
            if field.name in ("set", "engine_set"):
                for item in value:
                    yield from (flag, item)
            elif isinstance(value, tuple):
                yield from (flag, ",".join(f"{item:g}" for item in value))
            else:
                yield from (flag, f"{value:g}" if isinstance(value, float) else str(value))


@dataclass(frozen=True, slots=True)
class Suite:
    suite: About
    run: tuple[Entry, ...]
    gate: Gate = Gate()


def suites() -> dict[str, Path]:
    """By name; files in ./workloads/suites override the shipped."""
    folders = (paths.shipped("workloads") / "suites", Path.cwd() / "workloads" / "suites")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def load_suite(name: str) -> Suite:
    """By name, or a path ending in .toml. Raises SpecError."""
    known = suites()
    path = Path(name) if name.endswith(".toml") else known.get(name)
    if path is None:
        raise SpecError(f"unknown suite '{name}'", hint=nearest(name, known))
    if paths.entry(path) != "file":
        raise SpecError("no such file", where=name)
    made = build(Suite, read_toml(path), f"{path}:")
    if not made.run:
        raise SpecError("has no [[run]]", where=str(path))
    if made.suite.budget_minutes <= 0:
        raise SpecError("must be above 0", where=f"{path}:suite.budget_minutes")
    return made
