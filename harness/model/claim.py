"""Verdicts of a run on published claims."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from harness.model.load import LoadPoint
from harness.model.record import Record, doc

ClaimWord = Literal["reproduced", "contradicted", "not decidable here"]


class ClaimFinding(Record, frozen=True, kw_only=True):
    """The finding on a claim at one load point, about one pair or one system."""

    about: Annotated[str, doc("Label, or two of them.")]
    load: Annotated[LoadPoint, doc("The load point.")]
    stated: Annotated[
        tuple[float, float | None], doc("Lowest and highest that the claim allows; null: no limit.")
    ]
    measured: Annotated[
        tuple[float, float, float] | None, doc("Interval, low, estimate, high; null: there is none.")
    ]
    verdict: Annotated[ClaimWord, doc("Here.")]
    why: Annotated[str, doc("For people.")]


class ClaimResult(Record, frozen=True, kw_only=True):
    """One published claim that the run is about."""

    id: Annotated[str, doc("In `bench claims`.")]
    says: Annotated[str, doc("The claim, in one sentence.")]
    source: Annotated[str, doc("Title of where it was published.")]
    url: Annotated[str, doc("Of the source.")]
    kind: Annotated[str, doc("ratio, order, value or scaling.")]
    measure: Annotated[str, doc("Metric, by its dotted path in a cell.")]
    verdict: Annotated[ClaimWord, doc("Of all that was found.")]
    why: Annotated[str, doc("For people.")]
    found: Annotated[tuple[ClaimFinding, ...], doc("By load point, and pair or system.")]
    stated_under: Annotated[str, doc("Conditions of the claim, as far as they were stated.")]
    differs: Annotated[tuple[str, ...], doc("Conditions here that were not stated, or are others.")]
    unstated: Annotated[
        dict[str, tuple[str, ...]], doc("Of `differs`, what was not stated, with what it is here.")
    ] = msgspec.field(default_factory=dict)
    conflicts: Annotated[tuple[str, ...], doc("What other sources say against it.")]

    @property
    def others(self) -> list[str]:
        """Entries of `differs` without those that only say that a condition was not stated."""
        open_ones = {unstated_words(*entry) for entry in self.unstated.items()}
        return [text for text in self.differs if text not in open_ones]


def unstated_words(what: str, here: Sequence[str]) -> str:
    """The entry for a condition that a claim leaves open: `versions not stated; here vllm 0.32`."""
    return f"{what} not stated; here {', '.join(here)}"
