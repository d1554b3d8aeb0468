"""One cell under other tools' definitions, next to the figures here."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from harness.metrics.peers.answers import Answers, take
from harness.metrics.peers.definitions import Measure, Percentile, Sample, Tool
from harness.model import CellFacts
from harness.model.numbers import short
from harness.records.layout import Records

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}

# measure → its place in a cell of summary.json, its unit
HERE: Mapping[Measure, tuple[str, str]] = {
    "TTFT": ("ttft_ms", "ms"),
    "ITL": ("itl_ms", "ms"),
    "TPOT": ("tpot_ms", "ms"),
    "E2E": ("e2e_ms", "ms"),
    "output": ("output_tokens_per_s", "tok/s"),
    "requests": ("requests_per_s", "req/s"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    measure: Measure
    statistic: str  # mean, p50, p90, p99; "" of a rate
    unit: str
    path: str  # of the figure here, in a cell of summary.json
    value: float | None  # None where the tool would have none


@dataclass(frozen=True, slots=True)
class View:
    figures: tuple[Figure, ...]
    evidence: Mapping[str, str]  # what in this cell makes the difference, by measure
    beyond: tuple[str, ...] = ()  # what the tool's own run would do otherwise, so that no records show it


def recompute(tools: Iterable[Tool], records: Records, facts: CellFacts) -> dict[str, View]:
    """One view per tool, of the measured requests; without figures if none succeeded."""
    answers = take(records, facts.client.connect_ms.p50, facts.request.api)
    if answers is None:
        return {tool.name: View((), {}) for tool in tools}
    evidence = dict(_evidence(answers))
    return {
        tool.name: View(tuple(_figures(tool, answers)), evidence, tuple(_beyond(tool, answers, facts)))
        for tool in tools
    }


def _beyond(tool: Tool, answers: Answers, facts: CellFacts) -> Iterator[str]:
    if tool.together and facts.client.start == "spread" and facts.load.value > 1:
        yield (
            f"{tool.name} sends the first requests all at once, and these were spread: its TTFT is that of "
            "bursts. `--set load.start=together` measures it so."
        )
    if tool.usage_alone and facts.imported is None and not answers.usage_alone:
        yield (
            f"{tool.name} sees no usage here, since it has no chunk of its own. Its tokenizer counts the "
            "text of each answer, so it prints another output and TPOT than these."
        )


def _figures(tool: Tool, answers: Answers) -> Iterator[Figure]:
    for measure, value in tool.compute(answers).items():
        path, unit = HERE[measure]
        if not isinstance(value, Sample):
            yield Figure(measure, "", unit, path, value)
            continue
        for name, figure in _statistics(value, tool.percentile).items():
            yield Figure(measure, name, unit, f"{path}.{name}", figure)


def _statistics(sample: Sample, method: Percentile) -> dict[str, float | None]:
    values, weights = sample.values, sample.weights
    if not len(values) or (weights is not None and not weights.any()):
        return dict.fromkeys(("mean", *PERCENTILES))
    # Together they need one partition of the values, which are as many as tokens.
    found = np.quantile(values, list(PERCENTILES.values()), weights=weights, method=method)
    return {
        "mean": float(np.average(values, weights=weights)),
        **dict(zip(PERCENTILES, found.tolist(), strict=True)),
    }


def _evidence(answers: Answers) -> Iterator[tuple[str, str]]:
    """Evidence that this cell shows: a cause that it does not have explains nothing."""
    ahead = answers.first_text - answers.first_choice
    early = ahead > 0
    waited = float(np.median(answers.sent - answers.intended))
    tail = float(np.median(answers.end - answers.last_text))
    if early.any():
        yield (
            "chunks without text",
            f"{np.count_nonzero(early)} of {len(ahead)} answers began with one, "
            f"{short(float(np.median(ahead[early])))} ms before their text (median)",
        )
    if not np.isnan(waited):
        yield "intended to actual send", f"{short(waited)} ms (median)"
    yield "last text to end of stream", f"{short(tail)} ms (median)"
    yield "tokens per text event", short(answers.tokens.sum() / max(answers.text_events.sum(), 1))
    if answers.handshake:
        yield "TCP handshake", f"{short(answers.handshake)} ms (median)"
    if answers.failed:
        yield "failed requests", str(answers.failed)
