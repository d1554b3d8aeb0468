"""How a load ended that its server did not serve to the end, as the question to ask it next."""

import numpy as np

from harness.engines.liveness import Silence
from harness.load.job import LoadResult
from harness.records.layout import Outcome, Records


def silence_of(result: LoadResult, limit_s: float, *, deaf: bool) -> Silence | None:
    """None: the last requests had an answer, or a connection to get one."""
    count, closed = result.timeouts, result.closed_by == "silence"
    if count:
        which = f"{count} requests in a row" if closed else _its_last(count)
        return Silence(f"{which} had no answer within {limit_s:g} s", limit_s, closed, deaf)
    if refused := _refused(result.records):
        return Silence(f"{_its_last(refused)} got no connection", limit_s, closed, deaf)
    return None


def _its_last(count: int) -> str:
    return f"its last {count} requests" if count > 1 else "its last request"


def _refused(records: Records) -> int:
    """The number of requests, the last to end, that got no connection."""
    rows = records.requests
    rows = rows[~np.isin(rows["outcome"], (Outcome.DROPPED, Outcome.CANCELLED))]
    connected = rows["outcome"][np.argsort(rows["end_ns"], kind="stable")] != Outcome.CONNECT_FAILED
    last = np.flatnonzero(connected)
    return len(rows) - 1 - int(last[-1]) if len(last) else len(rows)
