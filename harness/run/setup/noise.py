"""Noise floors measured on this machine, kept in the cache folder for the verdicts of later runs.

A floor is of one machine, engine and work: it holds for a later run only where all that may move a figure is
the same, so it is found by a fingerprint of that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.host import paths
from harness.model import HostFacts, Noise, from_json
from harness.run.setup.prepare import BackendPlan, Prepared
from harness.spec import files
from harness.spec.backend_refs import definition_key
from harness.spec.scenario import Verdict
from harness.store.atomic import write_json
from harness.untrusted import read_document

# Of another machine they say nothing. The host name is not among them: a container has a new one each time.
_IDENTITY = ("machine", "cpu", "cpu_features", "cpus_usable", "gpus")

Floors = dict[str, dict[str, float]]  # load label → metric → share


def path() -> Path:
    return paths.cache_dir() / "noise.json"


def host_key(host: HostFacts | None) -> str:
    """Fingerprint of what of a machine sets the speed of an engine."""
    return files.fingerprint(_identity(host))


def _identity(host: HostFacts | None) -> dict[str, object]:
    return {name: getattr(host, name, None) for name in _IDENTITY}


def key(host: HostFacts | None, prepared: Prepared, backend: BackendPlan, version: str | None) -> str:
    """Returns the key of one backend of a run; `version` as the running engine tells it.

    Which load points and repeats were asked for is not part of it, nor what the verdicts are about: a floor
    is kept by load point and metric.
    """
    scenario = prepared.scenario
    load = replace(scenario.load, concurrency=(), rate=(), replay_speed=())
    return files.fingerprint(
        {
            "host": _identity(host),
            "scenario": files.fingerprint(replace(scenario, load=load, verdict=Verdict(), slo={})),
            "model": [prepared.model_name, backend.track],
            "definition": definition_key(backend.ref.definition),
            "launch": backend.launch.mode,
            "values": backend.engine_values,
            "version": version,
        }
    )


def stored(name: str) -> Floors:
    """Reads the floors under a `key`; empty where nothing was measured, or nothing that this version
    wrote.
    """
    try:
        return from_json(_read().get(name), Floors)
    except ValueError:
        return {}


def store(floors: Mapping[str, Iterable[Noise]]) -> None:
    """Stores, by `key`, entries of a summary's `noise`; replaces what was known of these loads.

    StorageError.
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
