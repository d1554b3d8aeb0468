"""Verdict of the validity rules on a cell, with the reasons."""

from collections.abc import Sequence
from typing import Annotated, Literal

from harness.model.issue import IssueCode
from harness.model.record import Record, doc

Verdict = Literal["VALID", "SUSPECT", "INVALID"]
VERDICTS: tuple[Verdict, ...] = ("VALID", "SUSPECT", "INVALID")  # from best to worst


class Reason(Record, frozen=True):
    """One broken rule: a reason to doubt the figures of a cell."""

    code: Annotated[IssueCode, doc("The rule: docs/validity.md.")]
    verdict: Annotated[Literal["SUSPECT", "INVALID"], doc("What this reason alone makes of the cell.")]
    measured: Annotated[str, doc("With its unit.")]
    limit: Annotated[str, doc("With its unit.")]
    hint: Annotated[str, doc("What to do.")]


class Validity(Record, frozen=True, kw_only=True):
    """Whether the figures of a cell can be the server's: docs/validity.md."""

    verdict: Annotated[Verdict, doc("The worst of the reasons.")]
    reasons: Annotated[tuple[Reason, ...], doc("Every rule that was broken.")]

    @classmethod
    def of(cls, reasons: Sequence[Reason]) -> "Validity":
        worst = max((reason.verdict for reason in reasons), key=VERDICTS.index, default=VERDICTS[0])
        return cls(verdict=worst, reasons=tuple(reasons))
