"""How a load ended that its server did not serve to the end, as the question to ask it next."""

import numpy as np

from harness.engines.liveness import Silence
from harness.load.job import LoadResult
from harness.records.layout import Outcome, Records

_LEAST_REFUSED = 3  # a connection may fail once; of two replicas, one takes every other


def silence_of(result: LoadResult, limit_s: float, *, deaf: bool) -> Silence | None:
    """None: the last requests had an answer, or a connection to get one."""
    count, closed = result.timeouts, result.closed_by == "silence"
    if not count:
        refused = _refused(result.records)
        if refused < _LEAST_REFUSED:
            return None
        return Silence(f"its last {refused} requests got no connection", limit_s, False, deaf)
    which = (
        f"{count} requests in a row"
        if closed
        else f"its last {f'{count} requests' if count > 1 else 'request'}"
    )
    return Silence(f"{which} had no answer within {limit_s:g} s", limit_s, closed, deaf)


def _refused(records: Records) -> int:
    """The number of requests, the last to end, that got no connection."""
    rows = records.requests
    rows = rows[~np.isin(rows["outcome"], (Outcome.DROPPED, Outcome.CANCELLED))]
    connected = rows["outcome"][np.argsort(rows["end_ns"], kind="stable")] != Outcome.CONNECT_FAILED
    last = np.flatnonzero(connected)
    return len(rows) - 1 - int(last[-1]) if len(last) else len(rows)
