"""The last examination of this machine, in the cache folder for the runs that follow."""

from pathlib import Path

from harness.doctor.loads import Kind
from harness.doctor.verdict import MIN_STREAMS
from harness.errors import StorageError
from harness.host import paths
from harness.model import DoctorResult, HostFacts, Record, as_json, from_json
from harness.model.schema import DOCTOR_FORMAT
from harness.store.atomic import write_json
from harness.untrusted import read_document


class _Verdict(Record, frozen=True, kw_only=True):
    """The part of harness.doctor.verdict that runs go by."""

    exact_streams: int
    tried_streams: int
    on_time_per_s: int
    tried_per_s: int
    streams_per_worker: int = 0
    arrivals_per_worker: int = 0


class _Result(Record, frozen=True, kw_only=True):
    schema: int
    host: HostFacts
    verdict: _Verdict


# Another of these is another machine. The host name is not among them: a container has a new one each time.
_IDENTITY = ("machine", "cpu", "cpus_usable", "kernel")


def path() -> Path:
    return paths.cache_dir() / "doctor.json"


def as_stored(result: DoctorResult) -> dict[str, object]:
    return {"schema": DOCTOR_FORMAT, **as_json(result)}


def store(result: DoctorResult) -> None:
    """Replaces the previous one. Raises StorageError if there is no room."""
    try:
        write_json(path(), as_stored(result))
    except StorageError as error:
        raise StorageError(
            f"the result could not be stored: {error.what}",
            where=error.where,
            hint="free space, or point BENCH_CACHE to another folder",
        ) from error


def advice(kind: Kind, value: float, host: HostFacts) -> str | None:
    """The warning for a run at this load; None if the load was found exact here.

    `host` is what `host_facts` says now: a result of another machine does not count.
    """
    verdict = _stored_verdict(host)
    if verdict is None:
        return (
            "how exact the client is on this machine is not known: `bench doctor` finds out in under a minute"
        )
    if kind == "concurrency":
        exact, tried, unit = verdict.exact_streams, verdict.tried_streams, " streams"
        goal = "this client exact to 1 ms"
    else:
        exact, tried, unit = verdict.on_time_per_s, verdict.tried_per_s, "/s"
        goal = "sending on time to 1 ms"
    if value <= exact:
        return None
    shown = f"{value:,.10g}"  # `:g` alone makes 1,000 of a load of 1000.001
    asked = "1 stream" if kind == "concurrency" and value == 1 else f"{shown}{unit}"
    if not exact:
        return f"{asked} asked: `bench doctor` did not find {goal} at any load on this machine"
    end = "the most it tried" if exact == tried else f"of {tried:,g} tried"
    return f"{asked} asked: `bench doctor` found {goal} only up to {exact:,g}{unit} ({end})"


def per_worker(kind: Kind, host: HostFacts) -> int | None:
    """Streams, or arrivals per second, that one load process carries with ease here; None if unknown.

    A machine that was too busy to be exact says nothing about what a process can carry.
    """
    verdict = _stored_verdict(host)
    if verdict is None or verdict.exact_streams < MIN_STREAMS:
        return None
    most = verdict.streams_per_worker if kind == "concurrency" else verdict.arrivals_per_worker
    return most if most > 0 else None


def _stored_verdict(host: HostFacts) -> _Verdict | None:
    """None too if the file is of another machine, or not one that this version wrote."""
    try:
        result = from_json(read_document(path().read_bytes()), _Result)
    except (OSError, ValueError):
        return None
    same = all(getattr(result.host, key) == getattr(host, key) for key in _IDENTITY)
    return result.verdict if same and result.schema == DOCTOR_FORMAT else None
