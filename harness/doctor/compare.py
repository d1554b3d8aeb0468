"""The client's records against the server's ledger, request by request and event by event."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.metrics.latency import event_gaps_ms, of_metric
from harness.metrics.view import Floats, RequestView
from harness.model import ClientErrors, ErrorSpread
from harness.records.layout import GENERATED, Outcome, Records

LedgerRecord = Mapping[str, object]  # one of `records` in the server's /truth


def find_errors(records: Records, ledger: Sequence[LedgerRecord], t0_ns: int) -> ClientErrors | None:
    """None if client and server do not hold the same requests with the same events, all answered.

    Latencies run from the send here, and from its arrival at the server: how late requests were sent is a
    figure of its own. Answers without text, which come whole, have one error.
    """
    true = true_records(records, ledger, t0_ns)
    if true is None:
        return None
    rows = records.requests.copy()
    rows["start_ns"] = rows["sent_ns"]
    measured, happened = RequestView(replace(records, requests=rows)), RequestView(true)
    e2e = spread(of_metric(measured, "e2e_ms") - of_metric(happened, "e2e_ms"))
    if not (rows["text_events"] > 0).any():
        return ClientErrors(None, None, e2e)
    ttft = spread(of_metric(measured, "ttft_ms") - of_metric(happened, "ttft_ms"))
    itl = spread(event_gaps_ms(measured) - event_gaps_ms(happened))
    return ClientErrors(ttft, itl, e2e)


def spread(errors_ms: Floats) -> ErrorSpread:
    p50, p99, largest = np.quantile(np.abs(errors_ms), (0.5, 0.99, 1))
    return ErrorSpread(float(p50), float(p99), float(largest))


def true_records(records: Records, ledger: Sequence[LedgerRecord], t0_ns: int) -> Records | None:
    """The records of a client without any error, in the order of `records`."""
    rows = records.requests.copy()
    if len(rows) != len(ledger) or (rows["outcome"] != Outcome.OK).any():
        return None
    received = np.array([record["received_ns"] for record in ledger], np.int64)
    lengths = np.array([record["prompt_tokens"] for record in ledger], np.int64)
    # Per prompt length, the requests arrived in the order in which they were sent.
    ours, theirs = np.lexsort((rows["sent_ns"], rows["prompt_tokens"])), np.lexsort((received, lengths))
    if (rows["prompt_tokens"][ours] != lengths[theirs]).any():
        return None
    order = np.empty(len(rows), np.int64)
    order[ours] = theirs
    writes = [np.asarray(ledger[at]["write_ns"], np.int64) - t0_ns for at in order.tolist()]
    events = np.maximum(rows["text_events"], 1).tolist()  # what comes whole is one event without text
    if any(len(times) != count for times, count in zip(writes, events, strict=True)):
        return None
    rows["start_ns"] = rows["sent_ns"] = received[order] - t0_ns
    rows["first_text_ns"] = [times[0] for times in writes]
    rows["last_text_ns"] = [times[-1] for times in writes]
    text = records.events[np.isin(records.events["kind"], GENERATED)]
    if len(text):
        text["stamp_ns"] = np.concatenate(writes)
    return replace(records, requests=rows, events=text)
