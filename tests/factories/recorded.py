"""Hand-made records whose figures can be worked out on paper."""

import numpy as np

from harness.metrics.view import RequestView
from harness.model import CellFacts, Load, as_json
from harness.records.layout import EVENT_DTYPE, UNKNOWN, EventKind, Outcome, Phase, Records, empty_requests
from harness.records.request_table import NUMBERS, RequestTable
from harness.summary import cell as summary
from tests.factories import documents

MS = 1_000_000


def records(*rows):
    """Each row: dict(intended, sent, texts=[ms…], outcome, phase, tokens, prompt, cached); times in ms.

    `thoughts`: so many of the texts are reasoning, one token each. `reasoning`: the server counts other ones.
    """
    requests = empty_requests(len(rows))
    events = []
    for seq, row in enumerate(rows):
        sent, texts = row.get("sent", row.get("intended", 0)), row.get("texts", [])
        requests[seq]["outcome"] = row.get("outcome", Outcome.OK)
        requests[seq]["phase"] = row.get("phase", Phase.MEASURE)
        requests[seq]["intended_ns"] = requests[seq]["start_ns"] = row.get("intended", sent or 0) * MS
        if sent is not None:
            requests[seq]["sent_ns"] = sent * MS
        for position, moment in enumerate(texts):
            thought = position < row.get("thoughts", 0)
            events.append((seq, EventKind.REASONING if thought else EventKind.TEXT, 3, 100, moment * MS))
            first = "first_reasoning_ns" if thought else "first_answer_ns"
            if requests[seq][first] == UNKNOWN:
                requests[seq][first] = moment * MS
            if position == 0:
                requests[seq]["first_text_ns"] = moment * MS
            requests[seq]["last_text_ns"] = requests[seq]["end_ns"] = moment * MS
        requests[seq]["text_events"] = len(texts)
        requests[seq]["output_tokens"] = row.get("tokens", len(texts))
        named = (("prompt_tokens", "prompt"), ("cached_tokens", "cached"))
        for field, key in (*named, ("reasoning_tokens", "thoughts"), ("reasoning_tokens", "reasoning")):
            if key in row:
                requests[seq][field] = row[key]
    return Records(
        requests,
        np.array(events, EVENT_DTYPE),
        ["".join(f"{7 * at % 1000:03}" for at in range(len(row.get("texts", [])))) for row in rows],
        ["length"] * len(rows),
        [""] * len(rows),
    )


def requested(*rows):
    """Each row: the kind of a request, and what is known of its numbers."""
    made = (([(dict.fromkeys(NUMBERS, -1) | of)[name] for name in NUMBERS], kind, ()) for kind, of in rows)
    return RequestTable.of(made, ())


def view_of(requests):
    """Of requests alone, without an event."""
    return RequestView(Records(requests, np.zeros(0, EVENT_DTYPE), [], [], []))


def summarise_cell(made, about, asked, telemetry=summary.NO_TELEMETRY):
    return summary.summarise_view(summary.view_of(made, about, asked, telemetry))


def load(kind, value, **keys):
    return documents.made(Load, {"kind": kind, "value": value, **keys})


def facts(**changes):
    """Of a cell that nothing is wrong with; `client__cpu_s` is a key of its `client`."""
    lag = {"samples": 1000, "p50": 0.01, "p90": 0.01, "p95": 0.01, "p99": 0.02, "max": 0.02}
    made = {
        "cell": "000-x-c1-r0",
        "identity": {
            "cell": "000-x-c1-r0",
            "backend": "x",
            "variant": None,
            "label": "x",
            "title": "X",
            "simulated": True,
            "track": "t",
            "quantisation": "Q",
            "engine_version": "1",
            "launch": "process",
            "repeat": 0,
        },
        "load": {"kind": "concurrency", "value": 1, "arrival": None, "over_cap": None},
        "workload": {
            "sha256": "0" * 64,
            "exact_lengths": True,
            "output_tokens": 3,
            "exact_output": True,
            "content_tokens_mean": 100.0,
            "ideal_hit_rate": 0.0,
            "cold_cache": True,
        },
        "planned": 10,
        "t0_unix_ns": 1_795_065_464_000_000_000,
        "unsent": 0,
        "minimum": {"seconds": 0.0, "answers": 1},
        "interrupted": False,
        "cache": {},
        "server_counters": None,
        "engine_exited": None,
        "engine_log": "x.log",
        "client": {
            "stamp_source": "kernel",
            "stamp_uncertainty_ms": 0.001,
            "tick_ms": 2.0,
            "workers": 1,
            "lost_workers": 0,
            "held_at_cap": 0,
            "merged_share": 0.0,
            "cpu_s": 0.1,
            "busy_share": 0.1,
            "wall_s": 1.0,
            "send_lag_ms": lag,
            "loop_lag_ms": lag,
            "connections": 1,
            "connect_ms": lag,
            "peak_rss_bytes": 1,
            "gc_collections": 0,
            "notes": [],
        },
    }
    for dotted, value in changes.items():
        table, _, key = dotted.rpartition("__")
        (made[table] if table else made)[key] = as_json(value)
    return documents.made(CellFacts, made)
