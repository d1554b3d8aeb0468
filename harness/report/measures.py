"""How the figures of summary.json are called in what people read."""

from dataclasses import dataclass

LATENCIES = {
    "ttft_ms": "TTFT",
    "ttft_service_ms": "TTFT from the actual send",
    "itl_ms": "ITL",
    "tpot_ms": "TPOT",
    "e2e_ms": "E2E",
}


@dataclass(frozen=True, slots=True)
class Measure:
    path: str  # in a cell of summary.json
    name: str
    unit: str = ""
    scale: float = 1.0

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name


OTHERS = {
    measure.path: measure
    for measure in (
        Measure("output_tokens_per_s", "output", "tokens/s"),
        Measure("input_tokens_per_s", "input", "tokens/s"),
        Measure("output_chars_per_s", "output", "characters/s"),
        Measure("requests_per_s", "requests", "per s"),
        Measure("goodput_requests_per_s", "goodput", "requests/s"),
        Measure("prefix_cache_hit_rate", "cached share of prompt tokens", "%", 100),
        Measure("prefix_cache_ideal", "ideal", "%", 100),
        Measure("structured_valid_rate", "answers that fit the schema", "%", 100),
        Measure("cost_per_million_output_tokens", "cost of a million output tokens"),
        Measure("joules_per_output_token", "energy of an output token", "J"),
    )
}


def measure(path: str) -> Measure:
    """A path that nobody knows is its own name."""
    whole, _, statistic = path.partition(".")
    if whole in LATENCIES:
        return Measure(path, f"{LATENCIES[whole]} {statistic}".strip(), "ms")
    return OTHERS.get(path) or Measure(path, path)
