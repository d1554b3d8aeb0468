"""A suite file: what is measured every night, in how many minutes, and what fails the gate."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from harness.errors import SpecError
from harness.host import paths
from harness.model.numbers import as_given
from harness.spec.files import locate, read_toml
from harness.spec.strict import build

Numbers = tuple[float, ...]
_AHEAD = timedelta(hours=14)  # of the place on earth where a day begins first


@dataclass(frozen=True, slots=True)
class About:
    name: str
    purpose: str
    budget_minutes: float


@dataclass(frozen=True, slots=True)
class Gate:
    floor_percent: float = 5.0  # a level that is worse by less does not fail
    since: str = ""  # day from which levels are judged, as 2026-11-20: what became worse before is accepted


@dataclass(frozen=True, slots=True)
class Entry:
    """One `bench run`; each key is the flag of that name. With `files`: one `bench import` of them."""

    scenario: str = ""
    backends: tuple[str, ...] = ()
    variant: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
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
    find_capacity: bool = False
    probe_seconds: float | None = None
    sample_hz: float | None = None
    set: tuple[str, ...] = ()
    engine_set: tuple[str, ...] = ()

    @property
    def runs_of(self) -> str:
        """The scenario in whose name its runs are kept."""
        return "imported" if self.files else Path(self.scenario).stem

    @property
    def loads(self) -> frozenset[tuple[str, float]]:
        """Empty: those of the scenario."""
        kinds = {"concurrency": self.concurrency, "rate": self.rate}
        return frozenset((kind, value) for kind, values in kinds.items() for value in values)

    @property
    def work(self) -> "Entry":
        """What is asked of any backend at any load, by the settings of the scenario."""
        return replace(
            self,
            backends=(),
            variant=(),
            concurrency=(),
            rate=(),
            repeats=None,
            sample_hz=None,
            engine_set=(),
        )

    def variants(self, backend: str) -> dict[str, str]:
        """What `variant` says of those that an item of `backends` names."""
        declared = (item.partition("=") for item in self.variant)
        return {name: words for name, _, words in declared if name in backend.split("=http")[0].split("@")}

    @property
    def title(self) -> str:
        kind = "capacity of " if self.find_capacity else ""
        return f"{self.scenario or 'files'}: {kind}{', '.join(self.backends)}"

    def flags(self) -> list[str]:
        return ["--scenario", self.scenario, "--backends", ",".join(self.backends), *self._others()]

    def _others(self) -> Iterator[str]:
        for field in fields(self):
            value = getattr(self, field.name)
            flag = f"--{field.name.replace('_', '-')}"
            left_out = value is None or value is False or value == ()  # 0 is a value
            if field.name in ("scenario", "backends", "files") or left_out:
                continue
            if value is True:
                yield flag
            elif field.name in ("set", "engine_set", "variant"):
                for item in value:
                    yield from (flag, item)
            elif isinstance(value, tuple):
                yield from (flag, ",".join(map(as_given, value)))
            else:
                yield from (flag, as_given(value) if isinstance(value, float) else str(value))


@dataclass(frozen=True, slots=True)
class Suite:
    suite: About
    run: tuple[Entry, ...]
    gate: Gate = Gate()


def load_suite(name: str) -> Suite:
    """Loads a suite by name, or a path ending in .toml. Raises SpecError."""
    path = locate("workloads/suites", name)
    suite = build(Suite, read_toml(path), str(path))
    if not suite.run:
        raise SpecError("has no [[run]]", where=str(path))
    names: set[str] = set()  # of files
    for number, entry in enumerate(suite.run):
        where = f"{path}:run[{number}]"
        _check(entry, where)
        if entry.files and entry.backends[0] in names:
            hint = "list all of its files in one [[run]], or give these another name"
            raise SpecError(f"'{entry.backends[0]}' has files in an earlier [[run]]", where=where, hint=hint)
        names |= set(entry.backends if entry.files else ())
        for before in suite.run[:number]:
            _check_apart(before, entry, where)
    if suite.suite.budget_minutes <= 0:
        raise SpecError("must be above 0", where=f"{path}:suite.budget_minutes")
    if suite.gate.floor_percent < 0:
        raise SpecError("must not be below 0", where=f"{path}:gate.floor_percent")
    if suite.gate.since:
        where = f"{path}:gate.since"
        check_day(suite.gate.since, where)
        if suite.gate.since > (datetime.now(UTC) + _AHEAD).date().isoformat():
            what = f"'{suite.gate.since}' has not begun: every level until then would be accepted"
            raise SpecError(what, where=where)
    if not paths.is_name(suite.suite.name):
        most = f"must be 1 to {paths.LONGEST_NAME} bytes without '/' or what a terminal cannot show"
        raise SpecError(f"{most}: its pages have this name", where=f"{path}:suite.name")
    return suite


def check_day(text: str, where: str) -> None:
    """Raises SpecError for what is no day, which would accept nothing or all."""
    try:
        day = date.fromisoformat(text).isoformat()
    except ValueError:
        day = ""
    if day != text:
        raise SpecError(f"'{text}' is not a day", where=where, hint="such as 2026-11-20")


def _check_apart(before: Entry, entry: Entry, where: str) -> None:
    """Raises SpecError if engine settings alone set two runs apart: the history takes those for a change."""
    shared = [backend for backend in entry.backends if backend in before.backends]
    same_load = entry.loads == before.loads or bool(entry.loads & before.loads)
    if not same_load or entry.work != before.work:
        return
    if shared and entry.engine_set != before.engine_set:
        raise SpecError(
            f"'{shared[0]}' has other engine values at the same load in an earlier [[run]]",
            where=where,
            hint="the history would mix both: give a variant of the backend these values",
        )
    if unlike := [backend for backend in shared if entry.variants(backend) != before.variants(backend)]:
        raise SpecError(
            f"'{unlike[0]}' is another variant at the same load in an earlier [[run]]",
            where=f"{where}.variant",
            hint="the history would mix both: give each a name of its own",
        )


def _check(entry: Entry, where: str) -> None:
    """Raises SpecError unless it says either what to run or what to read."""
    if not entry.backends:
        raise SpecError("has no backends", where=where)
    if not entry.files:
        if not entry.scenario:
            raise SpecError("has no scenario, and no files", where=where)
        return
    if len(entry.backends) > 1:
        raise SpecError("files are of one backend", where=where, hint="a [[run]] for each backend")
    if entry.scenario or list(entry._others()):
        raise SpecError("files are read, not measured: it takes backends alone", where=where)
