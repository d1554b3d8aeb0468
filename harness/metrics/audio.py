"""Says how fast recordings were transcribed, against their own length."""

from harness.metrics import latency
from harness.metrics.distribution import latency_stats
from harness.metrics.reason import NO_ANSWER
from harness.metrics.view import CellView, Figures


def compute(cell: CellView) -> Figures:
    """None where no request has a recording."""
    if cell.requested is None or not (cell.requested.numbers["audio_ms"] >= 0).any():
        keys = ("real_time_factor", "audio_s_per_s")
        return Figures(dict.fromkeys(keys, "no requests with recordings"), **dict.fromkeys(keys))
    audio_ms = cell.requested.numbers["audio_ms"]
    waits = latency.of_metric(cell, "e2e_ms") / audio_ms[cell.measured_requests["seq"]]
    factor, reasons = latency_stats(waits)
    nulls = {f"real_time_factor.{key}": reason for key, reason in reasons.items()}
    if cell.window is None:
        nulls["audio_s_per_s"] = NO_ANSWER
        return Figures(nulls, real_time_factor=factor, audio_s_per_s=None)
    done_s = float((cell.shares * audio_ms[cell.requests["seq"]]).sum()) / 1000
    return Figures(nulls, real_time_factor=factor, audio_s_per_s=cell.window.per_second(done_s))
