"""[lora]: adapters that the model is served with, and which request names which."""

from dataclasses import dataclass
from typing import Literal

from harness.errors import SpecError
from harness.spec.scenario.limits import CountOrZero, NotNegative


@dataclass(frozen=True, slots=True)
class LoraMix:
    """Adapters drawn from a seed. With `base`, the base model takes part as one more, the first."""

    adapters: CountOrZero = 0  # how many; 0: none, and no request names one
    assignment: Literal["round-robin", "zipf", "weighted"] = "round-robin"  # which request names which
    zipf_exponent: NotNegative = 1.0  # of zipf: the base model is asked most, then adapter-1
    weights: tuple[float, ...] = ()  # of weighted: shares of the base model, then of each adapter
    base: bool = True  # the base model takes part

    @property
    def names(self) -> tuple[str, ...]:
        """Names that requests may use; "": the base model."""
        return (*([""] if self.base else []), *adapter_names(self.adapters))

    def check(self, where: str) -> None:
        if (self.assignment == "weighted") != bool(self.weights):
            raise SpecError('goes with assignment = "weighted"', where=f"{where}.weights")
        if self.weights and (len(self.weights) != len(self.names) or not min(self.weights) > 0):
            raise SpecError(
                f"must be {len(self.names)} numbers above 0, not {list(self.weights)}",
                where=f"{where}.weights",
                hint="one of the base model, where it takes part, and one of each adapter",
            )


def adapter_names(count: int) -> tuple[str, ...]:
    return tuple(f"adapter-{number + 1}" for number in range(count))
