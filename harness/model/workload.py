"""workload.json: what the requests of a run are, by load point."""

from typing import Annotated

from harness.model.load import KIND, VALUE, LoadKind
from harness.model.record import UNSET, Record, UnsetType, doc

Number = int | float


class Histogram(Record, frozen=True, kw_only=True):
    """Counts in bins whose width grows by a constant factor."""

    edges: Annotated[tuple[Number, ...], doc("Of the bins, each up to the next, in tokens.")]
    counts: Annotated[tuple[int, ...], doc("Requests in each.")]


class Lengths(Record, frozen=True, kw_only=True):
    """Lengths in tokens, over the requests of a load point."""

    min: Annotated[Number, doc("Shortest.")]
    p50: Annotated[Number, doc("Median.")]
    mean: Annotated[Number, doc("Of all.")]
    p90: Annotated[Number, doc("90th percentile.")]
    max: Annotated[Number, doc("Longest.")]
    histogram: Annotated[Histogram, doc("Between them.")]


class ChatCount(Record, frozen=True, kw_only=True):
    """Number and lengths of the chats of several turns."""

    count: Annotated[int, doc("Chats.")]
    turns_mean: Annotated[float, doc("Of each.")]
    turns_max: Annotated[int, doc("Of the longest.")]


class Sharing(Record, frozen=True, kw_only=True):
    """Parts of the prompts that an earlier prompt had too, so that a cache could reuse them."""

    prompt_tokens: Annotated[int, doc("Of all requests.")]
    unique_share: Annotated[float, doc("Of them, what was in none before, 0 to 1.")]
    radix_hit_rate: Annotated[float, doc("Of them, what a cache that reuses single tokens finds, 0 to 1.")]
    block_hit_rate: Annotated[float, doc("Of them, what a cache of whole blocks finds, 0 to 1.")]
    block_tokens: Annotated[int, doc("Size of those blocks.")]
    sharing_requests: Annotated[int, doc("Requests that share anything.")]


class ArrivalStatistics(Record, frozen=True, kw_only=True):
    """Statistics of the schedule of an open loop."""

    rate_per_s: Annotated[float, doc("Mean.")]
    gap_cv: Annotated[float, doc("Coefficient of variation of the gaps; 1 is Poisson.")]
    dispersion: Annotated[float, doc("Variance over mean of counts in bins; 1 is Poisson.")]


class RequestFigures(Record, frozen=True, kw_only=True):
    """Number, lengths, sharing and times of requests. Warm-up requests are in all figures."""

    requests: Annotated[int, doc("To be measured.")]
    warmup_requests: Annotated[int, doc("Before them.")]
    input_tokens: Annotated[Lengths, doc("Of the content: a chat template comes on top.")]
    output_tokens: Annotated[Lengths, doc("Asked for.")]
    kinds: Annotated[dict[str, int], doc("Requests by kind, where a scenario has several.")]
    sessions: Annotated[ChatCount | None, doc("Null without chats of several turns.")]
    sharing: Annotated[Sharing, doc("What a prefix cache could reuse.")]
    arrivals: Annotated[ArrivalStatistics | None, doc("Null for a closed loop.")]


class CardLoad(Record, frozen=True, kw_only=True):
    """The load point, and how its requests arrive."""

    kind: Annotated[LoadKind, doc(KIND)]
    value: Annotated[Number, doc(VALUE)]
    process: Annotated[str | None, doc("Open loop: the arrival process.")]
    start: Annotated[str | UnsetType | None, doc("Closed loop: slots begin spread, or together.")] = UNSET


class WorkloadCard(RequestFigures, frozen=True, kw_only=True):
    """Description of the requests of one load point, as they were drawn for the first repeat."""

    load: Annotated[CardLoad, doc("The load point.")]
    sha256: Annotated[str, doc("Of the requests before the dialect.")]
    exact_lengths: Annotated[bool, doc("Prompts were counted by an engine's own tokenizer.")]
    alike_chars: Annotated[
        int | UnsetType | None, doc("Longest common beginning of two texts; null: they share on purpose.")
    ] = UNSET
    content: Annotated[str | UnsetType, doc("What the texts are: random, prose, code, json or a file.")] = (
        UNSET
    )


class WorkloadCards(Record, frozen=True, kw_only=True):
    """Descriptions of the requests of a run, by load point."""

    cards: Annotated[dict[str, WorkloadCard] | None, doc("By label of the load point.")]
