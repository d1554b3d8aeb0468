"""Which load to try next when the highest one that keeps the limits is looked for."""

from dataclasses import dataclass, field

FIRST_STEP = 3  # of the grid: a doubling


@dataclass
class Search:
    """On a grid of `size` ascending loads: up in doublings until one fails, then halving what lies between.

    What failed once is taken to fail above as well; several searches show how far that holds.
    """

    size: int
    start: int = 0
    kept: int = -1  # highest that kept the limits
    failed: int = field(default=-1)  # lowest above it that did not

    def __post_init__(self) -> None:
        if self.failed < 0:
            self.failed = self.size

    def told(self, index: int, kept: bool) -> None:
        if kept:
            self.kept = max(self.kept, index)
        else:
            self.failed = min(self.failed, index)

    @property
    def next(self) -> int | None:
        """None when the two are neighbours."""
        untried = self.kept < 0 and self.failed == self.size
        if untried:
            return self.start
        if self.failed - self.kept <= 1:
            return None
        if self.failed == self.size:
            return min(self.kept + FIRST_STEP, self.size - 1)
        if self.kept < 0:
            return max(self.failed - FIRST_STEP, 0)
        return (self.kept + self.failed) // 2
