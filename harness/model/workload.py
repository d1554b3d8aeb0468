"""workload.json: what the requests of a run are, by load point."""

from typing import Annotated

from harness.model.load import KIND, VALUE, LoadKind
from harness.model.record import UNSET, Record, UnsetType, doc

Number = int | float


class Histogram(Record, frozen=True, kw_only=True):
    """Counts in bins whose width grows by a constant factor."""

    edges: Annotated[tuple[Number, ...], doc("Edges of the bins in tokens, each bin up to the next edge.")]
    counts: Annotated[tuple[int, ...], doc("Requests in each bin.")]


class Lengths(Record, frozen=True, kw_only=True):
    """Lengths in tokens, over the requests of a load point."""

    min: Annotated[Number, doc("Shortest length, tokens.")]
    p50: Annotated[Number, doc("Median length, tokens.")]
    mean: Annotated[Number, doc("Mean length, tokens.")]
    p90: Annotated[Number, doc("90th percentile of the lengths, tokens.")]
    max: Annotated[Number, doc("Longest length, tokens.")]
    histogram: Annotated[Histogram, doc("Histogram of the lengths.")]


class ChatCount(Record, frozen=True, kw_only=True):
    """Number and lengths of the chats of several turns."""

    count: Annotated[int, doc("Number of chats.")]
    turns_mean: Annotated[float, doc("Mean turns of a chat.")]
    turns_max: Annotated[int, doc("Turns of the longest chat.")]


class Sharing(Record, frozen=True, kw_only=True):
    """Parts of the prompts that an earlier prompt had too, so that a cache could reuse them."""

    prompt_tokens: Annotated[int, doc("Prompt tokens of all requests, chat template left out.")]
    unique_share: Annotated[float, doc("Share of the prompt tokens that were in no earlier prompt, 0 to 1.")]
    radix_hit_rate: Annotated[
        float, doc("Share of the prompt tokens that a cache of single tokens finds, 0 to 1.")
    ]
    block_hit_rate: Annotated[
        float, doc("Share of the prompt tokens that a cache of whole blocks finds, 0 to 1.")
    ]
    block_tokens: Annotated[int, doc("Tokens of a block in block_hit_rate.")]
    sharing_requests: Annotated[int, doc("Requests that share a beginning with an earlier one.")]


class ArrivalStatistics(Record, frozen=True, kw_only=True):
    """Statistics of the schedule of an open loop."""

    rate_per_s: Annotated[float, doc("Mean rate of arrivals.")]
    gap_cv: Annotated[float, doc("Coefficient of variation of the gaps; 1 is Poisson.")]
    dispersion: Annotated[float, doc("Variance over mean of the counts in bins; 1 is Poisson.")]


class RequestFigures(Record, frozen=True, kw_only=True):
    """Number, lengths, sharing and times of requests. Warm-up requests are in all figures but `requests`."""

    requests: Annotated[int, doc("Requests to be measured.")]
    warmup_requests: Annotated[int, doc("Warm-up requests before the measured ones.")]
    input_tokens: Annotated[Lengths, doc("Length of the prompts' content; a chat template comes on top.")]
    output_tokens: Annotated[Lengths, doc("Length of the answers that are asked for.")]
    kinds: Annotated[dict[str, int], doc("Requests by kind, where a scenario has several.")]
    sessions: Annotated[ChatCount | None, doc("Chats of several turns; null: there are none.")]
    sharing: Annotated[Sharing, doc("Prompt tokens that a prefix cache could reuse.")]
    arrivals: Annotated[
        ArrivalStatistics | None, doc("Statistics of the schedule; null: a closed loop, or too few arrivals.")
    ]


class CardLoad(Record, frozen=True, kw_only=True):
    """The load point, and how its requests arrive."""

    kind: Annotated[LoadKind, doc(KIND)]
    value: Annotated[Number, doc(VALUE)]
    process: Annotated[str | None, doc("Arrival process of an open loop; null: none is drawn.")]
    start: Annotated[
        str | UnsetType | None,
        doc("How the slots of a closed loop begin: spread or together; null: no slots."),
    ] = UNSET


class WorkloadCard(RequestFigures, frozen=True, kw_only=True):
    """Description of the requests of one load point, as they were drawn for the first repeat."""

    load: Annotated[CardLoad, doc("Load point, and how its requests arrive.")]
    sha256: Annotated[str, doc("SHA-256 of the requests before the engine's dialect.")]
    exact_lengths: Annotated[bool, doc("Whether an engine's own tokenizer counted the prompts.")]
    alike_chars: Annotated[
        int | UnsetType | None,
        doc("Characters of the longest common beginning of two texts; null: they share on purpose."),
    ] = UNSET
    content: Annotated[str | UnsetType, doc("Content of the texts: random, prose, code, json or a file.")] = (
        UNSET
    )


class WorkloadCards(Record, frozen=True, kw_only=True):
    """Descriptions of the requests of a run, by load point."""

    cards: Annotated[dict[str, WorkloadCard] | None, doc("Descriptions by label of the load point.")]
