"""The requests of each load point and repeat, made once and given to every backend alike."""

import hashlib
from typing import Any

from harness.metrics.card import describe
from harness.plan import Cell, LoadPoint, load_points, seed_for, start_of, warmup_requests
from harness.prompts.generate import generate
from harness.prompts.request import TokenCounter
from harness.prompts.text import TextMaker
from harness.prompts.workload import Workload
from harness.run.job import send_times
from harness.spec.scenario import Scenario


def card_of(scenario: Scenario, seed: int, point: LoadPoint, made: Workload) -> dict[str, Any]:
    """Of one load point's requests, as they were drawn for the first repeat."""
    load = scenario.load
    times = None if point.kind == "concurrency" else send_times(load, seed, point, 0, made.asked)
    place = {
        "kind": point.kind,
        "value": point.value,
        "process": load.arrival if point.kind == "rate" else None,
        "start": start_of(scenario, point),
    }
    return {
        "load": place,
        "sha256": made.sha256,
        "exact_lengths": made.exact,
        "alike_chars": made.alike_chars,
        **describe(made.asked, warmup_requests(scenario, point), times),
    }


class Workloads:
    """Prompts differ by load point and repeat, so that no cell finds its own prompts in a cache.

    All are made at once: the tokenizer they are counted with is a running engine's, and stops with it.
    """

    def __init__(self, scenario: Scenario, repeats: int, seed: int, counter: TokenCounter | None) -> None:
        texts = TextMaker(counter)
        self.exact = texts.exact
        self._scenario, self._points = scenario, load_points(scenario.load)
        counts = {point: scenario.load.requests + warmup_requests(scenario, point) for point in self._points}
        self._made: dict[tuple[LoadPoint, int], Workload] = {
            (point, repeat): generate(
                scenario.prompts, counts[point], seed_for(seed, "prompts", point.label, repeat), texts
            )
            for repeat in range(repeats)
            for point in self._points
        }

    def of(self, cell: Cell) -> Workload:
        return self._made[cell.load, cell.repeat]

    def cards(self, seed: int) -> dict[str, dict[str, Any]]:
        """Of the first repeat, by load point: what its requests are."""
        return {
            point.label: card_of(self._scenario, seed, point, self._made[point, 0]) for point in self._points
        }

    def sha256(self) -> str:
        """Of the first repeat at every load point: equal for runs that differ in --repeats only."""
        digest = hashlib.sha256()
        for point in self._points:
            digest.update(f"{point.label} {self._made[point, 0].sha256}\n".encode())
        return digest.hexdigest()
