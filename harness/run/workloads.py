"""The requests of each load point and repeat, made once and given to every backend alike."""

import hashlib

from harness.plan import Cell, LoadPoint, load_points, seed_for
from harness.prompts.generate import generate
from harness.prompts.request import TokenCounter, Workload
from harness.prompts.text import TextMaker
from harness.spec.scenario import Scenario


class Workloads:
    """Prompts differ by load point and repeat, so that no cell finds its own prompts in a cache."""

    def __init__(self, scenario: Scenario, seed: int, counter: TokenCounter | None) -> None:
        self._scenario = scenario
        self._seed = seed
        self._texts = TextMaker(counter)
        self._made: dict[tuple[LoadPoint, int], Workload] = {}

    @property
    def exact(self) -> bool:
        return self._texts.exact

    def of(self, cell: Cell) -> Workload:
        return self._get(cell.load, cell.repeat)

    def _get(self, point: LoadPoint, repeat: int) -> Workload:
        if (point, repeat) not in self._made:
            load = self._scenario.load
            seed = seed_for(self._seed, "prompts", point.label, repeat)
            count = load.warmup_requests + load.requests
            self._made[point, repeat] = generate(self._scenario.prompts, count, seed, self._texts)
        return self._made[point, repeat]

    def sha256(self) -> str:
        """Of the first repeat at every load point: equal for runs that differ in --repeats only."""
        digest = hashlib.sha256()
        for point in load_points(self._scenario.load):
            digest.update(f"{point.label} {self._get(point, 0).sha256}\n".encode())
        return digest.hexdigest()
