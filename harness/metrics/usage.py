"""What a cell used and what that cost: the keys of summary.json that come from telemetry."""

from collections.abc import Mapping
from typing import Any

from harness.metrics import cost, energy, gpus, machine
from harness.metrics.limiter import limiter
from harness.metrics.throughput import Window
from harness.telemetry import Telemetry

Json = dict[str, Any]

KEYS = (
    "gpu",
    "server",
    "host",
    "energy",
    "cost",
    "limiter",
    "cost_per_million_output_tokens",
    "joules_per_output_token",
    "telemetry",
)


def describe(
    telemetry: Telemetry,
    facts: Mapping[str, Any],
    rates: Mapping[str, float | None],
    window: Window | None,
    good_tokens_per_s: float | None = None,
) -> tuple[Json, dict[str, str]]:
    """The keys and, for each null, why. `server` begins with what the engine counted over the cell.

    `good_tokens_per_s`: output tokens of the requests that kept the SLO.
    """
    found: Json = dict.fromkeys(KEYS)
    found["server"] = facts["server_counters"]
    watched = facts.get("telemetry") or {
        "wanted": False,
        "problem": "measured without sampling",
        "sources": {},
    }
    found["telemetry"] = _told(watched)
    if window is None:
        return found, {key: "no answer to count" for key in KEYS if found[key] is None}
    sources, nulls = watched["sources"], {}
    found["gpu"], nulls["gpu"] = gpus.describe(telemetry, sources, window)
    found["host"] = machine.host(telemetry, sources, window)
    nulls["host"] = watched["problem"] or "too few samples in the window"
    if telemetry.series:
        found["server"] = {
            **(facts["server_counters"] or {}),
            **machine.server(telemetry, sources, window),
            "acceptance_rate": _acceptance(facts["server_counters"] or {}),
            "histograms": machine.histograms(facts.get("server_histograms") or {}),
        }
    else:
        nulls["server"] = "the engine has no metrics and its processes could not be watched"
    engine_gpus = found["gpu"]["engine_gpus"] if found["gpu"] else ()
    found["energy"], nulls["energy"] = energy.describe(telemetry, engine_gpus, rates, window)
    priced, nulls["cost"] = cost.price(facts.get("prices"), found["gpu"])
    if priced:
        found["cost"] = cost.describe(priced, rates, good_tokens_per_s)
    threads = (facts.get("engine_values") or {}).get("threads")
    found["limiter"], nulls["limiter"] = limiter(
        {**found, "load": facts["load"], "client": facts["client"]}, float(threads) if threads else None
    )
    for key, table, name in (
        ("cost_per_million_output_tokens", "cost", "per_million_output_tokens"),
        ("joules_per_output_token", "energy", "joules_per_output_token"),
    ):
        found[key] = found[table][name] if found[table] else None
        nulls[key] = nulls[table] or "the server reports no token counts"
    return found, {key: reason for key, reason in nulls.items() if found[key] is None and reason}


def _told(watched: Mapping[str, Any]) -> Json:
    """How each source fared. What it is, and what it lacks, is in cell.json."""
    return {
        **watched,
        "sources": {
            name: {
                **{key: source[key] for key in ("reads", "unavailable", "last_failure", "failing_since_s")},
                "about": {key: source["about"][key] for key in ("broken", "lost") if key in source["about"]},
            }
            for name, source in watched["sources"].items()
        },
    }


def _acceptance(counted: Mapping[str, float]) -> float | None:
    """Of the speculative tokens, those that were kept; None without speculation."""
    drafts = counted.get("draft_tokens")
    return counted.get("accepted_tokens", 0.0) / drafts if drafts else None
