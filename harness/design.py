"""Doubts that the way of measuring leaves: too few answers, idle or lockstep slots, a ramp, merged events."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.metrics.bundling import merged_gaps, tokens_of_first_events
from harness.metrics.enough import amount
from harness.metrics.lockstep import synchrony
from harness.metrics.slots import slot_time
from harness.model import Reason, SteadyState
from harness.record import Records

Json = Mapping[str, Any]

IDLE_SUSPECT, IDLE_INVALID = 0.02, 0.1
MERGED_GAPS = 0.01
# A first event of more tokens by its letters, where the rest allows TPOT to be low by more than the share.
FIRST_TOKENS, TPOT_LOW = 1.5, 0.01


def findings(records: Records, facts: Json, steady: SteadyState | None) -> Iterator[Reason]:
    """`facts` is the content of cell.json, `steady` where the steady part lies."""
    yield from _slot_idle(records, facts["load"])
    yield from _lockstep(records, facts["load"])
    yield from _ramp(steady)
    yield from _first_tokens(records)


def too_short(records: Records, facts: Json) -> Iterator[Reason]:
    """Where nothing was answered, `too-few-samples` says all there is to say."""
    found = amount(records.requests, facts.get("minimum"))
    if found.is_enough or not found.answers:
        return
    needed = found.requests_needed
    yield Reason(
        "too-short",
        "SUSPECT",
        f"{found.answers} answers in {found.seconds:.1f} s",
        f"{found.min_answers} answers in {found.min_seconds:g} s",
        f"measure longer: --requests {needed}" if needed else "measure longer: raise --requests",
    )


def merged(records: Records) -> Iterator[Reason]:
    share, each = merged_gaps(records)
    if share > MERGED_GAPS and each is not None:
        yield Reason(
            "itl-merged",
            "SUSPECT",
            f"{share:.0%} of the gaps are within one arrival, {each:.2f} events per arrival",
            f"{MERGED_GAPS:.0%}",
            "the server sends several events at once: ITL is between arrivals; compare TPOT",
        )


def _slot_idle(records: Records, load: Json) -> Iterator[Reason]:
    slots = slot_time(records.requests, load)
    if slots is not None and slots.share > IDLE_SUSPECT:
        yield Reason(
            "slot-idle",
            "INVALID" if slots.share > IDLE_INVALID else "SUSPECT",
            f"{slots.share:.1%} idle: effective concurrency {slots.effective_concurrency:.3g} "
            f"instead of {slots.concurrency:g}",
            f"{IDLE_SUSPECT:.0%} suspect, {IDLE_INVALID:.0%} invalid",
            "the load generator sends late: add --workers, lower the load, or free a core for it",
        )


def _lockstep(records: Records, load: Json) -> Iterator[Reason]:
    """A burst that the scenario declares is its point, and told as a note."""
    found, _ = synchrony(records.requests, load)
    if found is not None and found.in_bursts and load.get("start_declared") != "together":
        yield Reason(
            "lockstep",
            "SUSPECT",
            f"synchrony {found.index:.2f}: sends come in bursts of about {found.burst:g}",
            f"{found.limit:.2f}",
            "these are figures of bursts: spread the start and the output lengths ([load] start, [prompts] "
            'output_spread), or declare the burst with start = "together"',
        )


def _ramp(steady: SteadyState | None) -> Iterator[Reason]:
    if steady is not None and steady.state == "ramp kept" and not steady.cold_misses:
        yield Reason(
            "ramp-kept",
            "SUSPECT",
            str(steady.why),
            "no ramp",
            f"{steady.ramp_requests} more warm-up requests, for all cells of this load alike",
        )


def _first_tokens(records: Records) -> Iterator[Reason]:
    found = tokens_of_first_events(records)
    if found is None:
        return
    tokens, low = found
    if tokens > FIRST_TOKENS and low > TPOT_LOW:
        yield Reason(
            "first-event-tokens",
            "SUSPECT",
            f"about {tokens:.1f} tokens in first events, by their letters: TPOT may be {low:.0%} low",
            f"{FIRST_TOKENS:g} tokens, {TPOT_LOW:.0%}",
            "the server did not say how many tokens its first event holds: compare E2E and output tokens/s",
        )
