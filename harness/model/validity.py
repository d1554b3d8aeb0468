"""Verdict of the validity rules on a cell, with the reasons."""

from collections.abc import Sequence
from typing import Annotated, Literal

from harness.model.change import FLAGS, Flags
from harness.model.issue import IssueCode
from harness.model.record import UNSET, Record, UnsetType, doc

Verdict = Literal["VALID", "SUSPECT", "INVALID"]
Doubt = Literal["SUSPECT", "INVALID"]
# engine: the run failed, which counts against the engine. client and machine: nothing about the engine, so
# an INVALID cell is measured again. either: other clients of the engine or its own counts; also measured
# again. work: of what was asked, or a habit of the server; measuring again is no better.
Cause = Literal["engine", "client", "machine", "either", "work"]
VERDICTS: tuple[Verdict, ...] = ("VALID", "SUSPECT", "INVALID")  # from best to worst


class Reason(Record, frozen=True):
    """One broken rule: a reason to doubt the figures of a cell."""

    code: Annotated[IssueCode, doc("Rule that was broken: docs/validity.md.")]
    verdict: Annotated[Doubt, doc("Verdict that this reason alone gives the cell.")]
    measured: Annotated[str, doc("Measured value, with its unit.")]
    limit: Annotated[str, doc("Limit of the rule, with its unit.")]
    hint: Annotated[str, doc("Advice on what to do.")]
    metrics: Annotated[tuple[str, ...], doc("Metrics that it makes doubtful; empty: all.")] = ()
    failure: Annotated[
        str | UnsetType,
        doc("Most frequent status or outcome of failed requests, such as HTTP 401; not written: not known."),
    ] = UNSET
    requests_needed: Annotated[
        int | UnsetType,
        doc("Requests that the advice would need, measured or for warm-up; not written: not known, or none."),
    ] = UNSET
    change: Annotated[Flags | UnsetType, doc(FLAGS)] = UNSET
    cause: Annotated[
        Cause | UnsetType,
        doc("Cause of this reason, where it is not that of its rule; not written: the rule's."),
    ] = UNSET

    def doubts(self, path: str) -> bool:
        """Whether it makes the value at a dotted path in a cell doubtful, such as `ttft_ms.p50`."""
        return not self.metrics or not set(self.metrics).isdisjoint(path.split("."))


class Validity(Record, frozen=True, kw_only=True):
    """Whether the figures of a cell can be the server's: docs/validity.md."""

    verdict: Annotated[Verdict, doc("Worst verdict of the reasons; VALID without any.")]
    reasons: Annotated[tuple[Reason, ...], doc("Reasons for doubt: every rule that was broken.")]

    @classmethod
    def of(cls, reasons: Sequence[Reason]) -> "Validity":
        worst = max((reason.verdict for reason in reasons), key=VERDICTS.index, default=VERDICTS[0])
        return cls(verdict=worst, reasons=tuple(reasons))

    def about(self, paths: Sequence[str]) -> "Validity":
        """The same of these values alone, by the reasons that make one of them doubtful."""
        return self.of([reason for reason in self.reasons if any(map(reason.doubts, paths))])
