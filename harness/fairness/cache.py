"""The declared state of the prefix cache against what the engine's cached tokens say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import answered
from harness.record import UNKNOWN

# Counters cover the whole cell, and templates are only known by their length.
COLD_TOLERANCE = 0.02
# Engines reuse whole blocks, up to 128 tokens, and always process the last one.
WARM_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Verified:
    """`holds` is None where the engine's counts cannot tell, or nothing was declared."""

    holds: bool | None
    measured: str
    limit: str


def verify(requests: NDArray[np.void], facts: Mapping[str, Any], hit_rate: float | None) -> Verified:
    """`facts` is the content of cell.json; `hit_rate` as metrics.cache.hit_rate() gives it."""
    wanted = state(facts)
    if wanted == "any":
        return Verified(None, "", "no state is declared")
    if facts.get("prefix_cache") is False and wanted == "cold":
        return Verified(True, "prefix cache off", "")
    rows = requests[answered(requests)]
    rows = rows[rows["prompt_tokens"] != UNKNOWN]
    if hit_rate is None or not len(rows):
        return Verified(None, "no cached tokens are reported", "")
    workload = facts["workload"]
    # The chat template's own tokens may be shared by all requests, whatever the prompts say.
    prompt, content = float(rows["prompt_tokens"].mean()), workload["content_tokens_mean"]
    template = max(prompt - content, 0.0)
    found = f"hit rate {hit_rate:.1%}"
    if wanted == "cold":
        ceiling = (workload["ideal_hit_rate"] * content + template) / prompt
        return Verified(hit_rate <= ceiling + COLD_TOLERANCE, found, f"{ceiling:.1%} from a cold start")
    share = 1.0 if wanted == "primed" else workload["shared_share"]
    floor = WARM_SHARE * share * min(content / prompt, 1.0)
    return Verified(hit_rate >= floor, found, f"{floor:.1%} from a {wanted} cache")


def state(facts: Mapping[str, Any]) -> str:
    """The declared one; cells measured before it was kept say whether it was cold."""
    wanted = facts["cache"].get("wanted") if facts.get("cache") else None
    return str(wanted) if wanted else "cold" if facts["workload"]["cold_cache"] else "any"
