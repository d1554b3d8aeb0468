"""Prefix cache: whether it was in the state that the scenario declares."""

from collections.abc import Iterator
from functools import partial

from harness.conditions.cache_in_effect import COLD_TOLERANCE, FOUND, WARM_SHARE, state, verify
from harness.model import IssueCode
from harness.model.change import SEED
from harness.validity.rule import Evidence, Rule, Violation

_HELD = "the cache held these prompts before: restart the server"
_rule = partial(Rule, cause="work", eases=True)


def _not(wanted: str, cell: Evidence) -> Iterator[Violation]:
    if state(cell.facts) != wanted:
        return
    cache = verify(cell.view, cell.facts, cell.hit_rate)
    if cache.holds is False:
        yield Violation(cache.measured, cache.limit)


@partial(
    _rule,
    code=IssueCode.CACHE_NOT_COLD,
    measures="the hit rate of an engine whose cache is declared to be cold at the start, or whose "
    "prompts share nothing (those of a file may begin alike: there, that of each prompt which was sent "
    "before any answer began); also a cold cache that was not emptied and whose hit rate does not tell",
    limit=f"what the requests share among themselves, and {COLD_TOLERANCE:.0%}; of a first prompt of a "
    f"file {FOUND:.0%}",
    hint=f"{_HELD} or change --seed",
)
def _not_cold(cell: Evidence) -> Iterator[Violation]:
    """Doubts prompts that share nothing under `any` too, and a cold cache that nothing vouches for.

    No seed draws the prompts of a file, engines that bench started held nothing of another run, and what is
    salted was never sent before.
    """
    wanted, cache = state(cell.facts), verify(cell.view, cell.facts, cell.hit_rate)
    if wanted in ("cold", "any") and cache.holds is False:
        drawn = cell.facts.minimum is not None and cell.facts.minimum.held is None
        ran = drawn and cell.facts.identity.launch == "attach" and cell.facts.cache.method != "salt"
        others = Violation(cache.measured, cache.limit, f"{_HELD}, or send others", change={SEED: None})
        yield others if ran else Violation(cache.measured, cache.limit, _HELD)
    if wanted == "cold" and cache.holds is None and cell.facts.cache.method == "none":
        yield Violation(
            f"it was not emptied, and {cache.measured}",
            "known to be cold",
            'restart the server, or declare cache.state = "any"',
        )


_not_warm = _rule(
    partial(_not, "warm"),
    code=IssueCode.CACHE_NOT_WARM,
    measures="the hit rate of an engine whose cache is declared to hold the shared prefixes",
    limit=f"at least {WARM_SHARE:.0%} of the shared prefixes",
    hint="the engine dropped the shared prefixes: its cache is too small, or reuses larger blocks only",
)
_not_primed = _rule(
    partial(_not, "primed"),
    code=IssueCode.CACHE_NOT_PRIMED,
    measures="the hit rate of an engine whose cache is declared to hold the whole prompts",
    limit=f"at least {WARM_SHARE:.0%} of the prompts, and of what the turns before leave to later ones",
    hint="the engine dropped the prompts: its cache is too small, or reuses larger blocks only",
)
RULES = (_not_cold, _not_warm, _not_primed)
