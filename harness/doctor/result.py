"""The last examination of this machine, kept in the cache folder for the runs that follow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import paths
from harness.doctor.loads import Kind
from harness.doctor.verdict import MIN_STREAMS
from harness.errors import StorageError
from harness.foreign import read_document
from harness.store.atomic import storage_error, write_json

SCHEMA = 1

# Another of these is another machine. The host name is not among them: a container has a new one each time.
_IDENTITY = ("machine", "cpu", "cpus_usable", "kernel")


def path() -> Path:
    return paths.cache_dir() / "doctor.json"


def store(document: Mapping[str, Any]) -> None:
    """Replaces the result before; StorageError when there is no room for it."""
    target = path()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_json(target, document)
    except OSError as error:
        raise _not_kept(storage_error(error, target)) from error
    except StorageError as error:
        raise _not_kept(error) from error


def advice(kind: Kind, value: float, host: Mapping[str, Any]) -> str | None:
    """What a run at this load should be told; None when the load was found exact here.

    `host` is what `host_facts` says now: a result of another machine does not count.
    """
    verdict = _stored_verdict(host)
    if verdict is None:
        return (
            "how exact the client is on this machine is not known: `bench doctor` finds out in under a minute"
        )
    if kind == "concurrency":
        exact, tried, unit = verdict["exact_streams"], verdict["tried_streams"], " streams"
        found = "this client exact to 1 ms"
    else:
        exact, tried, unit = verdict["on_time_per_s"], verdict["tried_per_s"], "/s"
        found = "sending on time to 1 ms"
    if value <= exact:
        return None
    if not exact:
        return f"{value:,g}{unit} asked: `bench doctor` did not find {found} at any load on this machine"
    end = "the most it tried" if exact == tried else f"of {tried:,g} tried"
    return f"{value:,g}{unit} asked: `bench doctor` found {found} only up to {exact:,g}{unit} ({end})"


def per_worker(kind: Kind, host: Mapping[str, Any]) -> int | None:
    """Streams, or arrivals per second, that one load process carries with ease here; None: not known.

    A machine that was too busy to be exact says nothing about what a process can carry.
    """
    verdict = _stored_verdict(host)
    if verdict is None or verdict.get("exact_streams", 0) < MIN_STREAMS:
        return None
    found = verdict.get("streams_per_worker" if kind == "concurrency" else "arrivals_per_worker")
    return found if isinstance(found, int) and found > 0 else None


def _stored_verdict(host: Mapping[str, Any]) -> dict[str, Any] | None:
    """None as well where the file is of another machine, or not one that this version wrote."""
    try:
        document = read_document(path().read_bytes())
        if document["schema"] != SCHEMA or any(document["host"][key] != host[key] for key in _IDENTITY):
            return None
        verdict: dict[str, Any] = document["verdict"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return verdict


def _not_kept(error: StorageError) -> StorageError:
    return StorageError(
        f"the result could not be stored: {error.what}",
        where=error.where,
        hint="free space, or point BENCH_CACHE to another folder",
    )
