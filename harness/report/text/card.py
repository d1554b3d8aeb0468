"""A workload card as text."""

from collections.abc import Iterator

from harness.model import Lengths, LoadPoint, Sharing, WorkloadCard, known
from harness.model.numbers import counted, number
from harness.report.findings.card_words import bars, share_words, start_words
from harness.report.view import point_words

CONTENT_WORDS = {"random": "sentences of random words", "json": "records of JSON"}


def card_lines(card: WorkloadCard) -> Iterator[str]:
    load, arrivals = card.load, card.arrivals
    load_words = point_words(LoadPoint(load.kind, load.value))
    warmup = f" after {card.warmup_requests} to warm up" if card.warmup_requests else ""
    requests = "1 request" if card.requests == 1 else f"{card.requests:,} requests"
    yield f"{load_words}: {requests}{warmup}{start_words(load)}, sha256 {card.sha256[:12]}"
    written = card.input_tokens.max > 0  # recordings have no tokens
    counting = "" if card.exact_lengths else " (approximate: no tokenizer)"
    if written:
        yield f"  input   {_lengths(card.input_tokens)}{counting}"
    if card.output_tokens.max > 0:  # nor have vectors, scores and transcripts
        yield f"  output  {_lengths(card.output_tokens)}"
    if content := known(card.content):
        yield f"  {'text ' if written else 'audio'}   {CONTENT_WORDS.get(content, content)}"
    if card.kinds:
        yield "  kinds   " + ", ".join(f"{count} × {kind}" for kind, count in card.kinds.items())
    if chats := card.sessions:
        yield f"  chats   {chats.count}, {number(chats.turns_mean)} turns each, at most {chats.turns_max}"
    if written:
        yield f"  shared  {_sharing(card.sharing, known(card.alike_chars))}"
    if arrivals:
        name = f"{load.process}: " if load.process else ""
        yield (
            f"  sent    {name}{number(arrivals.rate_per_s)}/s, gap CV {arrivals.gap_cv:.2f}, "
            f"dispersion {arrivals.dispersion:.2f}"
        )


def _lengths(lengths: Lengths) -> str:
    if lengths.min == lengths.max:
        return f"{lengths.min:,} token{'s' if lengths.min > 1 else ''} each"
    shape = bars(lengths.histogram.counts)
    return (
        f"{lengths.min:,} {shape} {lengths.max:,} tokens, median {lengths.p50:,.0f}, mean {lengths.mean:,.0f}"
    )


def _sharing(sharing: Sharing, alike_chars: int | None) -> str:
    if not sharing.sharing_requests:
        alike = (
            ""
            if alike_chars is None
            else f"; no two texts begin with more than {counted(alike_chars, 'equal letter')}"
        )
        return f"none of {sharing.prompt_tokens:,} prompt tokens{alike}"
    return (
        f"{share_words(sharing.radix_hit_rate)} of {sharing.prompt_tokens:,} prompt tokens "
        f"were in a prompt before "
        f"({share_words(sharing.block_hit_rate)} in blocks of {sharing.block_tokens}), "
        f"in {counted(sharing.sharing_requests, 'request')}"
    )
