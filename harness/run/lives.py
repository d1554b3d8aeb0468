"""Starts and stops the engines of a run, records those that fail, and makes the requests to them."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

from harness.engines.session import EngineSession, open_engine
from harness.engines.start.request import EngineRequest
from harness.errors import SetupError, SpecError, StorageError
from harness.host.proxy import way_round
from harness.model import WorkloadCards
from harness.model.ending import LATER_LOADS, Ending
from harness.model.numbers import counted, duration
from harness.plan import Block, Cell, highest_load, warmup_requests
from harness.run.keep.stored import Stored
from harness.run.measure.cell_facts import engine_version
from harness.run.measure.workloads import Workloads, make_workloads, token_counter
from harness.run.setup import noise
from harness.run.setup.provision import provide
from harness.run.setup.working_sets import kv_tokens
from harness.validity import notices

T = TypeVar("T")
_STARTS = 2  # that may fail one after the other: a cause such as memory that is not free yet passes by itself


@dataclass
class Lives(Stored):
    """A run whose engines are started and stopped."""

    workloads: Workloads | None = None
    announced: set[str] = field(default_factory=set)  # labels whose known facts were shown
    refused: dict[str, SetupError] = field(default_factory=dict)  # by label: requests that no start will help
    up: list[EngineSession] = field(default_factory=list)
    repeats: dict[int, int] = field(default_factory=dict)  # by backend, of the cell measured last
    failed_starts: Counter[str] = field(default_factory=Counter)  # by label: those in a row
    provided_s: float | None = None  # time.monotonic() after `provide`; None: before it

    def provide(self) -> None:
        """Installs engines and fetches weights; the estimate of the time left begins after that."""
        provide(self.prepared, self.ui.stage)
        self.provided_s = time.monotonic()

    @contextmanager
    def recorded(self, block: Block, engine: EngineSession | None = None) -> Iterator[None]:
        """Records an engine's failure, so that the other backends are still measured.

        A full disk raises, since no engine is at fault, and so does the failure of the only backend. The end
        of an `engine` that was up is its failure.
        """
        label = self.prepared.of(block).label
        try:
            with engine.end_as_error(label) if engine else nullcontext():
                yield
        except StorageError:
            raise
        except SetupError as error:
            if not self.cells and len(self.prepared.plan) == 1:
                raise
            self.manifest.failed(label, block.life, str(error))
            text = str(error) if error.where == label else f"{label}: {error}"
            self.manifest.warn(notices.NOT_MEASURED.warning(text, error.hint or None, label))
            self.ui.note(f"error: {text}" + (f"\nhint: {error.hint}" if error.hint else ""))

    def opened(self, block: Block, stack: ExitStack) -> EngineSession:
        backend = self.prepared.of(block)
        label = backend.label
        if error := self.refused.get(label):
            raise error
        if self.failed_starts[label] >= _STARTS:
            what = f"not started again, because {_STARTS} starts in a row failed"
            hint = "mend the cause that they gave; `bench resume` starts it again"
            if backend.launch.mode == "attach":
                what = f"not asked again, because it could not be used {_STARTS} times in a row"
                hint = "mend the cause that was given; `bench resume` asks it again"
            raise SetupError(what, where=label, hint=hint)
        self.failed_starts[label] += 1
        engine = stack.enter_context(open_engine(self._request(block), self.ui.stage))
        self.up.append(engine)
        stack.callback(self.up.remove, engine)
        self.failed_starts[label] = 0
        if engine.away_s:
            self._came_back(label, f"repeat {block.repeat + 1}", engine.away_s)
        host, version = self.manifest.document.host, engine_version(engine.facts)
        key = noise.key(host, self.prepared, backend, version)
        self.manifest.engine_started(label, engine.facts, key)
        at = f"at {' and '.join(engine.urls)}"
        self.ui.note(f"{label}: {version} {at}" if version else f"{label}: {at}, which names no version")
        self._show_known(label, engine)
        return engine

    def make_ready(self, cell: Cell, engine: EngineSession) -> None:
        """Waits for a running server that starts again, resets caches where a repeat begins, and reads what
        the server reports of itself then. Raises SetupError if it stays away.
        """
        self._wait(cell, engine)
        self._between_repeats(cell, engine)
        engine.look_again()

    def persist(self, cell: Cell, engine: EngineSession, act: Callable[[], T]) -> T:
        """What `act` returns. A running server that fails it may have gone down a moment ago: that is waited
        for, and `act` is called once more.
        """
        try:
            return act()
        except StorageError:
            raise
        except SetupError:
            if engine.started_here:
                raise
        self._wait(cell, engine)
        return act()

    def _wait(self, cell: Cell, engine: EngineSession) -> None:
        if ended := self.awaited(self.prepared.of(cell).label, cell.name, engine):
            raise SetupError(ended.why, where=engine.base_url)

    def awaited(self, label: str, before: str, engine: EngineSession) -> Ending | None:
        """Waits for a running server that does not serve `before` something, and returns how that ended if it
        stays away. A wait in vain counts as a failed start: a later life asks once.
        """
        if known := engine.liveness.look():
            return known
        began_s, timeout_s = time.monotonic(), self.prepared.scenario.request.timeout_s
        found = engine.liveness.before_load(timeout_s, lambda text: self.ui.stage(f"{label}: {text}"))
        if found and found.kind in LATER_LOADS:
            self._came_back(label, before, time.monotonic() - began_s)
            return None
        self.failed_starts[label] += found is not None
        return found

    def _between_repeats(self, cell: Cell, engine: EngineSession) -> None:
        """Resets the prefix cache before the first cell of a later repeat, where asked for, or warns."""
        is_later = cell.repeat and self.repeats.get(cell.backend) != cell.repeat
        if is_later and self.prepared.of(cell).between == "reset":
            reset = engine.reset_prefix_cache()
            if not reset.done:
                label = self.prepared.of(cell).label
                text = f"{label}: not reset before repeat {cell.repeat + 1}: {reset.how}"
                self.manifest.warn(notices.NOT_RESET.warning(text, backend=label))
        self.repeats[cell.backend] = cell.repeat

    def _came_back(self, label: str, before: str, away_s: float) -> None:
        text = f"{label} did not serve before {before}, and did after {duration(away_s)}"
        self.ui.note(f"warning: {text}")
        text += ": its repeats may be of more than one start"
        self.manifest.warn(notices.ANOTHER_START.warning(text, backend=label))

    def _request(self, block: Block) -> EngineRequest:
        prepared, backend = self.prepared, self.prepared.of(block)
        before = self.manifest.document.backends[backend.label].engine or {}
        return EngineRequest(
            backend.ref,
            backend.launch,
            prepared.model_name,
            prepared.model,
            log_path=self.folder.log_path(self._life(block)),
            values=backend.engine_values,
            gpu_wait_s=prepared.options.gpu_wait_s,
            gpus=prepared.gpus_of(block),
            cores=prepared.cores_of(block),
            answer_s=prepared.scenario.request.timeout_s,
            served_before=backend.label in self.announced and self.failed_starts[backend.label] == 1,
            named_before=before.get("served_name") or "",
        )

    def _show_known(self, label: str, engine: EngineSession) -> None:
        """Warns of proxies, fronts, libraries and hosted services, and shows once what is known of a server.

        Bench configures the engines that it starts; an attached one may run with its defaults.
        """
        header, launch = engine.definition.backend, engine.facts["launch"]["mode"]
        if round_it := next(filter(None, map(way_round, engine.urls)), ""):
            text = f"{label}: requests go through a proxy, whose time is in every figure"
            self.manifest.warn(notices.PROXIED.warning(text, round_it, label))
        if header.kind != "engine":
            notice = notices.OF_KIND[header.kind]
            self.manifest.warn(notice.warning(f"{label}: {engine.facts['known'][0]}", backend=label))
        if launch == "attach" and label not in self.announced:
            self.announced.add(label)
            for line in engine.facts["known"]:
                self.ui.detail(f"note: {label}: {line}")

    def _life(self, block: Block) -> str:
        """Name of one life of an engine, for its log."""
        if block.start is not None:
            return f"{self.prepared.of(block).label}-r{block.start}"
        lives = [b for b in self.prepared.plan if (b.backend, b.repeat) == (block.backend, block.repeat)]
        point = f"-{block.cells[0].load.label}" if len(lives) > 1 and block.cells else ""
        return f"{self.prepared.of(block).label}{point}-r{block.repeat}"

    def count_as_begun(self, lives: Sequence[Block]) -> None:
        """Makes the requests of a resumed run with the tokenizer that it began with, if that is of a backend
        that is not up first in these lives. It is started for that alone, or attached to.
        """
        begun = self.manifest.document
        block = next((block for block in lives if block.cells), lives[0])
        label, first = begun.counted_by, self.prepared.of(block).label
        if self.workloads is not None or not begun.exact_lengths or label in (None, first):
            return
        block = next(block for block in self.prepared.plan if self.prepared.of(block).label == label)
        self.ui.note(f"{label} counts the tokens of the prompts, as it did when this run began")
        try:
            with ExitStack() as stack:
                self.workloads_of(block, self.opened(block, stack))
        except StorageError:
            raise
        except SetupError as error:  # another backend may have the same tokenizer
            self.ui.note(f"warning: {label} cannot count them: {error}")

    def workloads_of(self, part: Block | Cell, engine: EngineSession) -> Workloads:
        """The requests, made once with the first engine's tokenizer: every backend gets the same bytes.

        `part`: of the engine that is up. Raises SpecError if a resumed run would get other requests than it
        began with.
        """
        label = self.prepared.of(part).label
        if self.workloads is None:
            self._size_working_sets(engine)
            self.ui.stage("making prompts")
            begun = self.manifest.document
            # Words counted for tokens when it began: a tokenizer would make other prompts.
            counter = None if begun.exact_lengths is False else token_counter(engine)
            self.workloads = make_workloads(self.prepared, counter)
            if not self.workloads.exact and self.prepared.model.gives != "transcripts":
                self.manifest.warn(
                    notices.APPROXIMATE_LENGTHS.warning(
                        "the server offers no tokenizer: input lengths are approximate, one word a token"
                    )
                )
            sha256, before = self.workloads.sha256(), begun.workload_sha256
            if before not in (None, sha256):
                raise self._differs(begun.counted_by, label)
            self.manifest.write(
                workload_sha256=sha256,
                exact_lengths=self.workloads.exact,
                counted_by=begun.counted_by or label,
            )
            cards = self.workloads.cards(self.prepared.options.seed)
            self.folder.write_cards(WorkloadCards(cards=cards))
        elif self.prepared.probe_sizes is not None and not self.workloads.count_with(token_counter(engine)):
            text = f"{label}: no tokenizer: prompts are about as long as others at loads that it tries first"
            self.manifest.warn(notices.APPROXIMATE_LENGTHS.warning(text, backend=label))
        return self.workloads

    def _differs(self, counted_by: str | None, label: str) -> SpecError:
        """The error for prompts that are not those of the run so far, which `counted_by` counted."""
        why = "another tokenizer or version"
        if counted_by is None:
            why = f"they are counted by {label} now, and it is not known by which backend then"
        elif counted_by != label:
            why = f"they are counted by {label} now, and were by {counted_by}"
        return SpecError(
            f"the prompts made now differ from those of this run: {why}",
            where=str(self.folder.path),
            hint="start a new run with `bench run`",
        )

    def _size_working_sets(self, engine: EngineSession) -> None:
        tokens = kv_tokens(self.prepared.scenario.load, self.manifest.document.kv_tokens, engine)
        if tokens is None:
            return
        self.manifest.write(kv_tokens=tokens)
        scenario = self.prepared.scenario
        sized = replace(scenario, load=replace(scenario.load, kv_tokens=tokens))
        most = warmup_requests(sized, highest_load(sized.load))
        self.ui.note(
            f"working sets are multiples of a KV cache of {tokens:,} tokens: the largest has "
            f"{counted(most, 'request')} of warm-up"
        )
        self.prepared = replace(self.prepared, scenario=sized)
