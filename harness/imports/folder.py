"""A run folder of imported measurements: a cell for each, repeats where files are of one backend and load."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from harness import __version__
from harness.host import installation
from harness.imports.source import Source, wrong
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
from harness.store import RunFolder

SCENARIO = "imported"
LAUNCH = "import"
_NONE = Quantiles(samples=0, p50=None, p90=None, p95=None, p99=None, max=None)
# What the tool's client did nobody recorded: not known, except that it was one client.
_CLIENT = ClientStats(
    stamp_source="user", stamp_uncertainty_ms=None, tick_ms=None, workers=1, lost_workers=0,
    merged_share=None, held_at_cap=0, cpu_s=None, busy_share=None, wall_s=None, send_lag_ms=_NONE,
    loop_lag_ms=_NONE, connections=0, connect_ms=_NONE, peak_rss_bytes=0, gc_collections=0,
    notes=["the client was another tool's: nothing is known of it"],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One measurement of a file, under the name of its backend."""

    label: str
    source: Source
    taken: Taken


def imported(parts: Sequence[Part], out: Path, command: Sequence[str] = ()) -> RunFolder:
    """Raises SpecError if they are not of one model, StorageError if nothing can be written."""
    models = {part.taken.model for part in parts if part.taken.model}
    _check(parts, models)
    folder = RunFolder.create(out, SCENARIO)
    seen: Counter[tuple[str, LoadPoint]] = Counter()
    order = []
    for number, part in enumerate(sorted(parts, key=_began)):
        label = f"{part.label}-{part.taken.variant}" if part.taken.variant else part.label
        key = (label, part.taken.load.point)
        facts = _facts(part, label, number, seen[key])
        seen[key] += 1
        folder.write_cell(part.taken.records, facts)
        order.append((facts.cell, label))
    labels = list(dict.fromkeys(label for _, label in order))
    folder.write_manifest(
        _manifest(folder, parts, labels, [cell for cell, _ in order], seen, models, command)
    )
    return folder


def _check(parts: Sequence[Part], models: set[str]) -> None:
    """Raises SpecError if they are not repeats of one measurement, or if one of them is there twice."""
    where = ", ".join(dict.fromkeys(str(part.source.path) for part in parts))
    if len(models) > 1:
        names = ", ".join(sorted(models))
        raise wrong(f"different models: {names}", where, hint="import the files of each model apart")
    seen: dict[str, Part] = {}
    for part in parts:
        first = seen.setdefault(part.source.sha256, part)
        if first.source is not part.source:  # one file may hold several measurements
            text = f"is the same as {first.source.path} of {first.label}: no repeat"
            raise wrong(text, str(part.source.path), hint="leave it out")
    for label in dict.fromkeys(part.label for part in parts):
        kinds = {
            f"{part.taken.tool} {part.taken.version or '(version not known)'}, {part.taken.level}": None
            for part in parts
            if part.label == label
        }
        if len(kinds) > 1:
            what = f"no repeats of one backend: {'; '.join(kinds)}"
            raise wrong(what, where, hint="give each a name: a=FILE b=FILE; or compare them: two runs")


def _began(part: Part) -> int:
    return part.taken.started_unix_ns or part.source.modified_ns


def _facts(part: Part, label: str, number: int, repeat: int) -> CellFacts:
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
    )
    cell = f"{number:03d}-{label}-{taken.load.point.label}-r{repeat}"
    return CellFacts(
        cell=cell,
        identity=Identity(
            cell=cell, backend=label, variant=None, label=label, title=label, simulated=False, track=None,
            quantisation=None, engine_version=None, launch=LAUNCH, division=None, repeat=repeat,
        ),
        load=taken.load,
        workload=CellWorkload(
            sha256="", exact_lengths=None, output_tokens=taken.asked, exact_output=False,
            content_tokens_mean=0.0, ideal_hit_rate=0.0, cold_cache=False,
        ),
        request=CellRequest(temperature=taken.temperature),
        planned=taken.planned,
        unsent=0,
        t0_unix_ns=_began(part),
        server_counters=None,
        client=_CLIENT,
        imported=file,
        engine_exited=None,
    )  # fmt: skip


def _manifest(
    folder: RunFolder,
    parts: Sequence[Part],
    labels: Sequence[str],
    order: Sequence[str],
    seen: Counter[tuple[str, LoadPoint]],
    models: set[str],
    command: Sequence[str],
) -> Manifest:
    """Nothing is known of the machine: it is not the one that imports."""
    began = datetime.fromtimestamp(min(map(_began, parts)) / 1e9, UTC)
    name = next(iter(models), None)
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
