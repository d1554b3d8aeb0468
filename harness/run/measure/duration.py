"""Whether a cell lasted as long as the command line asks."""

import math
from collections.abc import Collection

from harness.metrics.window import duration_begin_ns
from harness.model import CellFacts, RunWarning
from harness.model.change import DURATION, REQUESTS, Flags
from harness.records.layout import Records
from harness.run.status_lines import load_words
from harness.validity import notices

_SPARE = 1.5  # times as many requests as would have done: the next cell may be faster


def not_reached(given: Collection[str], records: Records, facts: CellFacts) -> RunWarning | None:
    """The warning of a cell that sent everything before its time; None if it did not.

    `given`: keys of the scenario that the command line sets. With a number of requests, whatever ends first
    was asked for. A rate has as many as it sends in the time, unless they come from a file.
    """
    least = facts.minimum
    by_time = "load.duration_s" in given and "load.requests" not in given
    if least is None or (asked_s := least.duration_s) is None or not by_time:
        return None
    file_ended = facts.planned < (least.requests or 0)
    if (facts.load.kind == "rate" and not file_ended) or facts.interrupted or facts.unsent:
        return None
    begin_ns = duration_begin_ns(records.requests, least)
    took_s = (int(records.requests["end_ns"].max(initial=0)) - (begin_ns or 0)) / 1e9
    if not 0 < took_s < asked_s:
        return None
    text = (
        f"{facts.identity.label}, {load_words(facts.load)}: "
        f"all {facts.planned} requests were sent before the {asked_s:g} s of --duration were over"
    )
    if file_ended:
        hint = "its file holds no more of them: use a longer one"
        return notices.DURATION_NOT_REACHED.warning(text, hint)
    more: Flags = {REQUESTS: math.ceil(_SPARE * facts.planned * asked_s / took_s), DURATION: asked_s}
    return notices.DURATION_NOT_REACHED.warning(text, "more requests", change=more)
