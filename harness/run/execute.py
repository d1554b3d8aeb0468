"""The walk through the plan: one engine at a time, each cell stored before the next begins."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, Literal

from harness import agreement
from harness.asked import Asked
from harness.compare.kept import kept_limits
from harness.doctor.result import advice
from harness.engines.containers.launch import provide_image
from harness.engines.install import install_engine, needs_install
from harness.engines.models import ensure_weights
from harness.engines.session import EngineSession, open_engine
from harness.errors import SetupError, SpecError, StorageError
from harness.metrics.pooled import Samples
from harness.observe import host
from harness.plan import Block, Cell, load_points, long_probe
from harness.probe import examine
from harness.prompts.request import TokenCounter
from harness.record import Records
from harness.run import noise
from harness.run.agreement import agreement_wanted, ask_all
from harness.run.context import too_long
from harness.run.interrupts import Interrupts
from harness.run.manifest import Manifest, plan_json
from harness.run.options import Ui
from harness.run.prepare import Prepared
from harness.run.search import Search
from harness.run.window import engine_version, measure
from harness.run.workloads import Workloads
from harness.store import RunFolder
from harness.summary import beside, cell_samples, summarise_cell, summarise_run
from harness.telemetry import Telemetry
from harness.traces import Trace

PROBE_LIMIT_S = 60.0
PROBED_REQUESTS = 256  # which shapes a cell asks for is seen from its first requests


@dataclass
class Run:
    """State of a run in progress. `summary` is what was measured so far, also after an interruption."""

    prepared: Prepared
    folder: RunFolder
    ui: Ui
    manifest: Manifest
    cells: list[dict[str, Any]] = field(default_factory=list)  # summaries, in plan order
    samples: dict[str, Samples] = field(default_factory=dict)  # by the name of the cell
    workloads: Workloads | None = None
    probed: set[str] = field(default_factory=set)  # labels
    interrupted: bool = False
    interrupts: Interrupts = field(default_factory=Interrupts)

    @classmethod
    def start(cls, prepared: Prepared, ui: Ui) -> "Run":
        most = max(load_points(prepared.scenario.load), key=attrgetter("value"))
        value = most.value
        if most.kind == "trace" and isinstance(prepared.source, Trace):
            value *= prepared.source.rate_per_s
        kind: Literal["concurrency", "rate"] = "concurrency" if most.kind == "concurrency" else "rate"
        doubt = advice(kind, value, host.host_facts())
        if doubt:
            ui.note(f"hint: {doubt}")
        if prepared.scenario.profile:
            ui.note(f"sized for profile {prepared.scenario.profile} (--profile)")
        folder = RunFolder.create(prepared.options.out, prepared.scenario.name)
        folder.write_json("plan.json", plan_json(prepared))
        return cls(prepared, folder, ui, Manifest.new(folder, prepared))

    @classmethod
    def resume(cls, prepared: Prepared, folder: RunFolder, ui: Ui) -> "Run":
        """Keeps the cells that ran to their end; what is missing or was cut short is measured."""
        manifest = Manifest.resumed(folder, prepared)
        run = cls(prepared, folder, ui, manifest)
        for records, facts in map(folder.read_cell, folder.cells()):
            if not facts["interrupted"]:
                run._keep(records, facts, folder.read_asked(facts), folder.read_telemetry(facts["cell"]))
        return run

    @property
    def summary(self) -> dict[str, Any]:
        manifest = self.manifest.content
        return summarise_run(manifest, self.cells, self.samples, beside(self.folder, manifest))

    def _keep(
        self, records: Records, facts: Mapping[str, Any], asked: Asked | None, telemetry: Telemetry
    ) -> dict[str, Any]:
        summary = summarise_cell(records, facts, asked, telemetry)
        self.cells = sorted([*self.cells, summary], key=itemgetter("cell"))
        self.samples[summary["cell"]] = cell_samples(records, facts)
        return summary

    @property
    def failures(self) -> list[dict[str, Any]]:
        failures: list[dict[str, Any]] = self.manifest.content["failures"]
        return failures

    def execute(self) -> None:
        """Ends with the manifest and the summary in their final state, whatever happened on the way."""
        state = "failed"
        try:
            with self.interrupts:
                self._provide()
                for index, block in enumerate(self._remaining()):
                    if index:
                        self._cool_down(block)
                    self._block(block)
                    if self.interrupted:
                        break
            state = "interrupted" if self.interrupted else "complete" if self.cells else "failed"
            if state == "complete" and self.prepared.options.aa:
                self._keep_noise()
        except KeyboardInterrupt:
            self.interrupted = True
            state = "interrupted"
        finally:
            self.manifest.write(state=state)
            self.folder.write_json("summary.json", self.summary)

    def _remaining(self) -> list[Block]:
        """Blocks with something to measure or to ask; a search chooses from all the cells of its block."""
        done = {cell["cell"] for cell in self.cells}
        blocks: list[Block] = []
        first = {block.backend: block for block in reversed(self.prepared.plan)}
        for block in self.prepared.plan:
            if self.prepared.options.find_capacity:
                cells = block.cells if any(self._wanted(block)) else ()
            else:
                cells = tuple(cell for cell in block.cells if cell.name not in done)
            unasked = block == first[block.backend] and self._unasked(block)
            if cells or unasked:
                blocks.append(replace(block, cells=cells))
        return blocks

    def _provide(self) -> None:
        """Engines and weights before the first measurement: a failed download costs no measured cell."""
        prepared = self.prepared
        for ref, launch, track in zip(prepared.backends, prepared.launches, prepared.tracks, strict=True):
            environment = None
            if launch.mode == "compose":
                provide_image(ref.definition, launch.device, self.ui.stage)
            elif launch.mode == "process" and needs_install(ref.definition):
                environment = install_engine(ref.definition, self.ui.stage)
            if track is not None:
                ensure_weights(prepared.model_name, prepared.model, track, environment, self.ui.stage)

    def _cool_down(self, block: Block) -> None:
        """What the engine before has left behind, heat above all, is not to be the next one's."""
        seconds = self.prepared.scenario.verdict.cool_down_s
        if seconds and not self.prepared.backends[block.backend].definition.backend.simulated:
            self.ui.stage(f"cooling down for {seconds:g} s")
            time.sleep(seconds)

    def _keep_noise(self) -> None:
        content = self.manifest.content
        noise.store(content["host"], content["scenario"]["scenario"]["name"], self.summary["noise"])

    def _block(self, block: Block) -> None:
        """An engine that cannot be started is recorded, and the other backends are still measured.

        A full results disk is no engine's failure, and the only backend's failure is the run's.
        """
        label = self.prepared.labels[block.backend]
        try:
            with open_engine(
                self.prepared.backends[block.backend],
                self.prepared.launches[block.backend],
                self.prepared.model_name,
                self.prepared.model,
                log_path=self.folder.log_path(self._life(block)),
                progress=self.ui.stage,
                api_key_env=self.prepared.options.api_key_env,
                served_name=self.prepared.options.served_name,
                values=self.prepared.engine_values[block.backend],
                gpu_wait_s=self.prepared.options.gpu_wait_s,
            ) as engine:
                self.manifest.engine_started(label, engine.facts)
                self.ui.note(
                    f"{label}: {engine_version(engine.facts) or 'version unknown'} at {engine.base_url}"
                )
                self._cells(block, engine)
                if not self.interrupted and self._unasked(block) and engine.exited() is None:
                    self._agreement(block, engine)
        except StorageError:
            raise
        except SetupError as error:
            if not self.cells and len(self.prepared.plan) == 1:
                raise
            self.manifest.failed(label, block.repeat, str(error))
            text = str(error) if error.where == label else f"{label}: {error}"
            self.manifest.warn("not-measured", text, error.hint or "see the log of its start")
            self.ui.note(f"error: {text}" + (f"\nhint: {error.hint}" if error.hint else ""))

    def _life(self, block: Block) -> str:
        """Name of one life of an engine."""
        lives = [b for b in self.prepared.plan if (b.backend, b.repeat) == (block.backend, block.repeat)]
        point = f"-{block.cells[0].load.label}" if len(lives) > 1 and block.cells else ""
        return f"{self.prepared.labels[block.backend]}{point}-r{block.repeat}"

    def _cells(self, block: Block, engine: EngineSession) -> None:
        if not block.cells:
            return
        workloads = self._workloads(engine)
        if self.prepared.options.probe:
            self._probe(block, engine, workloads)
        for cell in self._wanted(block):
            self.ui.stage(f"{cell.name}: preparing")
            workload = workloads.of(cell)
            if trouble := too_long(workload.asked, engine.facts.get("values")):
                label = self.prepared.labels[block.backend]
                self.manifest.warn("longer-than-context", f"{label}: {trouble[0]}", trouble[1])
            with self.interrupts.window() as stop:
                done = measure(self.prepared, cell, workload, engine, partial(self.ui.load, cell), stop)
            records, facts = done.result.records, done.facts
            self.interrupted = done.result.interrupted
            point = f"{cell.load.label}-r{cell.repeat}"
            facts["workload"]["file"] = self.folder.write_asked(point, workload.asked)
            self.folder.write_cell(cell.name, records, facts, done.telemetry)
            summary = self._keep(records, facts, workload.asked, done.telemetry)
            if len(self.cells) == 1 or cell == block.cells[-1]:  # it compares all cells: not after each
                self.folder.write_json("summary.json", self.summary)
            self.ui.note(cell_line(summary))
            if facts["engine_exited"]:
                self._died(cell, engine, facts)
                return
            if self.interrupted:
                return

    def _wanted(self, block: Block) -> Iterator[Cell]:
        """All of them; in a search those that it asks for and does not have, by what was measured."""
        if not self.prepared.options.find_capacity:
            yield from block.cells
            return
        points = [cell.load for cell in block.cells]
        search = Search([point.value for point in points], reserve=points[0].kind == "rate")
        while (tried := search.next) is not None:
            wanted = block.cells[tried.place]
            if tried.long:
                wanted = long_probe(wanted, self.prepared.repeats)
            if wanted.name not in {cell["cell"] for cell in self.cells}:
                yield wanted
            measured = next(cell for cell in self.cells if cell["cell"] == wanted.name)
            search.told(tried, kept=kept_limits(measured))

    def _probe(self, block: Block, engine: EngineSession, workloads: Workloads) -> None:
        """Once per backend: what of its definition does not hold is known before anything is measured."""
        label = self.prepared.labels[block.backend]
        if label in self.probed:
            return
        self.probed.add(label)
        self.ui.stage(f"{label}: probing")
        requests = list(islice(workloads.of(block.cells[0]).requests, PROBED_REQUESTS))
        probed = examine(
            engine,
            variant=self.prepared.backends[block.backend].variant,
            shapes={made.constraint.shape for made in requests if made.constraint},
            tools=any(made.tools for made in requests),
            thorough=False,
            limit_s=PROBE_LIMIT_S,
        )
        self.folder.write_json(f"probe-{label}.json", probed.as_json())
        self.manifest.probed(
            label,
            {
                "findings": len(probed.findings),
                "not_as_declared": [finding.topic for finding in probed.mismatches],
                "prompt_tokens": probed.prompt_tokens,
            },
        )
        for finding in probed.mismatches:
            text = f"{label}: {finding.topic}: declared {finding.declared}, seen {finding.seen}"
            if finding.matters:
                self.manifest.warn("not-as-declared", text, finding.then)
            self.ui.note(f"{'warning' if finding.matters else 'note'}: {text}")

    def _unasked(self, block: Block) -> bool:
        """Whether this backend has still to answer the agreement questions."""
        label = self.prepared.labels[block.backend]
        return agreement_wanted(self.prepared) and label not in self.folder.read_answers()[1]

    def _agreement(self, block: Block, engine: EngineSession) -> None:
        """After the engine's first cells, so that they are not disturbed."""
        label = self.prepared.labels[block.backend]
        questions = agreement.load_questions()
        definition = self.prepared.backends[block.backend].definition
        try:
            with self.interrupts.window() as stop:
                asked = ask_all(
                    definition, engine, questions, lambda text: self.ui.stage(f"{label}: {text}"), stop
                )
        except SetupError as error:
            self.manifest.warn("agreement-missing", f"{label}: {error}", error.hint or "see its log")
            return
        self.interrupted = asked is None
        if asked is not None:
            self.folder.write_answers(agreement.as_json(questions), label, asked)

    def _died(self, cell: Cell, engine: EngineSession, facts: Mapping[str, Any]) -> None:
        """The cell is kept and INVALID; the engine's other cells of this repeat are missing."""
        text = f"the engine died during {cell.name}: {facts['engine_exited']}"
        label = self.prepared.labels[cell.backend]
        self.manifest.warn("engine-died", f"{label}: {text}", f"its log: {facts['engine_log']}")
        self.ui.note(f"error: {label}: {text}\n{engine.log_tail(15)}\nhint: its log is {facts['engine_log']}")

    def _workloads(self, engine: EngineSession) -> Workloads:
        """Made with the first engine's tokenizer and then kept: every backend gets the same bytes."""
        if self.workloads is None:
            self.ui.stage("making prompts")
            options = self.prepared.options
            self.workloads = Workloads(
                self.prepared.scenario,
                self.prepared.repeats,
                options.seed,
                _token_counter(engine),
                self.prepared.probe,
            )
            if not self.workloads.exact:
                self.manifest.warn(
                    "approximate-lengths",
                    "the server offers no tokenizer: input lengths are approximate, one word a token",
                    "compare per token, by the server's usage",
                )
            sha256, before = self.workloads.sha256(), self.manifest.content["workload_sha256"]
            if before not in (None, sha256):
                raise SpecError(
                    "the prompts made now differ from those of this run: another tokenizer or version",
                    where=str(self.folder.path),
                    hint="start a new run with `bench run`",
                )
            self.manifest.write(workload_sha256=sha256, exact_lengths=self.workloads.exact)
            cards = self.workloads.cards(options.seed)
            self.folder.write_json("workload.json", {"cards": cards})
        elif self.prepared.probe is not None:
            self.workloads.count_with(_token_counter(engine))
        return self.workloads


def _token_counter(engine: EngineSession) -> TokenCounter | None:
    if engine.count_tokens(["probe"]) is None:
        return None

    def count(texts: Sequence[str]) -> Sequence[int]:
        counts = engine.count_tokens(texts)
        if counts is None:
            raise SetupError("the server stopped counting tokens", where=engine.base_url)
        return counts

    return count


def cell_line(cell: dict[str, Any]) -> str:
    """One line per finished cell while a run goes on."""

    def ms(name: str) -> str:
        value = cell[name]["p50"]
        return "n/a" if value is None else f"{value:.1f} ms"

    rate = cell["output_tokens_per_s"]
    speed = "n/a" if rate is None else f"{rate:.1f}"
    counts = cell["requests"]
    return (
        f"{cell['cell']}: {counts['ok']}/{counts['planned']} ok, TTFT p50 {ms('ttft_ms')}, "
        f"TPOT p50 {ms('tpot_ms')}, {speed} tok/s, {cell['validity']['verdict']}"
    )
