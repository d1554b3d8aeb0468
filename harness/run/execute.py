"""Executes the plan of a run: starts engines, measures cells, and stores each before the next begins."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from msgspec import structs

from harness.cluster.placement import Cluster, joined
from harness.engines.session import EngineSession
from harness.host import scratch
from harness.model import CellFacts, CellResult
from harness.plan import Block, Cell, together, turns
from harness.records.layout import was_sent
from harness.run.conformance import keep_probe, probe_engine, refusal, without_http2
from harness.run.interrupts import Interrupts
from harness.run.lives import Lives
from harness.run.measure.cache_state import Attempt
from harness.run.measure.duration import not_reached
from harness.run.measure.measure_cell import CellMeasurement, Measured, measure
from harness.run.measure.workloads import Workloads
from harness.run.questions import Questions
from harness.run.search import probes
from harness.run.setup.context import too_long
from harness.run.setup.prompt_source import length_warnings
from harness.run.status_lines import cell_line, cell_words
from harness.run.stopping import Stopping
from harness.validity import notices
from harness.workload.prompts.workload import Workload


@dataclass
class Run(Lives):
    """A run in progress."""

    probed: dict[str, int | None] = field(default_factory=dict)  # by label: prompt tokens of a chat
    took_s: dict[Cell, float] = field(default_factory=dict)  # by cell of the lives that run now
    asking_s: float = 0.0  # of these lives; no later one is asked again
    progress: str = ""  # of the last look
    interrupted: bool = False
    cluster: Cluster | None = None  # sends the load; None: this machine does
    interrupts: Interrupts = field(default_factory=Interrupts)
    questions: Questions = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.questions = Questions(self.prepared, self.folder, self.manifest, self.ui, self.interrupts)

    def execute(self) -> None:
        """Measures everything. However that ends, manifest and summary are written in their final state."""
        state = "failed"
        scratch.clear()
        self.folder.files.remove_partials()
        try:
            with self.interrupts:
                if self.left():
                    self._warn_of_starts()
                    with joined(self.prepared.options.load_from) as self.cluster:
                        self.provide()
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

    def left(self) -> bool:
        """Whether an engine is needed: not where a resumed run only lacks its conclusion.

        A run that was cut between a cell and a look takes that look here.
        """
        looks, plan = self.manifest.document.stopping, self.prepared.plan
        if looks is not None:
            if self.lost:
                return True
            if not looks.reason:
                return any(Stopping(self.prepared, self.manifest).steps(self._remaining, self.look))
            if looks.blocks:
                return True
            plan = tuple(block for block in plan if block.repeat < looks.looks[0])
        return bool(self._remaining(plan))

    def _steps(self) -> None:
        """Measures all blocks; with looks, one step after the other until the rule stops.

        Lost cells come first: what is left of the others may decide all pairs.
        """
        stopping = Stopping(self.prepared, self.manifest, self.ui)
        begun = False
        steps: Iterable[Sequence[Block]] = [self._remaining(self.prepared.plan)]
        if self.prepared.looks:
            steps = chain([self._lost_blocks()], stopping.steps(self._remaining, self.look))
        for blocks in steps:
            for lives in together(blocks):
                if all(block.cells and not any(self._wanted(block)) for block in lives):
                    continue  # a search that ended before its last start
                if begun:
                    self._cool_down(lives[0])
                begun = True
                if any(block.cells for block in lives) or self.prepared.options.accuracy:
                    self.count_as_begun(lives)
                self._measure_lives(lives, stopping)
                if self.interrupted:
                    return

    def _measure_lives(self, lives: Sequence[Block], stopping: Stopping) -> None:
        """Runs these lives, again while a spoiled cell needs a start, and adds their cost to `stopping`."""
        began_s = time.monotonic()
        self.took_s, self.asking_s, self.progress = {}, 0.0, stopping.progress
        try:
            self._lives(lives)
            while not self.interrupted and self._needs_new_start(lives):
                self._lives(lives)
        finally:
            stopping.count(lives, time.monotonic() - began_s - self.asking_s, self.took_s)

    def _remaining(self, plan: Sequence[Block]) -> list[Block]:
        """Blocks with cells to measure or questions to ask.

        A search keeps all cells of its block to choose from.
        """
        done = {cell.cell for cell in self.cells}
        blocks: list[Block] = []
        first = {block.backend: block for block in reversed(self.prepared.plan)}
        for block in plan:
            if self.prepared.options.find_capacity:
                cells = block.cells if any(self._wanted(block)) else ()
            else:
                cells = tuple(cell for cell in block.cells if cell.name not in done)
            unasked = block == first[block.backend] and self.questions.unasked(self.prepared.of(block).label)
            if cells or unasked:
                blocks.append(replace(block, cells=cells))
        return blocks

    def _lost_blocks(self) -> list[Block]:
        blocks = (
            replace(block, cells=tuple(cell for cell in block.cells if cell.name in self.lost))
            for block in self.prepared.plan
        )
        return [block for block in blocks if block.cells]

    def _cool_down(self, block: Block) -> None:
        """Waits, so that the heat of one engine does not slow the next."""
        seconds = self.prepared.scenario.verdict.cool_down_s
        if seconds and not self.prepared.of(block).ref.definition.backend.simulated:
            self.ui.stage(f"cooling down for {seconds:g} s")
            time.sleep(seconds)

    def _lives(self, blocks: Sequence[Block]) -> None:
        """Starts the engines of these blocks, measures the blocks, and stops all engines after the last one.

        Agreement questions come after the cells, which they would disturb, and so does a probe where the
        first requests after a start are measured.
        """
        first: dict[int, Block] = {}
        for block in blocks:
            first.setdefault(block.backend, block)
        with self.recorded(blocks[0]), ExitStack() as stack:
            engines: dict[int, EngineSession] = {}
            for backend, block in first.items():
                with self.recorded(block):
                    engine = self.opened(block, stack)
                    cells = [cell for other in blocks if other.backend == backend for cell in other.cells]
                    if cells:
                        self._begin(cells[0], engine)
                    engines[backend] = engine
            ended: set[int] = set()  # died, or failed
            for turn in turns(blocks, self.prepared.options.pairing):
                here = [block for block in turn if block.backend in engines.keys() - ended]
                if here and not self.interrupted:
                    ended |= self._duet(here, engines) if len(here) > 1 else self._alone(here[0], engines)
            if blocks[0].start is not None and self.cells:
                self.write_summary()
            for backend, engine in engines.items():
                self._after_cells(first[backend], engine, ended=backend in ended)

    def _after_cells(self, block: Block, engine: EngineSession, *, ended: bool) -> None:
        if block.cells and not ended and not self.interrupted:
            with self.recorded(block, engine):
                self._probe(block.cells[0], engine, self.workloads_of(block, engine))
        asked = self.prepared.of(block)
        if not self.interrupted and self.questions.unasked(asked.label):
            began_s = time.monotonic()
            with self.recorded(block):
                self.awaited(asked.label, "the agreement questions", engine)
                workloads = partial(self.workloads_of, block, engine)
                self.interrupted |= self.questions.ask(asked, engine, workloads)
            self.asking_s += time.monotonic() - began_s

    def _alone(self, block: Block, engines: dict[int, EngineSession]) -> set[int]:
        """Loads one engine; returns its backend if it died.

        If it fails, it leaves `engines`: no questions follow.
        """
        with self.recorded(block, engines[block.backend]):
            return set() if self._cells(block, engines[block.backend]) else {block.backend}
        del engines[block.backend]
        return set()

    def _cells(self, block: Block, engine: EngineSession) -> bool:
        """Measures the cells of a block; returns whether the engine is still alive."""
        if not block.cells:
            return True
        workloads = self.workloads_of(block, engine)
        for cell in self._wanted(block):
            began_s = time.monotonic()
            summary, facts = self._measure(cell, workloads, engine)
            by_start = facts.after_start or facts.cache.method == "restart"  # another try has one of its own
            while not (self.interrupted or by_start) and self.again(summary):
                summary, facts = self._measure(cell, workloads, engine)
            self.took_s[cell] = time.monotonic() - began_s
            if len(self.cells) == 1 or (block.start is None and cell == block.cells[-1]):
                self.write_summary()
            self.ui.note(cell_line(self._words(cell), summary))
            if facts.engine_over:
                self._over(cell, engine)
                return False
            if self.interrupted:
                break
        return True

    def _duet(self, blocks: Sequence[Block], engines: dict[int, EngineSession]) -> set[int]:
        """Loads these engines at the same moments with one plan of arrivals; returns those that failed.

        A cell that the client spoiled is not measured again: its partner would be idle meanwhile.
        """
        began_s, failed, parts = time.monotonic(), {block.backend for block in blocks}, []
        for block in blocks:
            cell, engine = block.cells[0], engines[block.backend]
            with self.recorded(block, engine):
                parts.append(
                    (block, cell, self._ready(cell, self.workloads_of(cell, engine), engine), engine)
                )
        if not parts:
            return failed
        meeting = threading.Barrier(len(parts))
        with self.interrupts.window() as stop, ThreadPoolExecutor(len(parts)) as pool:
            loads = [pool.submit(self._load, *part[1:], stop, meeting) for part in parts]
        for (block, cell, workload, engine), load in zip(parts, loads, strict=True):
            with self.recorded(block, engine):
                summary, facts = self._stored(cell, workload, load.result(), stop)
                self.took_s[cell] = (time.monotonic() - began_s) / len(parts)
                self.ui.note(cell_line(self._words(cell), summary))
                if facts.engine_over:
                    self._over(cell, engine)
                else:
                    failed.discard(block.backend)
        return failed

    def _begin(self, cell: Cell, engine: EngineSession) -> None:
        """Checks and probes an engine that is up. `cell` is the first that it will measure."""
        label = self.prepared.of(cell).label
        with engine.end_as_error(label):
            for server in engine.replicas if self.prepared.scenario.request.kept_turns else ():
                server.check_keeps_turns()
            if self.prepared.options.http2 and (error := without_http2(label, engine)):
                if engine.liveness.look(suspected=True) is None:  # else another start may help
                    self.refused[label] = error
                raise error
            workloads = self.persist(cell, engine, partial(self.workloads_of, cell, engine))
            if not self.prepared.scenario.begins_cold:
                self._probe(cell, engine, workloads)

    def _ready(self, cell: Cell, workloads: Workloads, engine: EngineSession) -> Workload:
        self._say(cell, "preparing" + (f" ({self.progress})" if self.progress else ""))
        workload = workloads.of(cell)
        self.make_ready(cell, engine)
        for warning in length_warnings(self.prepared.source, workloads.fitting):
            self.manifest.warn(warning)
        if trouble := too_long(workload.requested, engine.facts.get("values")):
            label = self.prepared.of(cell).label
            text, longer = f"{label}: {trouble[0]}", {"--engine-set context_tokens": trouble[1]}
            self.manifest.warn(notices.LONGER_THAN_CONTEXT.warning(text, None, label, longer))
        return workload

    def _say(self, cell: Cell, text: str) -> None:
        self.ui.stage(f"{self._words(cell)}: {text}")

    def _words(self, cell: Cell) -> str:
        return cell_words(self.prepared.of(cell).label, cell)

    def _measure(
        self, cell: Cell, workloads: Workloads, engine: EngineSession
    ) -> tuple[CellResult, CellFacts]:
        """Measures a cell, stores it, and returns its summary and its facts."""

        def loaded() -> tuple[Workload, Measured, threading.Event]:
            workload = self._ready(cell, workloads, engine)
            with self.interrupts.window() as stop:
                return workload, self._load(cell, workload, engine, stop), stop

        return self._stored(cell, *self.persist(cell, engine, loaded))

    def _load(
        self,
        cell: Cell,
        workload: Workload,
        engine: EngineSession,
        stop: threading.Event,
        meeting: threading.Barrier | None = None,
    ) -> Measured:
        self.folder.files.make_folder(f"cells/{cell.name}")  # if bench is killed, a resumed run knows of it
        attempt = Attempt(self.manifest.document.run, self.folder.times_set_aside(cell.name))
        show, say = partial(self.ui.load, cell), partial(self._say, cell)
        chat_tokens = self.probed.get(self.prepared.of(cell).label)
        window = CellMeasurement(show, say, stop, self.cluster, attempt, meeting, self.up, chat_tokens)
        try:
            return measure(self.prepared, cell, workload, engine, window)
        except BaseException:
            if meeting is not None:
                meeting.abort()  # nobody is to wait for this one
            raise

    def _stored(
        self, cell: Cell, workload: Workload, done: Measured, stop: threading.Event
    ) -> tuple[CellResult, CellFacts]:
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
            if (early := not_reached(self.prepared.options.overrides, records, facts)) is not None:
                self.manifest.warn(early)
        self.interrupted |= done.result.interrupted or stop.is_set() or late.is_set()
        return summary, facts

    def _needs_new_start(self, lives: Sequence[Block]) -> bool:
        """Sets aside the only cell of these lives if it was spoiled; returns whether it was.

        Its engine is started again: for a cell alone in its life, only a start sets the cache or is measured.
        """
        names = [cell.name for block in lives for cell in block.cells]
        return len(names) == 1 and any(self.again(cell) for cell in self.cells if cell.cell in names)

    def _wanted(self, block: Block) -> Iterator[Cell]:
        """Cells of the block; in a capacity search, those that it asks for from what was measured."""
        sizes, label = self.prepared.probe_sizes, self.prepared.of(block).label
        if sizes is not None:
            return probes(
                block, self.prepared.repeats, sizes, lambda: [c for c in self.cells if c.label == label]
            )
        return iter(block.cells)

    def _probe(self, cell: Cell, engine: EngineSession, workloads: Workloads) -> None:
        """Probes the engine, but a backend only once in a run."""
        label = self.prepared.of(cell).label
        if label in self.probed or not self.prepared.options.probe:
            return
        self.probed[label] = None
        self.ui.stage(f"{label}: probing")
        variant = self.prepared.of(cell).ref.variant
        requests = workloads.of(cell).requests
        probed = self.persist(cell, engine, partial(probe_engine, engine, variant, requests))
        self.probed[label] = max(filter(None, probed.prompt_tokens.values()), default=None)
        keep_probe(label, probed, self.folder, self.manifest, self.ui)
        if (error := refusal(label, probed)) and self.prepared.scenario.request.exact_output:
            self.refused[label] = error
            raise error

    def _over(self, cell: Cell, engine: EngineSession) -> None:
        """Reports the end of an engine: its cell is INVALID, later ones of this repeat are missing."""
        label, ending = self.prepared.of(cell).label, engine.liveness.look()
        assert ending is not None
        text = ending.sentence(f" during {cell.name}")
        error = engine.failure(text, label)
        self.manifest.warn(notices.ENGINE_DIED.warning(f"{label}: {text}", error.hint, label))
        self.ui.note(f"error: {error}\nhint: {error.hint}")
