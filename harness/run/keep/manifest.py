"""Writes manifest.json: the conditions under which the figures of a run hold."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from harness import __version__
from harness.engines.start.started import EngineFacts
from harness.errors import SpecError
from harness.host import installation
from harness.host.cpus import BF16
from harness.model import (
    UNSET,
    BackendEntry,
    Failure,
    HostFacts,
    LaunchChoice,
    Looks,
    Manifest,
    ModelName,
    Plan,
    PlanBlock,
    PlanCell,
    ProbeCount,
    RunWarning,
    ScenarioTables,
    Seeds,
    UnsetType,
    from_json,
)
from harness.run.measure.cell_facts import engine_version
from harness.run.setup import noise
from harness.run.setup.division import Place, division, elsewhere
from harness.run.setup.prepare import BackendPlan, Prepared
from harness.run.setup.prompt_source import source_warnings
from harness.sampling import machine
from harness.spec import files
from harness.spec.definition_key import definition_key
from harness.store import RunFolder
from harness.validity import notices


class ManifestWriter:
    """Writes the manifest at every change of state, so that a killed run still says how far it came."""

    def __init__(self, folder: RunFolder, document: Manifest, prepared: Prepared) -> None:
        self._folder = folder
        self._prepared = prepared
        self.document = document
        self.write(state="running")

    @classmethod
    def new(cls, folder: RunFolder, prepared: Prepared) -> "ManifestWriter":
        options = prepared.options
        cells = [cell.name for block in prepared.plan for cell in block.cells]
        # Which loads a search will try is not known before.
        planned = [] if options.find_capacity else cells
        document = Manifest(
            run=folder.run_id,
            state="running",
            created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            command=options.command,
            options=dataclasses.asdict(options),
            working_directory=str(Path.cwd()),
            host=machine.host_facts(),
            packages=machine.package_versions(),
            git=installation.revision(),
            scenario=from_json(dataclasses.asdict(prepared.scenario), ScenarioTables),
            scenario_sha256=files.fingerprint(prepared.scenario),
            model=_model(prepared),
            backends={backend.label: _backend(prepared, backend) for backend in prepared.backends},
            seeds=Seeds(run=options.seed, dimensions=("prompts", "arrivals", "think")),
            repeats=prepared.repeats,
            stopping=_stopping(prepared),
            pairing=options.pairing,
            blocks=prepared.together.blocks if prepared.together else 1,
            aa=options.aa,
            noise_floor={},
            order=tuple(planned),
            plan_sha256=folder.files.sha256("plan.json"),
            find_capacity=options.find_capacity,
            workload_source=prepared.source.facts() if prepared.source else None,
            workload_sha256=None,
            warnings=source_warnings(prepared.source),
        )
        return cls(folder, document, prepared)

    @classmethod
    def resumed(cls, folder: RunFolder, prepared: Prepared) -> "ManifestWriter":
        """Continues the manifest of a run that `require_unchanged` has accepted."""
        manifest = folder.read_manifest()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        document = replace(
            manifest,
            resumed_utc=(*manifest.resumed_utc, now),
            failures=(),
            warnings=(*source_warnings(prepared.source), *_lasting(manifest)),
        )
        return cls(folder, document, prepared)

    def write(self, **changes: Any) -> None:
        self.document = replace(self.document, **changes)
        self._folder.write_manifest(self.document)

    def engine_started(self, label: str, facts: EngineFacts, noise_key: str) -> None:
        """Records the facts of an engine that is up, with its noise floors, and warns where it differs. The
        remarks of its earlier starts stay: one may be about a neighbour that has ended since.

        `noise_key` is what `setup.noise.key` returns for this backend.
        """
        earlier = self.document.backends[label].engine or {}
        remarks = dict.fromkeys([*earlier.get("remarks", ()), *facts.get("remarks", ())])
        engine = {**facts, "remarks": list(remarks)} if remarks else dict(facts)
        self._change(label, engine=engine, noise_key=noise_key)
        if floors := noise.stored(noise_key):
            floor = {**(self.document.noise_floor or {}), label: floors}
            self.document = replace(self.document, noise_floor=floor)
        self._warn_of_other_place(label, engine_version(facts))
        self._warn_of_free_lengths(label)
        if bf16_in_software(facts, self.document.host):
            text = f"{label} computes in bf16, which this CPU has to emulate"
            self.warn(notices.BF16_IN_SOFTWARE.warning(text, backend=label))
        self.write()

    def _change(self, label: str, **changes: Any) -> None:
        backends = self.document.backends
        entry = replace(backends[label], **changes)
        self.document = replace(self.document, backends={**backends, label: entry})

    def _backend(self, label: str) -> BackendPlan:
        return next(backend for backend in self._prepared.backends if backend.label == label)

    def _warn_of_other_place(self, label: str, version: str | None) -> None:
        """Warns if a tuned variant runs under other conditions than it was tuned under."""
        backend = self._backend(label)
        if tuned := backend.ref.tuned:
            here = Place.of(self._prepared, backend, self.document.host)
            if differences := list(elsewhere(tuned.provenance, here, version)):
                text = f"{label} was tuned for {'; '.join(differences)}"
                self.warn(notices.TUNED_ELSEWHERE.warning(text, backend=label))

    def _warn_of_free_lengths(self, label: str) -> None:
        """Warns if exact lengths are asked for and the definition says that this API cannot force them."""
        ref = self._backend(label).ref
        own = ref.definition.dialect.apis.get(ref.api)
        if self._prepared.scenario.request.exact_output and own is not None and own.exact_output == {}:
            text = f"{label}: answers may end before the requested length, which {ref.api} cannot force"
            self.warn(notices.FREE_LENGTHS.warning(text, backend=label))

    def probed(self, label: str, count: ProbeCount) -> None:
        """Records the summary of a probe, which is stored whole in its own file."""
        self._change(label, probe=count)
        self.write()

    def warn(self, warning: RunWarning) -> None:
        """Adds a warning unless it is there already. The next `write` stores it."""
        known = [(earlier.code, earlier.text) for earlier in self.document.warnings]
        if (warning.code, warning.text) not in known:
            self.document = replace(self.document, warnings=(*self.document.warnings, warning))

    def withdraw(self, notice: notices.Notice, backend: str | UnsetType = UNSET) -> None:
        """Removes the warnings of this kind about that backend, or about none. The next `write` stores it."""
        kept = [
            warning
            for warning in self.document.warnings
            if warning.code != notice.code or warning.backend != backend
        ]
        self.document = replace(self.document, warnings=tuple(kept))

    def failed(self, label: str, repeat: int, error: str) -> None:
        failure = Failure(backend=label, repeat=repeat, error=error)
        self.write(failures=(*self.document.failures, failure))


def _backend(prepared: Prepared, backend: BackendPlan) -> BackendEntry:
    ref, launch = backend.ref, backend.launch
    return BackendEntry(
        backend=ref.definition.name,
        variant=ref.variant,
        url=ref.url,
        definition_sha256=definition_key(ref.definition),
        launch=LaunchChoice(mode=launch.mode, why=launch.why),
        track=backend.track,
        division=division(prepared, backend),
        tuned=dataclasses.asdict(ref.tuned) if ref.tuned else None,
        between_repeats=backend.between,
        engine=None,
    )


def _model(prepared: Prepared) -> ModelName | None:
    """The model of the run; None if every server brings its own, whose name is among its facts."""
    if not any(backend.track for backend in prepared.backends):
        return None
    return ModelName(name=prepared.model_name, title=prepared.model.title)


def _stopping(prepared: Prepared) -> Looks | None:
    """Planned looks, none of them taken yet; None if the number of repeats is fixed."""
    if not prepared.looks:
        return None
    budget_s = prepared.options.budget_s
    return Looks(looks=tuple(prepared.looks), repeats=0, reason=None, budget_s=budget_s, spent_s=0.0)


def _lasting(manifest: Manifest) -> Iterator[RunWarning]:
    """Yields the warnings that a resumed run does not give again: it asks for what an engine did not do."""
    of_source = (notices.FILE_LINES_LEFT_OUT.code, notices.TRACE_CHANGED.code)
    of_engine = (notices.NOT_MEASURED.code, notices.AGREEMENT_MISSING.code)
    for warning in manifest.warnings:
        asked_again = warning.code in of_engine and warning.backend is not UNSET
        if warning.code not in of_source and not asked_again:
            yield warning


def require_unchanged(folder: RunFolder, prepared: Prepared) -> None:
    """Raises SpecError if a definition, bench or the machine differs from what the run began with.

    Its cells would not compare.
    """
    manifest = folder.read_manifest()
    if manifest.scenario_sha256 != files.fingerprint(prepared.scenario):
        raise _changed(f"scenario '{prepared.scenario.name}'", folder)
    for backend in prepared.backends:
        entry = manifest.backends.get(backend.label)
        if entry is None or entry.definition_sha256 != definition_key(backend.ref.definition):
            raise _changed(f"backend '{backend.label}'", folder)
    version = manifest.packages.get(installation.DISTRIBUTION, __version__)
    if version != __version__:
        remedy = f"install {installation.DISTRIBUTION} {version}, or "
        raise _changed(f"bench ({version}, now {__version__})", folder, remedy)
    host = manifest.host
    if host and (differences := noise.host_differences(host, machine.host_facts())):
        raise _changed(f"the machine ({'; '.join(differences)})", folder, "resume it where it began, or ")


def _changed(what: str, folder: RunFolder, remedy: str = "") -> SpecError:
    return SpecError(
        f"{what} has changed since this run began",
        where=str(folder.path),
        hint=f"{remedy}start a new run with `bench run`",
    )


def plan_of(prepared: Prepared) -> Plan:
    return Plan(
        blocks=tuple(
            PlanBlock(
                backend=prepared.of(block).label,
                repeat=block.repeat,
                cells=tuple(PlanCell(cell=cell.name, load=cell.load) for cell in block.cells),
                start=UNSET if block.start is None else block.start,
            )
            for block in prepared.plan
        )
    )


def bf16_in_software(facts: EngineFacts, host: HostFacts | None) -> bool:
    """Whether an engine that bench started computes in bf16 on a CPU without instructions for it.

    False where the CPU's instructions are not known.
    """
    if host is None or host.cpu_features is None or facts.get("values", {}).get("dtype") != "bfloat16":
        return False
    launch = facts.get("launch", {})
    on_cpu = launch.get("device") == "cpu" or (launch.get("mode") == "process" and not host.gpus)
    return on_cpu and not BF16.intersection(host.cpu_features)
