"""A run folder of imported measurements: a cell for each, repeats where files are of one backend and load."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from harness import __version__
from harness.host import installation
from harness.imports import repeats
from harness.imports.repeats import Part
from harness.imports.taken import Taken
from harness.model import (
    BackendEntry,
    CellFacts,
    CellRequest,
    CellWorkload,
    ClientStats,
    Identity,
    Imported,
    LaunchChoice,
    LoadPoint,
    Manifest,
    ModelName,
    Quantiles,
    ScenarioHeader,
    ScenarioTables,
)
from harness.records.layout import UNKNOWN, Records
from harness.store import RunFolder

SCENARIO = "imported"
LAUNCH = "import"
_NONE = Quantiles(samples=0, p50=None, p90=None, p95=None, p99=None, max=None)
# What the tool's client did nobody recorded: not known, except that it was one client, and how late it sent
# where the file says when each request was due.
_CLIENT = ClientStats(
    stamp_source="user", stamp_uncertainty_ms=None, tick_ms=None, workers=1, lost_workers=0,
    merged_share=None, held_at_cap=0, cpu_s=None, busy_share=None, wall_s=None, send_lag_ms=_NONE,
    loop_lag_ms=_NONE, connections=0, connect_ms=_NONE, peak_rss_bytes=0, gc_collections=0,
    notes=["the client was another tool's: nothing is known of it"],
)  # fmt: skip


def imported(
    parts: Sequence[Part], out: Path, command: Sequence[str] = ()
) -> tuple[RunFolder, dict[str, Records]]:
    """The folder, and the records of its cells by their names, so that nobody reads a million again.

    Raises SpecError if they are no repeats or not of one model, StorageError if nothing can be written.
    """
    parts = sorted(parts, key=_began)
    names = repeats.labels(parts)
    repeats.check(parts, names)
    folder = RunFolder.create(out, SCENARIO)
    seen: Counter[tuple[str, LoadPoint]] = Counter()
    records = {}
    for number, (part, label) in enumerate(zip(parts, names, strict=True)):
        key = (label, part.taken.load.point)
        name = part.taken.load.point.cell_name(label, seen[key], number, len(parts))
        facts = _facts(part, label, name, seen[key])
        seen[key] += 1
        folder.write_cell(part.taken.records, facts)
        records[facts.cell] = part.taken.records
    folder.write_manifest(_manifest(folder, parts, list(dict.fromkeys(names)), list(records), seen, command))
    return folder, records


def _began(part: Part) -> int:
    return part.taken.started_unix_ns or part.source.modified_ns


def _facts(part: Part, label: str, cell: str, repeat: int) -> CellFacts:
    taken, source = part.taken, part.source
    file = Imported(
        tool=taken.tool,
        version=taken.version,
        file=source.path.name,
        sha256=source.sha256,
        level=taken.level,
        facts=(*taken.facts, "load") if taken.load_known else taken.facts,
        took=taken.took,
        lacks=taken.lacks,
        definitions=dict(taken.definitions),
        reported=dict(taken.reported),
        answered=taken.answered,
        failed=taken.failed,
        requests=taken.requests,
    )
    return CellFacts(
        cell=cell,
        identity=Identity(
            cell=cell, backend=label, variant=None, label=label, title=label, simulated=taken.simulated,
            track=None, quantisation=None, engine_version=None, launch=LAUNCH, division=None, repeat=repeat,
        ),
        load=taken.load,
        workload=CellWorkload(
            sha256="", exact_lengths=None, output_tokens=None, exact_output=False,
            content_tokens_mean=0.0, ideal_hit_rate=0.0, cold_cache=False,
        ),
        request=CellRequest(),
        planned=taken.planned,
        unsent=0,
        t0_unix_ns=_began(part),
        server_counters=None,
        client=_client(taken),
        imported=file,
        engine_exited=None,
    )  # fmt: skip


def _client(taken: Taken) -> ClientStats:
    """A request that the cap held back is late from when another ended."""
    if "due" not in taken.facts:
        return _CLIENT
    rows = taken.records.requests
    left = rows[(rows["sent_ns"] != UNKNOWN) & (rows["intended_ns"] != UNKNOWN)]
    left = left[np.argsort(left["sent_ns"], kind="stable")]
    due_ns, sent_ns = left["intended_ns"].copy(), left["sent_ns"]
    if cap := taken.cap:
        ended_ns = np.sort(np.where(left["end_ns"] == UNKNOWN, sent_ns, left["end_ns"]))
        due_ns[cap:] = np.maximum(due_ns[cap:], np.minimum(ended_ns[:-cap], sent_ns[cap:]))
    return replace(_CLIENT, send_lag_ms=Quantiles.of_ns(sent_ns - due_ns))


def _manifest(
    folder: RunFolder,
    parts: Sequence[Part],
    labels: Sequence[str],
    order: Sequence[str],
    seen: Counter[tuple[str, LoadPoint]],
    command: Sequence[str],
) -> Manifest:
    """Nothing is known of the machine: it is not the one that imports."""
    began = datetime.fromtimestamp(min(map(_began, parts)) / 1e9, UTC)
    name = next((part.taken.model for part in parts if part.taken.model), None)
    entry = BackendEntry(launch=LaunchChoice(mode=LAUNCH, why="from files of other tools"))
    return Manifest(
        run=folder.run_id,
        state="complete",
        created_utc=began.isoformat(timespec="seconds"),
        command=tuple(command),
        packages={installation.DISTRIBUTION: __version__},
        git=installation.revision(),
        scenario=ScenarioTables(scenario=ScenarioHeader(name=SCENARIO, purpose="files of other tools")),
        model=ModelName(name=name, title=name) if name else None,
        backends={label: replace(entry, backend=label, variant=None, url=None) for label in labels},
        repeats=max(seen.values()),
        order=tuple(order),
        workload_sha256=None,
        warnings=(),
    )
