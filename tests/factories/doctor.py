"""Measurements as the doctor makes them, with the figures that a test is about."""

from harness.doctor.loads import Load
from harness.model import ClientErrors, ClientStats, ErrorSpread, MeasuredLoad, ScriptedServer
from tests.factories import documents


def client(lag_ms, busy_share, workers=1):
    return documents.made(ClientStats, send_lag_ms={"p99": lag_ms}, busy_share=busy_share, workers=workers)


def measured(kind, value, error_ms=0.02, *, tokens_per_s=1000.0, lag_ms=0.3, verdict="VALID", **changes):
    exact, off = ErrorSpread(0, 0, 0), ErrorSpread(0, error_ms, 9)
    load = Load(kind, value, gap_ms=20, tokens=8, requests=300)
    facts = {
        "load": load,
        "title": load.title,
        "verdict": verdict,
        "reasons": (),
        "errors": None if error_ms is None else ClientErrors(exact, off, exact),
        "tokens_per_s": tokens_per_s,
        "cpu_us_per_token": 10.0,
        "client": client(lag_ms, 0.25),
        "server": ScriptedServer(0.1, 0.3, 2.0, 0.3),
        "arrivals": None,
        "other_cores": 0.05,
    }
    return MeasuredLoad(**facts | changes)


def streams(value, error_ms=0.02, **changes):
    return measured("concurrency", value, error_ms, **changes)


def rate(value, lag_ms=0.3, **changes):
    return measured("rate", value, lag_ms=lag_ms, **changes)
