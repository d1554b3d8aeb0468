"""The walk through the plan: one engine at a time, each cell stored before the next begins."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from harness import agreement
from harness.apis import APIS
from harness.cluster.placement import Cluster, joined
from harness.engines.session import EngineSession, open_engine
from harness.engines.start.request import EngineRequest
from harness.errors import SetupError, SpecError, StorageError
from harness.host import scratch
from harness.model import AskedBackend, CellFacts, CellResult, WorkloadCards
from harness.plan import Block, Cell
from harness.records.layout import was_sent
from harness.run.conformance import keep_probe, probe_engine
from harness.run.interrupts import Interrupts
from harness.run.keep.stored import Stored
from harness.run.measure.agreement_answers import (
    ACCURACY_LIMIT_S,
    Asking,
    agreement_wanted,
    ask_all,
    questions_of,
)
from harness.run.measure.agreement_load import under_load
from harness.run.measure.agreement_values import ask_values, reference_values
from harness.run.measure.measure_cell import CellMeasurement, engine_version, measure
from harness.run.measure.workloads import Workloads, make_workloads, token_counter
from harness.run.search import probes
from harness.run.setup import noise
from harness.run.setup.context import too_long
from harness.run.setup.provision import provide
from harness.run.setup.working_sets import kv_tokens
from harness.run.status_lines import cell_line, cell_words
from harness.run.stopping import Stopping
from harness.validity import notices
from harness.workload.prompts.workload import Workload


@dataclass
class Run(Stored):
    """A run in progress."""

    workloads: Workloads | None = None
    probed: set[str] = field(default_factory=set)  # labels
    told: set[str] = field(default_factory=set)  # labels
    repeats: dict[int, int] = field(default_factory=dict)  # by backend, of the cell measured last
    took: dict[Cell, float] = field(default_factory=dict)  # seconds, of the cells of this block
    progress: str = ""  # of the last look
    interrupted: bool = False
    cluster: Cluster | None = None  # that sends the load
    interrupts: Interrupts = field(default_factory=Interrupts)

    def execute(self) -> None:
        """Ends with the manifest and the summary in their final state, whatever happened on the way."""
        state = "failed"
        scratch.clear()
        self.folder.files.remove_partials()
        try:
            with self.interrupts, joined(self.prepared.options.load_from) as self.cluster:
                provide(self.prepared, self.ui.stage)
                self._steps()
            state = "interrupted" if self.interrupted else "complete" if self.cells else "failed"
            if state == "complete" and self.prepared.options.aa:
                self.keep_noise()
        except KeyboardInterrupt:
            self.interrupted = True
            state = "interrupted"
        finally:
            self.manifest.write(state=state)
            self.folder.write_summary(self.summary)
            self.keep_measured()

    def _steps(self) -> None:
        """All blocks; where there are looks, step by step until the rule stops."""
        stopping = Stopping(self.prepared, self.manifest, self.ui)
        begun = False
        steps = stopping.steps(self._remaining, self.stand) if self.prepared.looks else None
        for blocks in steps or [self._remaining(self.prepared.plan)]:
            for block in blocks:
                if begun:
                    self._cool_down(block)
                begun = True
                self._whole(block, stopping)
                if self.interrupted:
                    return

    def _whole(self, block: Block, stopping: Stopping) -> None:
        began_s = time.monotonic()
        self.took, self.progress = {}, stopping.progress
        self._block(block)
        while not self.interrupted and self._anew(block):
            self._block(block)
        if self.took:
            stopping.costs.add(block, time.monotonic() - began_s, self.took)

    def _remaining(self, plan: Sequence[Block]) -> list[Block]:
        """Blocks with something to measure or to ask; a search chooses from all the cells of its block."""
        done = {cell.cell for cell in self.cells}
        blocks: list[Block] = []
        first = {block.backend: block for block in reversed(self.prepared.plan)}
        for block in plan:
            if self.prepared.options.find_capacity:
                cells = block.cells if any(self._wanted(block)) else ()
            else:
                cells = tuple(cell for cell in block.cells if cell.name not in done)
            unasked = block == first[block.backend] and self._unasked(block)
            if cells or unasked:
                blocks.append(replace(block, cells=cells))
        return blocks

    def _cool_down(self, block: Block) -> None:
        """Cools down: what the engine before has left behind, heat above all, is not to be the next one's."""
        seconds = self.prepared.scenario.verdict.cool_down_s
        if seconds and not self.prepared.of(block).ref.definition.backend.simulated:
            self.ui.stage(f"cooling down for {seconds:g} s")
            time.sleep(seconds)

    def _block(self, block: Block) -> None:
        """An engine that cannot be started is recorded, and the other backends are still measured.

        A full results disk is no engine's failure, and the only backend's failure is the run's.
        """
        label = self.prepared.of(block).label
        try:
            with open_engine(self._request(block), self.ui.stage) as engine:
                host, version = self.manifest.document.host, engine_version(engine.facts)
                key = noise.key(host, self.prepared, self.prepared.of(block), version)
                self.manifest.engine_started(label, engine.facts, key)
                self.ui.note(
                    f"{label}: {engine_version(engine.facts) or 'version unknown'} at "
                    f"{' and '.join(engine.urls)}"
                )
                self._tell_known(label, engine)
                self._cells(block, engine)
                if not self.interrupted and self._unasked(block):
                    self._agreement(block, engine)
        except StorageError:
            raise
        except SetupError as error:
            if not self.cells and len(self.prepared.plan) == 1:
                raise
            self.manifest.failed(label, block.repeat, str(error))
            text = str(error) if error.where == label else f"{label}: {error}"
            self.manifest.warn(notices.NOT_MEASURED.warning(text, error.hint or None))
            self.ui.note(f"error: {text}" + (f"\nhint: {error.hint}" if error.hint else ""))

    def _request(self, block: Block) -> EngineRequest:
        prepared, backend = self.prepared, self.prepared.of(block)
        return EngineRequest(
            backend.ref,
            backend.launch,
            prepared.model_name,
            prepared.model,
            log_path=self.folder.log_path(self._life(block)),
            values=backend.engine_values,
            gpu_wait_s=prepared.options.gpu_wait_s,
            gpus=prepared.options.gpus,
        )

    def _tell_known(self, label: str, engine: EngineSession) -> None:
        """Says what is known, once per backend.

        What bench starts is configured; elsewhere an engine's defaults may hold.
        """
        header, launch = engine.definition.backend, engine.facts["launch"]["mode"]
        if header.kind != "engine":
            notice = notices.OF_KIND[header.kind]
            self.manifest.warn(notice.warning(f"{label}: {engine.facts['known'][0]}"))
        if launch == "attach" and label not in self.told:
            self.told.add(label)
            for line in engine.facts["known"]:
                self.ui.detail(f"note: {label}: {line}")

    def _life(self, block: Block) -> str:
        """Name of one life of an engine."""
        lives = [b for b in self.prepared.plan if (b.backend, b.repeat) == (block.backend, block.repeat)]
        point = f"-{block.cells[0].load.label}" if len(lives) > 1 and block.cells else ""
        return f"{self.prepared.of(block).label}{point}-r{block.repeat}"

    def _cells(self, block: Block, engine: EngineSession) -> None:
        if not block.cells:
            return
        if self.prepared.scenario.request.kept_turns:
            for server in engine.replicas:
                server.check_keeps_turns()
        workloads = self._workloads(engine)
        if self.prepared.options.probe:
            self._probe(block, engine, workloads)
        for cell in self._wanted(block):
            self._between_repeats(cell, engine)
            self.ui.stage(
                f"{self._words(cell)}: preparing" + (f" ({self.progress})" if self.progress else "")
            )
            began_s = time.monotonic()
            workload = workloads.of(cell)
            if trouble := too_long(workload.requested, engine.facts.get("values")):
                label = self.prepared.of(block).label
                self.manifest.warn(notices.LONGER_THAN_CONTEXT.warning(f"{label}: {trouble[0]}", trouble[1]))
            summary, facts = self._measure(cell, workload, engine)
            while not self.interrupted and facts.cache.method != "restart" and self.again(summary):
                summary, facts = self._measure(cell, workload, engine)
            self.took[cell] = time.monotonic() - began_s
            if len(self.cells) == 1 or cell == block.cells[-1]:  # it compares all cells: not after each
                self.folder.write_summary(self.summary)
            self.ui.note(cell_line(summary))
            if facts.engine_exited:
                self._died(cell, engine, facts)
                return
            if self.interrupted:
                return

    def _words(self, cell: Cell) -> str:
        return cell_words(self.prepared.of(cell).label, cell.load, cell.repeat)

    def _between_repeats(self, cell: Cell, engine: EngineSession) -> None:
        """Resets the cache where the engine goes on and a reset was asked for, before its first cell of
        each later repeat.
        """
        before = self.repeats.get(cell.backend)
        self.repeats[cell.backend] = cell.repeat
        if not cell.repeat or before == cell.repeat or self.prepared.of(cell).between != "reset":
            return
        reset = engine.reset_prefix_cache()
        if not reset.done:
            label = self.prepared.of(cell).label
            text = f"{label}: not reset before repeat {cell.repeat}: {reset.how}"
            self.manifest.warn(notices.NOT_RESET.warning(text))

    def _measure(self, cell: Cell, workload: Workload, engine: EngineSession) -> tuple[CellResult, CellFacts]:
        """Measures a cell and returns its summary and its facts, both stored."""
        with self.interrupts.window() as stop:
            window = CellMeasurement(partial(self.ui.load, cell), stop, self.cluster)
            done = measure(self.prepared, cell, workload, engine, window)
        records, facts = done.result.records, done.facts
        if done.result.interrupted and not was_sent(records):
            self.ui.note(f"{self._words(cell)}: interrupted, not measured")
            raise KeyboardInterrupt  # a resumed run measures it
        point = f"{cell.load.label}-r{cell.repeat}"
        with self.interrupts.window() as late:  # a cell that is stored is also in the summary
            file = self.folder.write_requested(point, workload.requested)
            facts = structs.replace(facts, workload=structs.replace(facts.workload, file=file))
            self.folder.write_cell(records, facts, done.telemetry)
            summary = self.keep(records, facts, workload.requested, done.telemetry)
        self.interrupted = done.result.interrupted or stop.is_set() or late.is_set()
        return summary, facts

    def _anew(self, block: Block) -> bool:
        """Tells whether the engine starts again, as `again`, of a cell whose cache state only a start of
        the engine brings about.
        """
        names = [cell.name for cell in block.cells]
        return len(names) == 1 and any(self.again(cell) for cell in self.cells if cell.cell in names)

    def _wanted(self, block: Block) -> Iterator[Cell]:
        """All of them; in a search those that it asks for and does not have, by what was measured."""
        sizes, label = self.prepared.probe_sizes, self.prepared.of(block).label
        if sizes is not None:
            return probes(
                block, self.prepared.repeats, sizes, lambda: [c for c in self.cells if c.label == label]
            )
        return iter(block.cells)

    def _probe(self, block: Block, engine: EngineSession, workloads: Workloads) -> None:
        """Probes the engine, once per backend."""
        label = self.prepared.of(block).label
        if label in self.probed:
            return
        self.probed.add(label)
        self.ui.stage(f"{label}: probing")
        variant = self.prepared.of(block).ref.variant
        probed = probe_engine(engine, variant, workloads.of(block.cells[0]).requests)
        keep_probe(label, probed, self.folder, self.manifest, self.ui)

    def _unasked(self, block: Block) -> bool:
        """Returns whether this backend has still to answer the agreement questions."""
        label = self.prepared.of(block).label
        return agreement_wanted(self.prepared) and label not in self.folder.read_answers()[1]

    def _agreement(self, block: Block, engine: EngineSession) -> None:
        """Asks the questions after the engine's first cells, so that they are not disturbed."""
        label = self.prepared.of(block).label
        definition = self.prepared.of(block).ref.definition
        of_text = APIS[definition.dialect.api].gives == "text"
        questions = questions_of(self.prepared.options) if of_text else agreement.load_questions()
        asked, missing, hint = None, _death(engine), None
        if missing is None:
            try:
                with self.interrupts.window() as stop:
                    if not of_text:
                        asked = ask_values(self.prepared, engine, questions)
                    else:
                        say = partial(self._stage, label)
                        asking = self._asking(label, engine)
                        asked = ask_all(definition, engine, questions, say, stop, asking)
                self.interrupted = asked is None
            except SetupError as error:
                missing, hint = str(error), error.hint or None
            if not self.interrupted and (asked is None or _failed(asked)):
                missing = _death(engine, suspected=True) or missing
        if missing:
            self.manifest.warn(notices.AGREEMENT_MISSING.warning(f"{label}: {missing}", hint))
        elif asked is not None:
            self.folder.write_answers(agreement.as_json(questions), label, asked)
            if asked.values:
                self._reference(questions)

    def _asking(self, label: str, engine: EngineSession) -> Asking:
        """Returns how the questions are put: between requests of the load where an accuracy was asked for."""
        between = self._workloads(engine).between
        if between is None:
            return Asking()
        known = self.folder.read_answers()[1]
        before = [
            backend.label
            for backend in self.prepared.backends
            if backend.label in known and backend.label != label
        ]
        return Asking(
            ACCURACY_LIMIT_S,
            under_load(self.prepared, between, engine),
            [known[name] for name in before],
            len(self.prepared.backends),
        )

    def _reference(self, questions: Sequence[agreement.Question]) -> None:
        """Asks for the vectors of the model's own library, once in a run."""
        if any(
            backend.values and backend.values.library for backend in self.folder.read_answers()[1].values()
        ):
            return
        try:
            reference = reference_values(self.prepared, questions, partial(self._stage, "reference"))
        except SetupError as error:
            self.manifest.warn(notices.AGREEMENT_MISSING.warning(str(error), error.hint or None))
            return
        for label, asked in reference.items():
            self.folder.write_answers(agreement.as_json(questions), label, asked)

    def _stage(self, label: str, text: str) -> None:
        self.ui.stage(f"{label}: {text}")

    def _died(self, cell: Cell, engine: EngineSession, facts: CellFacts) -> None:
        """The cell is kept and INVALID; the engine's other cells of this repeat are missing."""
        text = f"the engine died during {cell.name}: {facts.engine_exited}"
        label = self.prepared.of(cell).label
        self.manifest.warn(notices.ENGINE_DIED.warning(f"{label}: {text}", f"its log: {facts.engine_log}"))
        self.ui.note(f"error: {label}: {text}\n{engine.log_tail(15)}\nhint: its log is {facts.engine_log}")

    def _workloads(self, engine: EngineSession) -> Workloads:
        """Made with the first engine's tokenizer and then kept: every backend gets the same bytes."""
        if self.workloads is None:
            self._size_working_sets(engine)
            self.ui.stage("making prompts")
            self.workloads = make_workloads(self.prepared, engine)
            if not self.workloads.exact:
                self.manifest.warn(
                    notices.APPROXIMATE_LENGTHS.warning(
                        "the server offers no tokenizer: input lengths are approximate, one word a token"
                    )
                )
            sha256, before = self.workloads.sha256(), self.manifest.document.workload_sha256
            if before not in (None, sha256):
                raise SpecError(
                    "the prompts made now differ from those of this run: another tokenizer or version",
                    where=str(self.folder.path),
                    hint="start a new run with `bench run`",
                )
            self.manifest.write(workload_sha256=sha256, exact_lengths=self.workloads.exact)
            cards = self.workloads.cards(self.prepared.options.seed)
            self.folder.write_cards(WorkloadCards(cards=cards))
        elif self.prepared.probe_sizes is not None:
            self.workloads.count_with(token_counter(engine))
        return self.workloads

    def _size_working_sets(self, engine: EngineSession) -> None:
        tokens = kv_tokens(self.prepared.scenario.load, self.manifest.document.kv_tokens, engine)
        if tokens is None:
            return
        self.manifest.write(kv_tokens=tokens)
        self.ui.note(f"working sets are multiples of a KV cache of {tokens:,} tokens")
        scenario = self.prepared.scenario
        sized = replace(scenario, load=replace(scenario.load, kv_tokens=tokens))
        self.prepared = replace(self.prepared, scenario=sized)


def _death(engine: EngineSession, *, suspected: bool = False) -> str | None:
    ended = engine.exited(suspected=suspected)
    return f"the engine died: {ended}" if ended else None


def _failed(asked: AskedBackend) -> bool:
    """Returns whether a question got no answer."""
    conditions = (asked.unloaded, asked.saturated)
    return any(answer.outcome != "ok" for condition in conditions for answer in condition.answers.values())
