"""Verdicts of a run on published claims."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from harness.model.load import LoadPoint
from harness.model.record import Record, doc

ClaimVerdict = Literal["reproduced", "contradicted", "not decidable here"]


class ClaimFinding(Record, frozen=True, kw_only=True):
    """The finding on a claim at one load point, about one pair or one system."""

    about: Annotated[str, doc("Label of the system, or both labels of the pair.")]
    load: Annotated[LoadPoint, doc("Load point of the finding.")]
    stated: Annotated[
        tuple[float, float | None], doc("Lowest and highest value that fits the claim; null: no upper limit.")
    ]
    measured: Annotated[
        tuple[float, float, float] | None,
        doc("Measured value: low, estimate, high of its interval; null: no interval."),
    ]
    verdict: Annotated[ClaimVerdict, doc("Verdict on the claim at this load point.")]
    why: Annotated[str, doc("Reason for the verdict, in words.")]


class ClaimResult(Record, frozen=True, kw_only=True):
    """One published claim that the run is about."""

    id: Annotated[str, doc("Id of the claim in `bench claims`.")]
    says: Annotated[str, doc("Claim in one sentence.")]
    source: Annotated[str, doc("Title of the publication.")]
    url: Annotated[str, doc("URL of the publication.")]
    kind: Annotated[str, doc("Kind of claim: ratio, order, value or scaling.")]
    measure: Annotated[str, doc("Metric of the claim, by its dotted path in a cell.")]
    verdict: Annotated[ClaimVerdict, doc("Verdict on the claim over all findings.")]
    why: Annotated[str, doc("Reason for the verdict, in words.")]
    found: Annotated[tuple[ClaimFinding, ...], doc("Findings by load point, and pair or system.")]
    stated_under: Annotated[str, doc("Conditions of the claim, as far as they were stated.")]
    differs: Annotated[tuple[str, ...], doc("Conditions here that were not stated, or are others.")]
    unstated: Annotated[
        dict[str, tuple[str, ...]],
        doc("Conditions in `differs` that were not stated, with what they are here."),
    ] = msgspec.field(default_factory=dict)
    conflicts: Annotated[tuple[str, ...], doc("Statements of other sources against the claim.")]

    @property
    def others(self) -> list[str]:
        """Entries of `differs` without those that only say that a condition was not stated."""
        open_ones = {unstated_words(*entry) for entry in self.unstated.items()}
        return [text for text in self.differs if text not in open_ones]


def unstated_words(what: str, here: Sequence[str]) -> str:
    """The entry for a condition that a claim leaves open: `versions not stated; here vllm 0.32`."""
    return f"{what} not stated; here {', '.join(here)}"
