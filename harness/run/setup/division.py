"""Whether an engine runs as shipped, tuned or changed by hand, and whether a tuning applies here."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from harness.engines.start.command import settable
from harness.model import HostFacts
from harness.model.identity import Division
from harness.run.setup.noise import host_key
from harness.run.setup.prepare import BackendPlan, Prepared
from harness.spec import files
from harness.spec.backend import Variant
from harness.spec.scenario import Scenario
from harness.spec.tuned import Provenance


def division(prepared: Prepared, backend: BackendPlan) -> Division | None:
    """How the engine is configured; None for an attached server, whose settings are not known."""
    ref = backend.ref
    if ref.url is not None:
        return None
    if set(prepared.options.engine_values) & set(settable(ref.definition, backend.launch)) - {"port"}:
        return "custom"
    if ref.tuned is not None:
        return "tuned"
    variant = ref.definition.variants.get(ref.variant or "")
    if variant is None or dataclasses.replace(variant, track="") == Variant(description=variant.description):
        return "default"  # at most it names other weights
    return "custom"


@dataclass(frozen=True, slots=True)
class Place:
    """Conditions under which a tuned variant is used."""

    scenario: str
    scenario_key: str
    loads: tuple[str, ...]  # labels of load points
    model: str
    launch: str
    host_key: str

    @classmethod
    def of(cls, prepared: Prepared, backend: BackendPlan, host: HostFacts | None) -> "Place":
        track, scenario = backend.track, prepared.scenario
        return cls(
            scenario.name,
            scenario_key(scenario),
            tuple(dict.fromkeys(cell.load.label for block in prepared.plan for cell in block.cells)),
            f"{prepared.model_name} {track}" if track else "",
            backend.launch.mode,
            host_key(host),
        )


def scenario_key(scenario: Scenario) -> str:
    """Fingerprint of prompts, request settings and cache state, on which the best engine values depend."""
    parts = (scenario.prompts, scenario.request, scenario.cache)
    return files.fingerprint([dataclasses.asdict(part) for part in parts])


def elsewhere(tuned: Provenance, here: Place, version: str | None) -> Iterator[str]:
    """Yields each condition of this place that differs from those the variant was tuned under."""
    if tuned.scenario != here.scenario:
        yield f"scenario {tuned.scenario}, not {here.scenario}"
    elif tuned.scenario_key != here.scenario_key:
        yield f"other requests of scenario {tuned.scenario}"
    if others := [load for load in here.loads if load != tuned.load]:
        yield f"load {tuned.load}, not {', '.join(others)}"
    if tuned.model != here.model:
        yield f"model {tuned.model or 'none'}, not {here.model or 'none'}"
    if tuned.launch != here.launch:
        yield f"launch {tuned.launch}, not {here.launch}"
    if tuned.host_key != here.host_key:
        yield f"another machine ({tuned.host})"
    if tuned.engine_version != (version or ""):
        yield f"version {tuned.engine_version or 'unknown'}, not {version or 'unknown'}"
