"""The declared state of the prefix cache against what the engine's cached tokens say."""

from dataclasses import dataclass

import numpy as np

from harness.metrics.cache_hits import why_unknown
from harness.metrics.reason import OfServer
from harness.metrics.view import RequestView
from harness.model import CellFacts
from harness.model.numbers import apart, percent_apart
from harness.records.layout import UNKNOWN

# Counters cover the whole cell, and templates are only known by their length.
COLD_TOLERANCE = 0.02
# Engines reuse whole blocks, up to 128 tokens, and always process the last one.
WARM_SHARE = 0.8
FOUND = 0.5  # of a prompt: more than the template can be, counted wrong
OF_FILE = "prompts of a file"  # the content of such a workload


@dataclass(frozen=True, slots=True)
class Verified:
    """`holds` is None where the engine's counts cannot tell, or nothing was declared.

    Under `any` it is False where prompts that share nothing were found in the cache. Those of a file may be,
    since each load sends them again.
    """

    holds: bool | None
    measured: str
    limit: str


def verify(view: RequestView, facts: CellFacts, hit_rate: float | None) -> Verified:
    """`hit_rate` as metrics.cache_hits.hit_rate_of() gives it."""
    wanted = state(facts)
    if wanted != "any":
        return _verify(wanted, view, facts, hit_rate)
    alike = facts.workload.ideal_hit_rate or facts.workload.content == OF_FILE
    cold = None if alike else _verify("cold", view, facts, hit_rate)
    return cold if cold and cold.holds is False else Verified(None, "", "no state is declared")


def _verify(wanted: str, view: RequestView, facts: CellFacts, hit_rate: float | None) -> Verified:
    if facts.prefix_cache is False and wanted == "cold":
        return Verified(True, "prefix cache off", "")
    if hit_rate is None:
        why = why_unknown(view, facts.server_counters)
        return Verified(None, "no cached tokens are reported" if isinstance(why, OfServer) else why, "")
    rows = view.answers[view.answers["prompt_tokens"] != UNKNOWN]
    if not len(rows):
        return Verified(None, "no answer has its prompt tokens", "")
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
            found = _found_at_once(view, template)
            if found is None or found <= FOUND:
                return Verified(None, f"the hits ({hits}) may be among the prompts of the file", "")
            first = f"of each first prompt {percent_apart(found, FOUND)}% or more, before any answer"
            return Verified(False, f"{measured}, {first}", f"{FOUND:.0%} of a first prompt")
        return Verified(holds, measured, f"{ceiling:.1%} from a cold start")
    whole = 1.0 if workload.primed_share is None else workload.primed_share
    share = whole if wanted == "primed" else workload.shared_share
    if share is None:
        return Verified(None, "what requests share is not known", "")
    floor = WARM_SHARE * share * min(content / prompt, 1.0)
    rate, least = percent_apart(hit_rate, floor, decimals=1), apart(100 * floor, 100 * hit_rate, 1)[0]
    return Verified(hit_rate >= floor, f"hit rate {rate}%", f"{least}% from a {wanted} cache")


def _found_at_once(view: RequestView, template: float) -> float | None:
    """The least share of a prompt, without its template, that was cached of those sent before any answer
    began; None where not all were counted.

    The server began one of them first, and nothing of this cell can have put that into the cache.
    """
    rows = view.requests[view.requests["sent_ns"] != UNKNOWN]
    begun = rows["first_text_ns"][rows["first_text_ns"] != UNKNOWN]
    early = rows[rows["sent_ns"] <= begun.min(initial=rows["sent_ns"].max(initial=0))]
    cached, prompts = early["cached_tokens"], early["prompt_tokens"]
    if not len(early) or UNKNOWN in cached or UNKNOWN in prompts:
        return None
    return float(((cached - template) / np.maximum(prompts - template, 1)).min())


def state(facts: CellFacts) -> str:
    """The declared one; cells measured before it was kept say whether it was cold."""
    return facts.cache.requested or ("cold" if facts.workload.cold_cache else "any")
