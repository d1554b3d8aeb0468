"""The workload: scenario, how prompts were made, arrivals, and the lengths that came."""

from collections.abc import Iterator

import numpy as np

from harness.metrics.arrivals import TITLES, outside
from harness.model import Arrivals, Lengths, WorkloadCard, as_json, known
from harness.model.numbers import short
from harness.report.findings.card_words import bars, share_words, start_words
from harness.report.html.setting import facts
from harness.report.html.source import Source, backend_table
from harness.report.html.tags import Html, join, section, table, tag
from harness.report.view import labels
from harness.report.wording import NOT_KNOWN, or_unknown

ARRIVALS = ("rate_per_s", "gap_cv", "dispersion")


def workload(source: Source) -> Html:
    manifest = source.manifest
    scenario = as_json(manifest.scenario) if manifest else {}
    hashes = {
        "workload_sha256": source.summary.workload_sha256,
        "scenario_sha256": manifest.scenario_sha256 if manifest else None,
    }
    return section(
        "workload",
        "Workload",
        tag("p", source.summary.purpose),
        *_card(source),
        backend_table(
            source,
            "As measured, tokens per request (lowest – median – highest)",
            ["backend", "prompt", "output"],
            _lengths(source),
        ),
        *_arrivals(source),
        facts("As asked", {**scenario, **hashes}),
    )


def _lengths(source: Source) -> Iterator[tuple[str, list[str]]]:
    """Prompts of equal bytes differ in tokens where tokenizers or chat templates do."""
    for label in labels(source.summary):
        taken = source.samples_of(label)
        lengths = ([samples.prompt_tokens for samples in taken], [samples.output_tokens for samples in taken])
        spans = (_span(np.concatenate(arrays)) if arrays else NOT_KNOWN for arrays in lengths)
        yield label, [source.name(label), *spans]


def _span(values: np.ndarray) -> str:
    if not len(values):
        return f"{NOT_KNOWN} (not reported)"
    return _three(values.min(), float(np.median(values)), values.max())


def _three(*tokens: float) -> str:
    return " – ".join(short(count, 6) for count in tokens)


def _card(source: Source) -> Iterator[Html]:
    """Tables by load point; none in runs from before the card was kept."""
    card = source.summary.workload_card or {}
    if card:
        head = ["load", "requests", "prompt tokens", "output tokens", "conversations",
                "reusable, to the token", "reusable, in blocks"]  # fmt: skip
        rows = ([str(load), *_card_row(described)] for load, described in card.items())
        yield table("Workload card", head, rows)


def _card_row(card: WorkloadCard) -> list[str]:
    sharing, chats = card.sharing, card.sessions
    turns = f"{chats.count} of up to {chats.turns_max} turns" if chats else "none"
    return [
        f"{card.requests} + {card.warmup_requests} to warm up{start_words(card.load)}",
        _histogram(card.input_tokens),
        _histogram(card.output_tokens),
        turns,
        share_words(sharing.radix_hit_rate),
        f"{share_words(sharing.block_hit_rate)} (of {sharing.block_tokens})",
    ]


def _histogram(lengths: Lengths) -> Html:
    """Lowest, median and highest, and the shape between them."""
    if not lengths.max:
        return tag("span", "none")
    edges, counts = lengths.histogram.edges, lengths.histogram.counts
    span = _three(lengths.min, lengths.p50, lengths.max)
    if len(counts) < 2 or not max(counts):
        return tag("span", span)
    steps = zip(edges, edges[1:], counts, strict=False)
    words = ", ".join(f"{low} to {high}: {count}" for low, high, count in steps if count)
    shape = tag("span", bars(counts), class_="bars-text", role="img", aria_label=f"tokens: {words}")
    return join([span, shape])


def _arrivals(source: Source) -> Iterator[Html]:
    """The sends of open loops against the arrival process."""
    rows = [
        (cell.label, [cell.cell, *_arrivals_row(arrivals)])
        for cell in source.summary.cells
        if (arrivals := cell.arrivals)
    ]
    if rows:
        head = ["cell", "tested against", *(f"{TITLES[name]}, asked / sent" for name in ARRIVALS), "verdict"]
        yield backend_table(source, "Arrivals as asked and as sent", head, rows)


def _arrivals_row(arrivals: Arrivals) -> Iterator[str]:
    asked, achieved = arrivals.asked or {}, arrivals.achieved or {}
    yield arrivals.against or NOT_KNOWN
    for key in ARRIVALS:
        yield f"{or_unknown(asked.get(key))} / {or_unknown(achieved.get(key))}"
    reason = known(arrivals.reason)
    words = ", ".join(TITLES.get(name, name) for name in outside(arrivals)) or reason
    yield f"{arrivals.verdict} ({words})" if words else arrivals.verdict
