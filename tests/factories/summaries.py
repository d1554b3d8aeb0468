"""Hand-made summary.json objects: every figure in a test of the tables can be found here."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.model import CellResult, Summary, Validity
from tests.factories.documents import made

LATENCIES = ("ttft_ms", "ttft_service_ms", "itl_ms", "tpot_ms", "e2e_ms")


def cell(
    label: str = "llamacpp", load: Mapping[str, Any] | None = None, repeat: int = 0, **changes: Any
) -> CellResult:
    """A VALID cell of 32 answers. `changes`: top-level keys, as JSON has them; `p50=…` sets every median."""
    backend, _, variant = label.partition("@")
    load = load or {"kind": "concurrency", "value": 4}
    p50 = changes.pop("p50", 20.0)
    few = {f"{name}.p99": "32 samples; p99 needs 299" for name in LATENCIES}
    given = {
        "cell": f"{label}-{load['kind'][0]}{load['value']:g}-r{repeat}",
        "backend": backend,
        "variant": variant or None,
        "label": label,
        "title": "llama.cpp",
        "simulated": False,
        "track": "gguf-q4_1",
        "quantisation": "Q4_1",
        "engine_version": "b11549",
        "launch": "process",
        "load": dict(load),
        "repeat": repeat,
        "workload_sha256": "5f" * 32,
        "validity": {"verdict": "VALID", "reasons": []},
        "requests": {
            "planned": 32,
            "sent": 32,
            "ok": 32,
            "failed": 0,
            "dropped": 0,
            "warmup": 4,
            "outcomes": {"ok": 32},
        },
        **{name: {"mean": p50, "p50": p50, "p90": 2 * p50, "p95": None, "p99": None} for name in LATENCIES},
        "output_tokens_per_s": 118.4,
        "input_tokens_per_s": 2012.8,
        "requests_per_s": 3.7,
        "output_chars_per_s": 510.0,
        "goodput_requests_per_s": None,
        "prefix_cache_hit_rate": 0.93,
        "prefix_cache_source": "usage",
        "prefix_cache_ideal": 0.94,
        "structured_valid_rate": None,
        "gpu": None,
        "server": None,
        "cost_per_million_output_tokens": None,
        "joules_per_output_token": None,
        "window_s": 8.6,
        "null_reasons": few,
        "client": {
            "busy_share": 0.04,
            "send_lag_ms": {"p50": 0.1, "max": 0.3},
            "loop_lag_ms": {"p50": 0.2, "max": 0.4},
        },
    }
    return made(CellResult, given, **changes)


def summary(*cells: CellResult, **changes: Any) -> Summary:
    given = {
        "run": "20261120T051744Z-shared-prefix-a1b2c3",
        "state": "complete",
        "scenario": "shared-prefix",
        "purpose": "What prefix caching is worth.",
        "workload_sha256": "5f" * 32,
        "simulated": any(found.simulated for found in cells),
        "cells": list(cells),
        "verdict_rules": {"confidence": 0.95, "alpha": 0.05, "min_runs": 3},
    }
    return made(Summary, given, **changes)


def verdict(
    word: str, code: str, measured: str, limit: str, hint: str, metrics: Sequence[str] = (), **more: Any
) -> Validity:
    """`more`: other keys of the reason, as JSON has them."""
    reason = {"code": code, "verdict": word, "measured": measured, "limit": limit, "hint": hint, **more}
    reason["metrics"] = list(metrics)
    return made(Validity, verdict=word, reasons=[reason])


UNSTEADY = verdict("SUSPECT", "not-steady", "e2e_ms changes by -22% over it", "20%", "")
