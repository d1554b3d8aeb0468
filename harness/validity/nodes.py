"""Load nodes: whether several machines sent one load, on one clock."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from harness.metrics.latency import of_metric
from harness.metrics.lockstep import synchrony
from harness.model import IssueCode, LoadNode, known
from harness.model.numbers import apart, digits_apart, fixed
from harness.validity.arrivals import LAG_LIMIT, lag_limit_ms
from harness.validity.client import CUT_SHORT
from harness.validity.medians import LEAST_ANSWERS, NOISE_ERRORS, chance_apart, compared
from harness.validity.rule import Evidence, Rule, Violation
from harness.validity.stalls import LATE

_MOST_STALL_MS = 1000.0  # far beyond what a busy machine takes from a process
_LEAST_SLOTS = 4  # of a node: the order of fewer settles, and its TTFT is that of their places in it


def _nodes(cell: Evidence) -> tuple[LoadNode, ...]:
    return known(cell.facts.nodes) or ()


@partial(
    Rule,
    code=IssueCode.NODE_LOST,
    measures="load nodes that were lost during the cell",
    limit="0",
    verdicts=("INVALID",),
    hint="what that node sent is missing; the other nodes' records are kept",
    cause="client",
    explains=CUT_SHORT,
)
def _lost(cell: Evidence) -> Iterator[Violation]:
    lost = [f"{node.place}: {node.lost}" for node in _nodes(cell) if node.lost]
    if lost:
        yield Violation("; ".join(lost))


@partial(
    Rule,
    code=IssueCode.NODE_STALLED,
    measures="the longest time for which a load process of a node stood still",
    limit=f"{_MOST_STALL_MS / 1e3:g} s",
    verdicts=("INVALID",),
    hint="that node was frozen, moved or out of memory: what it had to send meanwhile left late",
    cause="client",
    explains=LATE,
)
def _stalled(cell: Evidence) -> Iterator[Violation]:
    still = [
        f"{node.place}: {apart(node.longest_stall_ms / 1e3, _MOST_STALL_MS / 1e3, 1)[0]} s"
        for node in _nodes(cell)
        if node.longest_stall_ms is not None and node.longest_stall_ms > _MOST_STALL_MS
    ]
    if still:
        yield Violation("; ".join(still))


@partial(
    Rule,
    code=IssueCode.NODE_CLOCK,
    measures="how far apart the load nodes started, and how well their clocks are known",
    limit=LAG_LIMIT,
    verdicts=("INVALID",),
    hint="the way to that node is slow or loses packets: put load nodes and bench into one network",
    cause="machine",
)
def _clock(cell: Evidence) -> Iterator[Violation]:
    """The uncertainty between two nodes' clocks: of their starts, or that it is not known."""
    started = [node for node in _nodes(cell) if node.start_skew_ms is not None]
    if not started:
        return
    skews = [node.start_skew_ms or 0.0 for node in started]
    skew_ms = max(skews) - min(skews)
    worst = max(started, key=lambda node: node.clock_uncertainty_ms or 0.0)
    uncertainty_ms, limit_ms = worst.clock_uncertainty_ms or 0.0, lag_limit_ms(cell)
    if skew_ms + uncertainty_ms > limit_ms:
        skew, uncertainty = (
            fixed(ms, digits_apart(skew_ms + uncertainty_ms, limit_ms, least=2))
            for ms in (skew_ms, uncertainty_ms)
        )
        yield Violation(
            f"starts {skew} ms apart, clock of {worst.name} known to {uncertainty} ms",
            f"{apart(limit_ms, skew_ms + uncertainty_ms, 1)[0]} ms",
        )


@partial(
    Rule,
    code=IssueCode.NODE_DIFFERS,
    measures="median TTFT from the send on one load node, less that on the others; of several kinds of "
    "requests as a share of what is usual for their kind; not in a closed loop with fewer than "
    f"{_LEAST_SLOTS} slots for each, or in lockstep; from {LEAST_ANSWERS} answers each",
    limit=f"the round trip from that node to the server, and {NOISE_ERRORS:g} standard errors",
    hint="one node is slower or farther away: look at its CPU and its way to the server",
    cause="client",
)
def _differs(cell: Evidence) -> Iterator[Violation]:
    requests, nodes, slots = cell.records.requests, _nodes(cell), cell.load.slots
    if not nodes or (slots is not None and slots < _LEAST_SLOTS * len(nodes)):
        return
    together, _ = synchrony(cell.view, cell.load)
    if together and together.in_bursts:
        return
    for node in nodes:
        own = np.isin(requests["worker"], node.workers)
        parts = [cell.view.without_events(mask) for mask in (own, ~own)]
        (here, there), usual_ms = compared(cell, parts, partial(of_metric, name="ttft_service_ms"))
        if min(len(here), len(there)) < LEAST_ANSWERS:
            continue
        away = float(np.median(here) - np.median(there))
        slower, faster = (here, there) if away > 0 else (there, here)
        most = (node.path_rtt_ms or 0.0) / (usual_ms or 1.0) + chance_apart(slower, faster)
        if abs(away) > most:
            sign = "-" if away < 0 else "+"
            if usual_ms is None:
                measured, limit = apart(abs(away), most, 2)
                yield Violation(f"{node.place}: {sign}{measured} ms", f"{limit} ms")
            else:
                measured, limit = apart(100 * abs(away), 100 * most, 0)
                yield Violation(f"{node.place}: {sign}{measured}% in requests of like kind", f"{limit}%")


RULES = (_lost, _stalled, _clock, _differs)
