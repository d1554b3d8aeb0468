"""The figures of summary.json that a verdict can be about, and which way is better."""

from collections.abc import Mapping
from typing import Literal

Better = Literal["lower", "higher"]

_LATENCIES = ("ttft_ms", "ttft_service_ms", "itl_ms", "tpot_ms", "e2e_ms")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")

MEASURES: Mapping[str, Better] = {
    **{f"{name}.{statistic}": "lower" for name in _LATENCIES for statistic in STATISTICS},
    "output_tokens_per_s": "higher",
    "input_tokens_per_s": "higher",
    "requests_per_s": "higher",
    "output_chars_per_s": "higher",
    "goodput_requests_per_s": "higher",
    "prefix_cache_hit_rate": "higher",
    "structured_valid_rate": "higher",
    "cost_per_million_output_tokens": "lower",
    "joules_per_output_token": "lower",
}
