"""Adds up counts of engines by role: figures of two roles are never added."""

from collections.abc import Mapping, Sequence

from harness.model import HistogramIncrease, RoleFacts
from harness.model.choices import DECODE, PREFILL
from harness.sampling.counter_deltas import Counted, added, added_histograms

# Counted for a prompt, by the engine that reads it. All others are counted by the one that writes the answer.
_OF_PROMPT = ("prompt_tokens", "cached_prompt_tokens", "host_cached_tokens", "image_queries", "image_hits")


def by_role(
    roles: Sequence[str],
    urls: Sequence[str],
    counts: Sequence[Counted],
    shapes: Sequence[Mapping[str, HistogramIncrease]],
) -> tuple[RoleFacts, ...]:
    """Adds up the counts of the engines of each role. Sequences are in the order of the engines."""
    found = []
    for role in dict.fromkeys(roles):
        places = tuple(number for number, given in enumerate(roles) if given == role)
        counters, falls = added([counts[number] for number in places])
        found.append(
            RoleFacts(
                role=role,
                places=places,
                urls=tuple(urls[number] for number in places),
                counters=counters,
                restarts=len(falls),
                histograms=added_histograms([shapes[number] for number in places]),
            )
        )
    return tuple(found)


def together(roles: Sequence[RoleFacts]) -> dict[str, float] | None:
    """Counters over both roles: of prompts from prefill engines, of answers from decode engines.

    None if one of the roles did not answer.
    """
    by_name = {each.role: each.counters for each in roles}
    read, written = by_name.get(PREFILL), by_name.get(DECODE)
    if read is None or written is None:
        return None
    prompt = {name: read[name] for name in _OF_PROMPT if name in read}
    return prompt | {name: value for name, value in written.items() if name not in _OF_PROMPT}
