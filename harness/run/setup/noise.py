"""Noise floors measured on this machine, kept in the cache folder for the verdicts of later runs.

A floor holds for a later run only if everything that may change a figure is the same: machine, engine, work.
It is therefore stored under a fingerprint of these.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.host import paths
from harness.model import HostFacts, Noise, from_json
from harness.run.setup.prepare import BackendPlan, Prepared
from harness.spec import files
from harness.spec.definition_key import definition_key
from harness.spec.scenario import Verdict
from harness.store.atomic import write_json
from harness.untrusted import read_document

# A floor says nothing about another machine. The host name is left out: a container has a new one each time.
_IDENTITY = ("machine", "cpu", "cpu_features", "cpus_usable", "cpu_quota", "gpus")

Floors = dict[str, dict[str, float]]  # load label → metric → share


def path() -> Path:
    return paths.cache_dir() / "noise.json"


def host_key(host: HostFacts | None) -> str:
    """Fingerprint of the facts of a machine that set the speed of an engine."""
    return files.fingerprint(_known(host))


def host_differences(then: HostFacts, now: HostFacts) -> list[str]:
    """The facts of `host_key` that differ, each as `cpus_usable: 8, now 4`."""
    before, after = _identity(then), _identity(now)
    return [
        f"{name}: {_shown(before[name])}, now {_shown(after[name])}"
        for name in _IDENTITY
        if before[name] != after[name]
    ]


def _shown(fact: object) -> str:
    return ", ".join(fact) if isinstance(fact, tuple) else "none" if fact is None else str(fact)


def _known(host: HostFacts | None) -> dict[str, object]:
    """The identity for a fingerprint: without a limit it is what it was before limits were read."""
    identity = _identity(host)
    return {name: fact for name, fact in identity.items() if name != "cpu_quota" or fact is not None}


def _identity(host: HostFacts | None) -> dict[str, object]:
    return {name: getattr(host, name, None) for name in _IDENTITY}


def key(host: HostFacts | None, prepared: Prepared, backend: BackendPlan, version: str | None) -> str:
    """Key of the floors of one backend of a run; `version` is what the running engine reports.

    Load points, repeats and the metrics of verdicts are no part of it: floors are kept by load point and
    metric.
    """
    scenario = prepared.scenario
    load = replace(scenario.load, concurrency=(), rate=(), replay_speed=())
    return files.fingerprint(
        {
            "host": _known(host),
            "scenario": files.fingerprint(replace(scenario, load=load, verdict=Verdict(), slo={})),
            "model": [prepared.model_name, backend.track],
            "definition": definition_key(backend.ref.definition),
            "launch": backend.launch.mode,
            "values": backend.engine_values,
            "version": version,
        }
    )


def stored(name: str) -> Floors:
    """Floors under a `key`; empty if none were measured, or if they cannot be read."""
    try:
        return from_json(_read().get(name), Floors)
    except ValueError:
        return {}


def store(floors: Mapping[str, Iterable[Noise]]) -> None:
    """Stores entries of a summary's `noise` by `key`, in place of earlier ones of the same load and metric.

    Raises StorageError.
    """
    content = _read()
    for name, entries in floors.items():
        kept = dict(stored(name))
        for entry in entries:
            load = entry.load.label
            kept[load] = {**kept.get(load, {}), entry.metric: entry.difference_upper}
        content[name] = kept
    write_json(path(), content)


def _read() -> dict[str, object]:
    try:
        content = read_document(path().read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
