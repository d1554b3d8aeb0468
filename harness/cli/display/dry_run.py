"""`bench run --dry-run`: the expanded plan, and how long it took the last time it was run here."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from harness.apis import APIS
from harness.cli.display.asked import asked
from harness.cli.display.expected import expected
from harness.cli.display.foreseen import refusals, unpriced, unsupported
from harness.cli.display.live import wrapped
from harness.cli.display.memory import memory_lines
from harness.engines.check.available import Machine
from harness.engines.check.preflight import Lack, lacks, to_build
from harness.engines.known import known
from harness.engines.provide.install import size_words
from harness.engines.start.command import configured, facts_ahead
from harness.engines.start.gpus import chosen_gpus, gpus_needed
from harness.errors import SpecError
from harness.model import (
    BackendEntry,
    DryRun,
    LaunchChoice,
    MissingNeed,
    PlannedBackend,
    PlannedCell,
    PlannedLaunch,
    ScenarioTables,
    from_json,
)
from harness.model.numbers import counted, duration, short
from harness.plan import MOST_LONGER, Block, together
from harness.report.wording import aligned
from harness.run.measure.agreement_answers import (
    ACCURACY_LIMIT_S,
    LIMIT_S,
    agreement_wanted,
    questions_of,
)
from harness.run.search import usually_at_most
from harness.run.setup.prepare import BackendPlan, Prepared
from harness.run.setup.prompt_source import source_warnings
from harness.spec import files
from harness.store import RunFolder, stored_runs


@dataclass(frozen=True, slots=True)
class Description:
    prepared: Prepared
    cells: tuple[PlannedCell, ...]
    missing: tuple[Lack, ...]  # on this machine
    to_install: tuple[str, ...]  # engines whose environments the run would build
    refused: tuple[str, ...]  # verdicts, by what is known before the first cell
    starts_s: float | None  # of all engines, with the pauses between them; None where one never was started
    expected_s: float | None  # of the load alone, without engine starts; None where it is not known
    warm_ups_known: bool  # whether that has the warm-ups before a duration

    @property
    def document(self) -> DryRun:
        prepared = self.prepared
        questions, longest_questions_s = _questions(prepared)
        set_for = {backend.label: _set_for(backend) for backend in prepared.backends}
        return DryRun(
            scenario=from_json(asdict(prepared.scenario), ScenarioTables),
            scenario_sha256=files.fingerprint(prepared.scenario),
            model=prepared.model_name,
            backends={
                backend.label: PlannedBackend(
                    launch=PlannedLaunch(**asdict(backend.launch)),
                    track=backend.track,
                    known=tuple(known(backend.ref.definition, launch=backend.launch)),
                    flags=tuple(set_for[backend.label][0]),
                    variables=set_for[backend.label][1],
                    gpus=_gpus(prepared, backend),
                )
                for backend in prepared.backends
            },
            cells=self.cells,
            looks=tuple(prepared.looks),
            expected_s=self.expected_s,
            expected_starts_s=self.starts_s,
            questions=questions,
            longest_questions_s=longest_questions_s,
            missing=tuple(MissingNeed(**asdict(lack)) for lack in self.missing),
            refused=self.refused,
            warnings=source_warnings(prepared.source),
        )

    def as_text(self, *, verbose: bool, width: int) -> str:
        """Fits `width` where words allow it. `verbose`: what is known of each engine, and every cell."""
        return "\n".join(wrapped(line, width) for line in self._lines(verbose=verbose))

    def _lines(self, *, verbose: bool) -> Iterator[str]:
        prepared = self.prepared
        model = (
            f"model {prepared.model_name}"
            if any(backend.track for backend in prepared.backends)
            else "the servers' own models"
        )
        yield f"{prepared.scenario.name}: {prepared.scenario.scenario.purpose}"
        until = ", until every pair is decided" if len(prepared.looks) > 1 else ""
        planned = f"{_repeats(prepared)}{until}{_sized(prepared)}"
        yield f"{model}, seed {prepared.options.seed}, {planned}"
        if lengths := "; ".join(asked(prepared.scenario)):
            yield lengths
        yield ""
        printed: dict[str, list[str]] = {}  # facts by engine: its variants share most
        for backend in prepared.backends:
            launch, track = backend.launch, backend.track
            why = f" ({launch.why})" if verbose else ""
            weights = f", weights {track}" if track else ""
            if track and (repo := prepared.model.tracks[track].repo):
                weights += f" of {repo} (model hub{_size(prepared, track)})"
            gpus = _gpus(prepared, backend)
            on = f" on GPU {', '.join(gpus)}" if gpus else ""
            yield f"  {backend.label}: {launch.mode}{on}{why}{weights}"
            if verbose:
                flags, variables = _set_for(backend)
                process = backend.ref.definition.process if launch.mode == "process" else None
                parts = {"program": process.program if process else (), "flags": flags}
                parts["variables"] = [f"{name}={value}" for name, value in variables.items()]
                yield from (f"    {part}: {shlex.join(words)}" for part, words in parts.items() if words)
                engine = backend.ref.definition
                facts = printed.setdefault(engine.name, [])
                new = [fact for fact in known(engine, launch=launch) if fact not in facts]
                yield from (f"    known of it: {fact}" for fact in new)
                facts += new
        yield from (f"  {line}" for line in memory_lines(prepared, Machine(gpus=prepared.options.gpus)))
        yield ""
        yield from self._each_cell() if verbose else self._each_load()
        yield ""
        yield f"{self._amount}{', and ' if prepared.probe_sizes is None else '; '}{self._starts}"
        questions, longest_s = _questions(prepared)
        if questions:
            yield (
                f"then {questions} questions to each engine, one at a time and under load, for at most "
                f"{duration(longest_s)}"
            )
        if self.expected_s is None and prepared.probe_sizes is None:
            yield (
                "how long the cells take is not known: "
                f"{prepared.options.out} has no earlier run of all of them"
            )
        if self.to_install:
            yield f"to be installed first: {', '.join(self.to_install)}"
        yield from (f"warning: {lack}" for lack in self.missing)
        yield from (f"warning: {refusal}" for refusal in self.refused)
        yield from (
            f"warning: {warning.code}: {warning.text}" for warning in source_warnings(prepared.source)
        )
        yield from (f"note: {line}" for line in (*unsupported(prepared), *unpriced(prepared)))

    def _each_cell(self) -> Iterator[str]:
        rows = [(cell.cell, cell.load, f"{_expected(cell):>6}", cell.basis) for cell in self._listed]
        yield from (f"  {line}" for line in aligned(rows, figures=False))

    def _each_load(self) -> Iterator[str]:
        """The first repeat of each backend and load stands for all."""
        firsts: dict[tuple[str, str], PlannedCell] = {}
        for cell in self._listed:
            firsts.setdefault((cell.backend, cell.load), cell)
        loads = len({load for _label, load in firsts})
        if self.prepared.probe_sizes is None:
            yield (
                f"{counted(len(self.prepared.labels), 'engine')} × {counted(loads, 'load')} × "
                f"{_repeats(self.prepared)} (-v lists each cell)"
            )
        rows = [
            (*named, f"{'' if cell.expected_s is None else f'{_expected(cell)} each: '}{cell.basis}")
            for named, cell in firsts.items()
        ]
        yield from (f"  {line}" for line in aligned(rows, figures=False))

    @property
    def _listed(self) -> Sequence[PlannedCell]:
        """A search chooses few of its loads: the lowest and the highest stand for all."""
        if self.prepared.probe_sizes is None:
            return self.cells
        ends = [cell.name for block in self.prepared.plan for cell in (block.cells[0], block.cells[-1])]
        return [cell for cell in self.cells if cell.cell in ends]

    @property
    def _amount(self) -> str:
        sizes = self.prepared.probe_sizes
        warming = "" if self.warm_ups_known else " after warm-ups"
        measured = "" if self.expected_s is None else f", about {duration(self.expected_s)} of load{warming}"
        if sizes is None:
            most = "at most " if self.prepared.looks else ""
            return f"{most}{counted(len(self.cells), 'cell')}{measured}"
        loads = self.prepared.plan[0].cells
        lasts = f"lasts {sizes.seconds:g} to {MOST_LONGER * sizes.seconds:g} s"
        if loads[0].load.kind == "concurrency":
            lasts = f"has {sizes.long(loads[0].load).waves} answers of each slot or more"
        searches, values = self.prepared.repeats, [cell.load.value for cell in loads]
        return (
            f"for each engine {counted(searches, 'search')} among {len(loads)} loads, usually at most "
            f"{usually_at_most(values, searches)} probes{measured}; the last one of a search decides and "
            f"{lasts}"
        )

    @property
    def _starts(self) -> str:
        starts, most = len(_started(self.prepared)), "at most " if self.prepared.looks else ""
        if not starts:
            pauses = f", about {duration(self.starts_s)} of pauses" if self.starts_s else ""
            return f"no engine start{pauses}"
        took = "" if self.starts_s is None else f", about {duration(self.starts_s)} with pauses"
        return f"{most}{counted(starts, 'engine start')}{took}"


def _size(prepared: Prepared, track: str) -> str:
    """The bytes of weights in bf16, by the number of parameters; "" of others, of which it says nothing."""
    millions = prepared.model.parameters_millions
    full = prepared.model.tracks[track].quantisation.startswith("bf16")
    return f", about {short(millions / 500, 2)} GB" if full and millions else ""


def _set_for(backend: BackendPlan) -> tuple[list[str], dict[str, str]]:
    """Flags and variables of an engine before its start, with placeholders for what is known then."""
    definition = configured(backend.ref.definition, None, backend.engine_values, backend.launch)
    facts = facts_ahead(definition, backend.launch)
    return facts.get("command", []), {name: value or "" for name, value in facts.get("env", {}).items()}


def _gpus(prepared: Prepared, backend: BackendPlan) -> tuple[str, ...]:
    """The GPUs of the first start, where engines swap theirs."""
    if backend.launch.device != "cuda":
        return ()
    definition = configured(backend.ref.definition, None, backend.engine_values, backend.launch)
    block = next(block for block in prepared.plan if prepared.backends[block.backend] is backend)
    return tuple(chosen_gpus(gpus_needed(definition), prepared.gpus_of(block)))


def _questions(prepared: Prepared) -> tuple[int, float]:
    """How many each engine gets after its cells, and their longest time. Vectors and scores take seconds."""
    if not agreement_wanted(prepared) or APIS[prepared.scenario.request.api].gives != "text":
        return 0, 0.0
    longest_s = 2 * (ACCURACY_LIMIT_S if prepared.options.accuracy else LIMIT_S)
    return len(questions_of(prepared.options)), longest_s


def _expected(cell: PlannedCell) -> str:
    return "?" if cell.expected_s is None else f"{cell.expected_s:.0f} s"


def _repeats(prepared: Prepared) -> str:
    looks, paired = prepared.looks, prepared.together
    blocks = paired.blocks if paired else 1
    unit = "start" if blocks > 1 else "block" if paired else "repeat"
    within = f" of {blocks} blocks" if blocks > 1 else " of one start" if paired else ""
    if len(looks) > 1:
        return f"{looks[0] // blocks} to {looks[-1] // blocks} {unit}s{within}"
    return counted(prepared.repeats // blocks, unit) + within


def _sized(prepared: Prepared) -> str:
    profile = prepared.scenario.profile
    return f", sized for {'a GPU' if profile == 'gpu' else 'a CPU'} (--profile)" if profile else ""


def describe(prepared: Prepared) -> Description:
    cells, load_s, warm_ups_known = expected(prepared)
    machine = Machine(gpus=prepared.options.gpus)
    return Description(
        prepared,
        cells,
        tuple(lacks(prepared.engines, machine)),
        tuple(
            definition.name + size_words(definition)
            for definition in to_build(prepared.engines, machine).values()
        ),
        tuple(refusal.sentence for refusal in refusals(prepared)),
        _starts(prepared),
        load_s,
        warm_ups_known,
    )


def _started(prepared: Prepared) -> list[Block]:
    """The first block of each life that begins with a start: what is measured where it runs has none."""
    return [block for block in prepared.lives if prepared.of(block).launch.mode != "attach"]


def _starts(prepared: Prepared) -> float | None:
    """Seconds, from the last start of each backend in an earlier run that was launched in the same way."""
    took: dict[tuple[str, str], float] = {}
    for folder in stored_runs(prepared.options.out):
        for label, backend in _backends(folder).items():
            startup_s = backend.engine.get("startup_s") if isinstance(backend.engine, dict) else None
            if isinstance(startup_s, int | float) and isinstance(backend.launch, LaunchChoice):
                took[label, backend.launch.mode] = startup_s
    needed = [
        took.get((prepared.of(block).label.partition("#")[0], prepared.of(block).launch.mode))
        for block in _started(prepared)
    ]
    known = [seconds for seconds in needed if seconds is not None]
    pauses = (len(list(together(prepared.plan))) - 1) * prepared.scenario.verdict.cool_down_s
    return sum(known) + pauses if len(known) == len(needed) else None


def _backends(folder: RunFolder) -> Mapping[str, BackendEntry]:
    try:
        return folder.read_manifest().backends
    except SpecError:
        return {}
