"""The declared state of the prefix cache against what the engine's cached tokens say."""

from dataclasses import dataclass

from harness.metrics.view import RequestView
from harness.model import CellFacts
from harness.model.numbers import percent_apart
from harness.records.layout import UNKNOWN

# Counters cover the whole cell, and templates are only known by their length.
COLD_TOLERANCE = 0.02
# Engines reuse whole blocks, up to 128 tokens, and always process the last one.
WARM_SHARE = 0.8
OF_FILE = "prompts of a file"  # the content of such a workload


@dataclass(frozen=True, slots=True)
class Verified:
    """`holds` is None where the engine's counts cannot tell, or nothing was declared.

    Under `any` it is False where prompts that share nothing were found in the cache.
    """

    holds: bool | None
    measured: str
    limit: str


def verify(view: RequestView, facts: CellFacts, hit_rate: float | None) -> Verified:
    """`hit_rate` as metrics.cache.hit_rate() gives it."""
    wanted = state(facts)
    if wanted != "any":
        return _verify(wanted, view, facts, hit_rate)
    cold = None if facts.workload.ideal_hit_rate else _verify("cold", view, facts, hit_rate)
    return cold if cold and cold.holds is False else Verified(None, "", "no state is declared")


def _verify(wanted: str, view: RequestView, facts: CellFacts, hit_rate: float | None) -> Verified:
    if facts.prefix_cache is False and wanted == "cold":
        return Verified(True, "prefix cache off", "")
    rows = view.answers[view.answers["prompt_tokens"] != UNKNOWN]
    if hit_rate is None or not len(rows):
        return Verified(None, "no cached tokens are reported", "")
    workload = facts.workload
    # The chat template's own tokens may be shared by all requests, whatever the prompts say.
    prompt, content = float(rows["prompt_tokens"].mean()), workload.content_tokens_mean
    if not prompt:
        return Verified(None, "the server counts no prompt tokens", "")
    template = max(prompt - content, 0.0)
    hits = f"{percent_apart(hit_rate, decimals=1)}%"
    measured = f"hit rate {hits}"
    if wanted == "cold":
        ceiling = (workload.ideal_hit_rate * content + template) / prompt
        holds = hit_rate <= ceiling + COLD_TOLERANCE
        if not holds and workload.content == OF_FILE:  # the ideal counts whole messages only
            return Verified(None, f"the hits ({hits}) may be among the prompts of the file", "")
        return Verified(holds, measured, f"{ceiling:.1%} from a cold start")
    share = 1.0 if wanted == "primed" else workload.shared_share
    if share is None:
        return Verified(None, "what requests share is not known", "")
    floor = WARM_SHARE * share * min(content / prompt, 1.0)
    measured = f"hit rate {percent_apart(hit_rate, floor, decimals=1)}%"
    return Verified(hit_rate >= floor, measured, f"{floor:.1%} from a {wanted} cache")


def state(facts: CellFacts) -> str:
    """The declared one; cells measured before it was kept say whether it was cold."""
    return facts.cache.requested or ("cold" if facts.workload.cold_cache else "any")
