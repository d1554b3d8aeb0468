"""Requests of each load point and repeat, made once and sent to every backend alike."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from harness.agreement import LOOKS, load_questions
from harness.engines.session import EngineSession
from harness.errors import SetupError
from harness.metrics.card import describe
from harness.metrics.classes import classes_of
from harness.model import CardLoad, LoadPoint, WorkloadCard
from harness.plan import (
    Cell,
    ProbeSizes,
    all_requests,
    highest_load,
    load_points,
    prompts_at,
    seed_for,
    slots_of,
    start_of,
    warmup_requests,
)
from harness.records.request_table import RequestTable
from harness.run.measure.image_shelf import ImageShelf
from harness.run.measure.job import send_times
from harness.run.setup.prepare import Prepared
from harness.run.setup.warm_cache import check_warm
from harness.spec.scenario import Load, Scenario
from harness.spec.scenario.synthetic import Mix
from harness.spec.scenario.verdict import check_classes
from harness.workload.prompts.content import content_of
from harness.workload.prompts.generate import Decorator, as_they_are, generate
from harness.workload.prompts.lora import assigned
from harness.workload.prompts.request import TokenCounter
from harness.workload.prompts.text import TextMaker
from harness.workload.prompts.workload import Workload


def _check_drawn(scenario: Scenario, tables: Iterable[RequestTable]) -> None:
    """Raises SpecError where a metric is of a class that has no figures among these requests.

    Chance may leave out a rare class of a mix, whose classes are known: of these the primary metric alone.
    """
    drawn = {name for table in tables for name in classes_of(table)}
    if isinstance(scenario.prompts, Mix):
        hint = "more --requests, so that some of every class are drawn"
        check_classes(replace(scenario.verdict, metrics=()), drawn, "verdict", hint)
    else:
        check_classes(scenario.verdict, drawn, "verdict")


def card_of(scenario: Scenario, seed: int, point: LoadPoint, workload: Workload) -> WorkloadCard:
    """Describes the requests of one load point, as they are drawn for the first repeat."""
    load = scenario.load
    warmup = warmup_requests(scenario, point)
    times = None
    if slots_of(load, point) is None:
        times = send_times(scenario, seed, point, 0, workload.requested)
    card_load = CardLoad(
        kind=point.kind,
        value=point.value,
        process=load.arrival if point.kind == "rate" else None,
        start=start_of(scenario, point),
    )
    return WorkloadCard(
        **structs.asdict(describe(workload.requested, warmup, times)),
        load=card_load,
        sha256=workload.sha256,
        exact_lengths=workload.exact,
        alike_chars=workload.alike_chars,
        content=content_of(scenario),
    )


# One of this many requests is of the load; the others are questions.
EVERY = 3
FILL = 64  # requests of an open loop before the first question; of a closed one a request for each slot


class Workloads:
    """Requests of a run, different for each load point and repeat: no cell finds its prompts in a cache.

    All are made at once, because the tokenizer that counts them belongs to a running engine and stops with
    it. In a capacity search (`sizes`) they are made when a load is first tried, since few of its loads are.
    """

    def __init__(
        self,
        scenario: Scenario,
        repeats: int,
        seed: int,
        counter: TokenCounter | None,
        sizes: ProbeSizes | None = None,
        between: int = 0,
    ) -> None:
        """`between`: how many more requests of the highest load to make, to put questions between."""
        self._scenario, self._seed = scenario, seed
        self._decorate = decorator_of(scenario)
        self._texts = TextMaker(counter, scenario.text)
        self.exact = self._texts.exact
        self._made: dict[tuple[LoadPoint, int], Workload] = {}
        self.fitting: int | None = None  # prompts of a file, where a load asked for more of them
        points = load_points(scenario.load)
        self._points = points if sizes is None else points[:1]
        for repeat in range(repeats if sizes is None else 1):
            for point in self._points:
                self.of(Cell("", 0, point, repeat, sizes.short(point) if sizes else None))
        _check_drawn(scenario, (workload.requested for workload in self._made.values()))
        highest = highest_load(scenario.load)
        of_highest = seed_for(seed, "accuracy", highest.label, 0)
        prompts = prompts_at(scenario, highest)
        self.between = (
            generate(prompts, between, of_highest, self._texts, self._decorate) if between else None
        )

    def count_with(self, counter: TokenCounter | None) -> bool:
        """Counts tokens with `counter` from now on; False where the tokenizer before it is only remembered.

        Loads that are tried later have prompts as long as those before them: words count for tokens if they
        did at first, and without a tokenizer each word counts what the one before it counted.
        """
        if not self.exact:
            return True
        self._texts = TextMaker(counter, self._scenario.text) if counter else self._texts.remembered()
        return counter is not None

    def of(self, cell: Cell) -> Workload:
        key = cell.load, cell.repeat
        if key not in self._made:
            asked = all_requests(self._scenario, cell.load, cell.probe)
            self._made[key] = generate(
                prompts_at(self._scenario, cell.load),
                asked,
                seed_for(self._seed, "prompts", cell.load.label, cell.repeat),
                self._texts,
                self._decorate,
                warmup=warmup_requests(self._scenario, cell.load),
                each_first=cell.load.kind == "working-set",
            )
            check_warm(self._scenario, self._made[key].requested)
            if len(self._made[key]) < asked:
                self.fitting = len(self._made[key])
        return self._made[key]

    def cards(self, seed: int) -> dict[str, WorkloadCard]:
        """Descriptions of the first repeat by load point; in a search, only of its lowest load."""
        return {
            point.label: card_of(self._scenario, seed, point, self._made[point, 0]) for point in self._points
        }

    def sha256(self) -> str:
        """Hash of the first repeat at every load point; in a search, only at its lowest load.

        Runs that differ only in --repeats have the same hash.
        """
        digest = hashlib.sha256()
        for point in self._points:
            digest.update(f"{point.label} {self._made[point, 0].sha256}\n".encode())
        return digest.hexdigest()


def decorator_of(scenario: Scenario) -> Decorator:
    """The function that gives each request its adapter or its images, as the scenario says."""
    if scenario.images.counts:
        return ImageShelf(scenario.images).decorate
    return partial(assigned, scenario.lora) if scenario.lora.adapters else as_they_are


def make_workloads(prepared: Prepared, counter: TokenCounter | None) -> Workloads:
    """Makes the workloads, counted by a running engine's tokenizer; None: in words."""
    return Workloads(
        prepared.scenario,
        prepared.repeats,
        prepared.options.seed,
        counter,
        prepared.probe_sizes,
        between_questions(prepared),
    )


def filling(load: Load, point: LoadPoint) -> int:
    """Number of requests before the first question: enough that the load is at its level."""
    slots = slots_of(load, point)
    return FILL if slots is None else slots


def between_questions(prepared: Prepared) -> int:
    """Number of requests of the load that the questions of an accuracy need; 0 without one."""
    if not prepared.options.accuracy:
        return 0
    load = prepared.scenario.load
    questions = prepared.options.accuracy + len(load_questions())
    return len(LOOKS) * filling(load, highest_load(load)) + questions // (EVERY - 1) + len(LOOKS)


def token_counter(engine: EngineSession) -> TokenCounter | None:
    if engine.count_tokens(["probe"]) is None:
        return None

    def count(texts: Sequence[str]) -> Sequence[int]:
        counts = engine.count_tokens(texts)
        if counts is None:
            raise SetupError("the server stopped counting tokens", where=engine.base_url)
        return counts

    return count
