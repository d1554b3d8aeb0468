"""Engine values that `bench tune` found by measuring, stored with the conditions of the measurement.

One file per backend in the user's configuration folder (`NAME@tuned`), or elsewhere (`NAME@FILE.toml`).
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import SpecError
from harness.host import paths
from harness.spec import files
from harness.spec.backend import Value
from harness.spec.strict import build

VARIANT = "tuned"
_HEAD = """\
# Written by `bench tune`. The values hold for this scenario, machine, model and engine version;
# a run that uses them elsewhere says so.
"""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Conditions that values were found under. Fingerprints are compared; everything else is for people."""

    date_utc: str
    scenario: str
    scenario_key: str  # fingerprint of the scenario's requests, whatever the load
    workload_sha256: str  # of the requests of the comparison; "": they differ by load point
    load: str  # label of the load point, such as c32
    metric: str
    model: str  # with its track; "": the engine has none
    launch: str
    host: str
    host_key: str
    engine_version: str  # "": the engine does not say
    budget_s: float
    spent_s: float
    trials: int
    failed_trials: int
    verdict: str  # of the comparison with the default
    runs: tuple[str, ...]  # run folders, the comparison last
    held: str = ""  # engine values that the command line kept fixed: `dtype=float32`


@dataclass(frozen=True, slots=True)
class Tuned:
    backend: str
    values: dict[str, Value]
    provenance: Provenance
    variant: str = ""  # of the definition, that the values were searched on

    @property
    def description(self) -> str:
        origin = self.provenance
        held = f" with {origin.held}" if origin.held else ""
        where = f"{origin.scenario} at {origin.load}{held}"
        return f"{values_text(self.values)}: tuned for {where} on {origin.date_utc[:10]}"


def values_text(values: Mapping[str, Value]) -> str:
    """Values in one line: `threads=2, batch=512`."""
    return ", ".join(f"{key}={value}" for key, value in values.items())


def tuned_path(backend: str) -> Path:
    return paths.config_dir() / "variants" / f"{backend}.toml"


def load_tuned(path: Path) -> Tuned:
    """Reads a file of `bench tune`. Raises SpecError if it is missing or holds something else."""
    if paths.entry(path) != "file":
        raise SpecError(
            "no tuned variant", where=str(path), hint="`bench tune BACKEND --scenario NAME --budget 10m`"
        )
    table = files.read_toml(path)
    variant = table.get(VARIANT)
    if not isinstance(variant, dict):
        raise SpecError("has no table [tuned]: not written by `bench tune`", where=str(path))
    return build(Tuned, variant, f"{path}:{VARIANT}")


def as_toml(tuned: Tuned) -> str:
    """TOML text that `load_tuned` reads."""
    tables: list[tuple[str, dict[str, object]]] = [
        (VARIANT, {"backend": tuned.backend, "variant": tuned.variant}),
        (f"{VARIANT}.values", dict(tuned.values)),
        (f"{VARIANT}.provenance", dataclasses.asdict(tuned.provenance)),
    ]
    parts = [f"[{name}]\n" + "".join(map(_line, table.items())) for name, table in tables]
    return "\n".join([_HEAD, *parts])


def _line(entry: tuple[str, object]) -> str:
    """A line of TOML, written as JSON: strings, numbers and lists are the same in both."""
    return f"{entry[0]} = {json.dumps(entry[1])}\n"
