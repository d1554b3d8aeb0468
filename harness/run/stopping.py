"""Decides when a run with looks ends: when all verdicts are decided, at the last repeat, or by the budget."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import mean

from msgspec import structs

from harness.model import LoadPoint
from harness.model.numbers import counted, duration
from harness.plan import Block, Cell, together
from harness.run.keep.manifest import ManifestWriter
from harness.run.setup.options import Ui
from harness.run.setup.prepare import Prepared
from harness.verdicts.sequential import LookResult

Needed = Set[tuple[str, LoadPoint]]  # labels and the load points at which more runs are needed


def step(
    plan: Sequence[Block], labels: Sequence[str], repeats: Collection[int], needed: Needed | None
) -> tuple[Block, ...]:
    """Blocks of these repeats in plan order, with the cells that are needed; None: with all their cells."""
    chosen = []
    for block in plan:
        if block.repeat not in repeats:
            continue
        cells = tuple(
            cell for cell in block.cells if needed is None or (labels[block.backend], cell.load) in needed
        )
        if cells:
            chosen.append(replace(block, cells=cells))
    return tuple(chosen)


def _backends(lives: Sequence[Block]) -> frozenset[int]:
    return frozenset(block.backend for block in lives)


@dataclass
class Costs:
    """Seconds that lives and cells took, to estimate what more of the same will take."""

    # By the backends of a life: its time without its cells, which is mostly starts and stops.
    starts: dict[frozenset[int], list[float]] = field(default_factory=dict)
    cells: dict[tuple[int, LoadPoint], list[float]] = field(default_factory=dict)

    def add(self, lives: Sequence[Block], seconds: float, cells: Mapping[Cell, float]) -> None:
        overhead_s = max(seconds - sum(cells.values()), 0.0)
        self.starts.setdefault(_backends(lives), []).append(overhead_s)
        for cell, took_s in cells.items():
            self.cells.setdefault((cell.backend, cell.load), []).append(took_s)

    def of(self, blocks: Sequence[Block], pause_s: float) -> float | None:
        """Expected seconds of these blocks; None if the like of a part was never measured."""
        lives = list(together(blocks))
        parts = [self.starts.get(_backends(life)) for life in lives]
        parts += [self.cells.get((cell.backend, cell.load)) for block in blocks for cell in block.cells]
        known = [mean(took_s) for took_s in parts if took_s]
        return sum(known) + pause_s * len(lives) if len(known) == len(parts) else None


class Stopping:
    """Walks a plan in steps from look to look. Whoever measures calls `count` after each life.

    `ui`: None of a walk that a person has seen, or will see.
    """

    def __init__(self, prepared: Prepared, manifest: ManifestWriter, ui: Ui | None = None) -> None:
        self._prepared, self._manifest, self._ui = prepared, manifest, ui
        looks = manifest.document.stopping
        spent_s = looks.spent_s if looks else 0.0
        self._began_s = time.monotonic() - spent_s
        self.costs = Costs()
        self.progress = ""  # words of the last look
        together = prepared.together
        self._most_blocks = self._blocks = together.blocks if together else 1  # of a start

    def steps(
        self, remaining: Callable[[Sequence[Block]], Sequence[Block]], look: Callable[[], LookResult]
    ) -> Iterator[Sequence[Block]]:
        """Yields the blocks of each step, until the rule stops.

        `remaining` filters blocks that are still to be measured, and `look` takes a look. The first step is
        one repeat, or start: its cost says whether the budget has room for as many as a verdict needs.
        """
        looks = self._prepared.looks
        begun: tuple[int, ...] = ()  # blocks of each start
        begin, needed = 0, None
        for end in (self._most_blocks, *looks):
            blocks = remaining(self._step(begin, end, needed))
            if begin and blocks and not self._affordable(blocks):
                self._stop("budget")
                return
            if self._most_blocks > 1:
                begun = (*begun, *[self._blocks] * ((end - begin) // self._most_blocks))
                self._write(blocks=begun)
            yield blocks
            begin = end
            self._write(repeats=end if end in looks else 0)
            if end in looks:
                result = look()
                needed = result.needed
                self._blocks = min(result.blocks or self._most_blocks, self._most_blocks)
                self._show_progress(result, end)
                if not needed:
                    self._stop(
                        "unlikely" if result.unlikely else "no-figure" if result.hopeless else "decided"
                    )
                    return
        self._stop("max-repeats")

    def count(self, lives: Sequence[Block], seconds: float, cells: Mapping[Cell, float]) -> None:
        """Keeps what these lives cost, also of the budget: a resumed run does not get that time again."""
        if cells:
            self.costs.add(lives, seconds, cells)
        self._write()

    def _step(self, begin: int, end: int, needed: Needed | None) -> tuple[Block, ...]:
        repeats = [repeat for repeat in range(begin, end) if repeat % self._most_blocks < self._blocks]
        return step(self._prepared.plan, self._prepared.labels, repeats, needed)

    def _affordable(self, blocks: Sequence[Block]) -> bool:
        budget_s = self._prepared.options.budget_s
        if budget_s is None:
            return True
        cost_s = self._cost(blocks)
        return self._spent_s + (cost_s or 0.0) <= budget_s

    def _cost(self, blocks: Sequence[Block]) -> float | None:
        return self.costs.of(blocks, self._prepared.scenario.verdict.cool_down_s)

    @property
    def _spent_s(self) -> float:
        return time.monotonic() - self._began_s

    def _show_progress(self, result: LookResult, repeats: int) -> None:
        left_s = self._cost(self._step(repeats, self._prepared.looks[-1], result.needed))
        budget_s = self._prepared.options.budget_s
        if left_s is not None and budget_s is not None:
            left_s = min(left_s, max(budget_s - self._spent_s, 0.0))
        left = f", about {duration(left_s)} left at most" if left_s else ""
        blocks = counted(self._blocks, "block")
        fewer = f", {blocks} a start from now on" if self._blocks < self._most_blocks else ""
        self.progress = f"{result.words}{fewer}{left}"
        together = self._prepared.together
        after = together.counted(repeats) if together else counted(repeats, "repeat")
        if self._ui is not None:
            self._ui.note(f"after {after}: {self.progress}")

    def _stop(self, reason: str) -> None:
        self._write(reason=reason)

    def _write(self, **changes: object) -> None:
        before = self._manifest.document.stopping
        if before is not None:
            spent_s = round(self._spent_s, 3)
            self._manifest.write(stopping=structs.replace(before, spent_s=spent_s, **changes))
