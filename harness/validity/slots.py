"""Slots of a closed loop: whether they were used, and whether they keep in step."""

import math
from collections.abc import Iterator
from functools import partial

from harness.errors import page_address
from harness.metrics.lockstep import MAX_INDEX, synchrony
from harness.metrics.sample_size import WAVES_AT_CV_1, waves
from harness.metrics.slots import slot_time
from harness.model import UNSET, IssueCode, UnsetType
from harness.model.change import Flags, advised
from harness.model.numbers import apart, digits_apart, percent_apart, short
from harness.validity.rule import Evidence, Rule, Violation

IDLE_SUSPECT, IDLE_INVALID = 0.02, 0.1
# Of the file of another tool, which has no scenario to change.
_APART = "slots start spread, and output lengths that differ keep them so ([prompts] output_spread)"
_SPREAD = "--set prompts.output_spread"
_DECLARE = "declare the burst (--set load.start=together)"
_OR_SPREAD = f"{_DECLARE}, or spread the answers"


@partial(
    Rule,
    code=IssueCode.SLOT_IDLE,
    measures="time in which slots stood idle by the client's doing, and how many were in use",
    limit=f"{IDLE_SUSPECT:.0%} suspect, {IDLE_INVALID:.0%} invalid",
    verdicts=("SUSPECT", "INVALID"),
    hint="the load generator sends late: add --workers, lower the load, or free a core for it",
    cause="client",
    eases=True,
)
def _slot_idle(cell: Evidence) -> Iterator[Violation]:
    """Leaves cells without measured answers alone: a refusal is over sooner than the next send, so no load
    is kept up.
    """
    slots = slot_time(cell.view, cell.load)
    if slots is None or not len(cell.view.answers):
        return
    if slots.share > IDLE_SUSPECT:
        idle = percent_apart(slots.share, IDLE_SUSPECT, IDLE_INVALID, decimals=1)
        yield Violation(
            f"{idle}% idle: {short(slots.used)} of {slots.slots} slots in use",
            verdict="INVALID" if slots.share > IDLE_INVALID else "SUSPECT",
        )


@partial(
    Rule,
    code=IssueCode.LOCKSTEP,
    measures=f"synchrony of the slots ({page_address('metrics', 'bursts-in-a-closed-loop')}), "
    "where the scenario declares no bursts",
    limit=f"{MAX_INDEX:g}, or what chance or one pair in a batch gives if more: two are not a burst",
    hint=advised(_OR_SPREAD, {_SPREAD: 0.1}),
    cause="work",
)
def _lockstep(cell: Evidence) -> Iterator[Violation]:
    """A burst that the scenario declares is its purpose, and reported as a note."""
    result, _ = synchrony(cell.view, cell.load)
    if result is not None and result.in_bursts and cell.load.start_declared != "together":
        index, limit = apart(result.index, result.limit, 2)
        sends = f"synchrony {index}: sends come in bursts of about {result.burst:g}"
        change: Flags | UnsetType = UNSET
        hint = _DECLARE if cell.facts.imported is None else _APART
        before, spread = cell.facts.workload.output_spread, _spread(result.waves)
        if before is not None and before < spread:  # not all prompts have this key
            hint, change = _OR_SPREAD, {_SPREAD: spread}
        yield Violation(sends, limit, hint, change=change)


def _spread(waves: int) -> float:
    """The output_spread with which slots that begin together have drifted apart for most of these waves.

    Lengths that differ evenly by a share move a slot by so much of a period in each wave that the mean index
    is 0.4 where the square of the share, times the waves, is a third.
    """
    return min(max(math.ceil(20 / math.sqrt(3 * waves)) / 20, 0.1), 0.5)


@partial(
    Rule,
    code=IssueCode.FEW_WAVES,
    measures="waves of a closed loop (measured answers / slots), and the coefficient of variation of "
    "their times: of few waves, the edges of the window bias requests/s "
    f"({page_address('exactness', 'rates')})",
    limit=f"{WAVES_AT_CV_1} times the square of the coefficient of variation: within 1%",
    hint="requests/s may be too high; measure longer: raise --requests",
    cause="work",
)
def _few_waves(cell: Evidence) -> Iterator[Violation]:
    counted = waves(cell.view, cell.load)
    if counted is not None and counted.measured < counted.needed:
        digits = digits_apart(counted.measured, counted.needed, least=3, shown=short)
        few = Violation(
            f"{short(counted.measured, digits)} waves of answers whose times vary by {counted.cv:.0%}",
            f"{short(counted.needed, digits)} waves",
            "requests/s may be too high; ",
        )
        yield cell.longer(few, counted.requests_needed)


RULES = (_few_waves, _slot_idle, _lockstep)
