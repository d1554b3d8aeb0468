"""Figures of one cell that consist of several numbers."""

from typing import Annotated, Literal

from harness.model.choices import Balance
from harness.model.record import UNSET, Record, UnsetType, doc

Number = int | float
_UPPER = "One-sided 95 % upper confidence bound of the percentile, by order statistics."


class LatencyStats(Record, frozen=True, kw_only=True):
    """Statistics of a latency in ms. Null where the sample is too small for the percentile."""

    mean: Annotated[float | None, doc("Of the samples that are finite.")]
    p50: Annotated[float | None, doc("Median.")]
    p50_upper: Annotated[float | None, doc(_UPPER)] = None
    p90: Annotated[float | None, doc("90th percentile.")]
    p90_upper: Annotated[float | None, doc(_UPPER)] = None
    p95: Annotated[float | None, doc("95th percentile.")]
    p95_upper: Annotated[float | None, doc(_UPPER)] = None
    p99: Annotated[float | None, doc("99th percentile.")]
    p99_upper: Annotated[float | None, doc(_UPPER)] = None


class Requests(Record, frozen=True, kw_only=True):
    """Counts of the measured phase; warm-up apart."""

    planned: Annotated[int, doc("To be measured.")]
    unsent: Annotated[int, doc("Never due, of all phases.")]
    sent: Annotated[int, doc("Left the client.")]
    ok: Annotated[int, doc("Answered in full.")]
    failed: Annotated[int, doc("Ended in any way but an answer, a drop or a cancellation.")]
    dropped: Annotated[int, doc("Over the in-flight cap of an open loop.")]
    cancelled: Annotated[int, doc("Still in flight when the cell ended.")]
    resent: Annotated[int | None, doc("Sent more than once; null: attempts were not recorded.")] = None
    warmup: Annotated[int, doc("Warm-up requests.")]
    outcomes: Annotated[dict[str, int], doc("Requests by outcome.")]


class Arrivals(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Open loop: arrivals as asked and as sent, with limits and a verdict."""

    process: Annotated[str | None, doc("As declared.")]
    arrivals: Annotated[int, doc("That were sent.")]
    against: Annotated[str | None, doc("What they were tested against.")] = None
    asked: Annotated[dict[str, float] | None, doc("rate_per_s, gap_cv, dispersion of the schedule.")] = None
    achieved: Annotated[dict[str, float] | None, doc("The same as sent, and the KS distance ks.")] = None
    limits: Annotated[dict[str, list[float]] | None, doc("Lowest and highest that chance leaves.")] = None
    verdict: Annotated[Literal["kept", "differs", "not tested"], doc("Whether all limits were kept.")]
    reason: Annotated[str | UnsetType | None, doc("Limits that were not kept, or why there is no test.")] = (
        UNSET
    )


class Law(Record, frozen=True):
    """A relation that must hold between figures of the cell: docs/metrics.md."""

    law: Annotated[str, doc("In words.")]
    measured: Annotated[Number | None, doc("One side of the law, in its own unit.")] = None
    expected: Annotated[Number | None, doc("The other side.")] = None
    tolerance: Annotated[Number | None, doc("The largest difference that the edges of the window allow.")] = (
        None
    )
    holds: Annotated[bool | None, doc("Null: could not be judged.")] = None
    why: Annotated[str | None, doc("Why it could not be judged.")] = None


class Limit(Record, frozen=True, kw_only=True):
    """One latency limit of the scenario."""

    metric: Annotated[str, doc("Latency.")]
    share: Annotated[str, doc("p50 to p99, or max: of the requests.")]
    limit_ms: Annotated[Number, doc("In ms.")]
    within: Annotated[float, doc("Share of the requests inside it, 0 to 1.")]
    met: Annotated[bool, doc("Whether that is the share asked for.")]


class Slo(Record, frozen=True, kw_only=True):
    """Share of good requests, and each limit with what it was kept by."""

    limits: Annotated[tuple[Limit, ...], doc("Of [slo].")]
    met: Annotated[bool, doc("All of them.")]
    good: Annotated[int, doc("Requests inside all limits.")]
    requests: Annotated[int, doc("Measured requests.")]
    attainment: Annotated[float, doc("Good requests among the measured ones, 0 to 1.")]
    good_token_share: Annotated[
        float | UnsetType | None, doc("Output tokens of good requests, 0 to 1; null: not counted.")
    ] = UNSET


class Standstill(Record, frozen=True, kw_only=True):
    """Time of the measured part for which the load process that stood still longest did not run."""

    lost_ms: Annotated[float, doc("All its stalls of 100 ms and more, ms.")]
    share: Annotated[float, doc("Of the measured part, first send to last end; 0 to 1.")]
    longest_ms: Annotated[float, doc("The longest one, ms.")]
    at_s: Annotated[float | None, doc("When that began, s from t0; null: there was none.")] = None
    hit_share: Annotated[
        float, doc("Answers that had more than a tenth of their time in a stall of their process; 0 to 1.")
    ]
    who: Annotated[
        Literal["machine", "client"] | None,
        doc("machine: the sampler stood still as well and nothing came from the server; null: nobody."),
    ] = None
    sampler_ms: Annotated[
        float | None, doc("For which the sampler stood still at the same time, ms; null: not known.")
    ] = None
    arrived_meanwhile: Annotated[
        int | None, doc("Events of the server that the kernel stamped meanwhile; null: it stamps none.")
    ] = None


class EngineStall(Record, frozen=True, kw_only=True):
    """A time in which nothing came from the engine though it had requests and the load generator ran."""

    at_s: Annotated[float, doc("When it began, s from t0.")]
    lasted_ms: Annotated[float, doc("Within 50 ms; ms.")]
    in_flight: Annotated[int, doc("Requests that waited.")]


class SteadyState(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of ramp, steady part and drain in s from t0."""

    state: Annotated[str, doc("steady, stall, ramp kept, not steady, not tested or unknown.")]
    why: Annotated[str | None, doc("The shape and size of what differs, or why nothing was tested.")]
    fixed_s: Annotated[float | None, doc("First measured send, s.")] = None
    start_s: Annotated[float | None, doc("Where the steady part begins, s.")] = None
    end_s: Annotated[float | None, doc("Last send, s.")] = None
    drained_s: Annotated[float | None, doc("Last end of a request, s.")] = None
    cuts: Annotated[dict[str, int] | None, doc("Batches before the steady part, by figure.")] = None
    removed: Annotated[int | None, doc("0; before 0.2, requests that a rule took for warm-up.")] = None
    ramp_requests: Annotated[
        int | None, doc("Measured ones before the steady part, kept in every figure.")
    ] = None
    cold_misses: Annotated[bool | None, doc("Requests fill the empty cache as the scenario means it.")] = None
    drift: Annotated[
        dict[str, float | None] | None, doc("Change of a drift or a step, by figure; null: none.")
    ] = None
    shapes: Annotated[
        dict[str, str | None] | None, doc("ramp, drift, step or stall, by figure; null: none.")
    ] = None


class Synchrony(Record, frozen=True, kw_only=True):
    """Closed loop: whether slots send together."""

    index: Annotated[float, doc("0: evenly or by chance; 1: in lockstep.")]
    limit: Annotated[float, doc("Above it sends come in bursts.")]
    waves: Annotated[int, doc("As many sends as slots, each.")]
    groups: Annotated[int, doc("Bursts per period that the index is of.")]
    in_bursts: Annotated[bool, doc("Whether the index is above the limit.")]
    burst: Annotated[float, doc("Requests in one burst.")]


class Sample(Record, frozen=True, kw_only=True):
    """Time and answers of the measured phase, against the least that the scenario declares enough."""

    seconds: Annotated[float, doc("First measured send to the end of the last measured request.")]
    answers: Annotated[int, doc("Measured ones.")]
    min_seconds: Annotated[float, doc("As declared.")]
    min_answers: Annotated[int, doc("As declared.")]


class Backlog(Record, frozen=True, kw_only=True):
    """Backlog of an open loop: arrivals and answers, and requests in the system early and late."""

    probed_s: Annotated[float, doc("First to last measured arrival, s.")]
    window_s: Annotated[float, doc("Of that, what all else is about: less the fill, s.")]
    arrivals: Annotated[int, doc("Requests due in the window.")]
    answered: Annotated[int, doc("Answers in the window.")]
    in_system_mean: Annotated[float, doc("Requests due and not yet ended.")]
    in_system_first: Annotated[float, doc("Mean over the first third.")]
    in_system_last: Annotated[float, doc("Mean over the last third.")]


class ProbeSize(Record, frozen=True, kw_only=True):
    """The least that a probe of --find-capacity must measure."""

    seconds: Annotated[float, doc("Of an open loop.")]
    answers: Annotated[int, doc("So that a share within a limit has a confidence bound.")]
    waves: Annotated[int | UnsetType, doc("Answers of each slot of a closed loop.")] = UNSET


class OutputTokens(Record, frozen=True, kw_only=True):
    """Tokens of the answers, as the server counts them."""

    total: Annotated[int | None, doc("Of the measured answers.")]
    source: Annotated[str | None, doc("usage, or null where the server reports none.")]
    tokens_per_event: Annotated[float | None, doc("Above 1 a gap between events is not one between tokens.")]
    unknown_gaps: Annotated[
        int, doc("Gaps that ITL leaves out: tokens without text came between the two events.")
    ] = 0


class TemplateTokens(Record, frozen=True, kw_only=True):
    """Prompt tokens that the chat template adds to the content."""

    min: Annotated[int, doc("Least of a request.")]
    max: Annotated[int, doc("Most of a request.")]


class AdapterFigures(Record, frozen=True, kw_only=True):
    """Cost of LoRA adapters, from medians over the cell. Latencies of each adapter are in `by_kind`."""

    count: Annotated[int, doc("That the server has.")]
    slots: Annotated[int | None, doc("In memory at once; null: all, or not known.")]
    swaps: Annotated[int, doc("Measured requests whose adapter was none of the last so many named.")]
    swap_ms: Annotated[
        float | None, doc("Their TTFT less that of adapters in memory; null: none of one kind.")
    ]
    ttft_over_base: Annotated[
        float | None, doc("Of adapters in memory over the base model; of others where all swap.")
    ]
    tpot_over_base: Annotated[float | None, doc("Of adapters in memory over the base model.")]


class ImageFigures(Record, frozen=True, kw_only=True):
    """Cost of images. Latencies of each count and sort are in `by_kind`."""

    sent: Annotated[int, doc("Images of the measured requests.")]
    sent_bytes: Annotated[int, doc("Of their files; base64 has a third more.")]
    ms_by_sort: Annotated[
        dict[str, float | None],
        doc("TTFT that one image adds, by size, format and state; null: only one count was answered."),
    ]
    cache_hit_rate: Annotated[
        float | None, doc("By the engine's counters over the whole cell, 0 to 1; null: it counts none.")
    ]


class ClassStats(Record, frozen=True, kw_only=True):
    """Statistics of the requests of one class."""

    requests: Annotated[int, doc("Measured ones.")]
    ok: Annotated[int, doc("Answered in full.")]
    ttft_ms: Annotated[LatencyStats, doc("As of the cell.")]
    itl_ms: Annotated[LatencyStats, doc("As of the cell.")]
    tpot_ms: Annotated[LatencyStats, doc("As of the cell.")]
    e2e_ms: Annotated[LatencyStats, doc("As of the cell.")]
    cached_share: Annotated[float | None, doc("Of the prompt tokens, 0 to 1.")]


class SessionCounts(Record, frozen=True, kw_only=True):
    """Recorded sessions that were to be measured, by how they ended."""

    planned: Annotated[int, doc("To be measured.")]
    ended: Annotated[int, doc("All of whose calls were answered in full.")]
    failed: Annotated[int, doc("Of which a call failed: it ends its session.")]
    cut: Annotated[int, doc("Not begun, or not at their end, when the cell was over.")]


class RoleFigures(Record, frozen=True, kw_only=True):
    """Work of the engines of one role, by their own counts. A prefill engine writes tokens too."""

    urls: Annotated[tuple[str, ...], doc("Where their metrics were read.")]
    prompt_tokens: Annotated[float | None, doc("That they were given, cached ones included.")]
    cached_prompt_tokens: Annotated[float | None, doc("Of these, from their caches.")]
    output_tokens: Annotated[float | None, doc("That they wrote.")]
    running: Annotated[float | None, doc("Mean number of requests at work.")]
    waiting: Annotated[float | None, doc("Mean number of requests that wait.")]
    kv_use: Annotated[float | None, doc("Fullest KV cache, 0 to 1.")]
    ttft_ms: Annotated[float | None, doc("Mean, by their own histogram.")]
    e2e_ms: Annotated[float | None, doc("Mean, by their own histogram.")]


class TtftSplit(Record, frozen=True, kw_only=True):
    """Mean TTFT of all answers, warm-up included, and its parts."""

    client_ms: Annotated[float, doc("From the send to the first text, as bench saw it.")]
    prefill_ms: Annotated[float, doc("E2E at the prefill engines: queue and prompt.")]
    decode_ms: Annotated[float, doc("TTFT at the decode engines, with the transfer of the KV cache.")]
    transfer_ms: Annotated[float | None, doc("Of decode_ms, that transfer; null: no engine counts it.")]
    rest_ms: Annotated[float, doc("What is left: the router and the network.")]


class Roles(Record, frozen=True, kw_only=True):
    """Engines behind one address that share the work on each request."""

    of: Annotated[dict[str, RoleFigures], doc("By role; nothing is added up over two.")]
    ttft_split: Annotated[TtftSplit | None, doc("Null: the engines did not count it.")]


class Replica(Record, frozen=True, kw_only=True):
    """Share of the measured requests that went to one of several URLs."""

    url: Annotated[str, doc("Of the server.")]
    requests: Annotated[int, doc("That went there.")]
    ok: Annotated[int, doc("Answered in full.")]
    failed: Annotated[int, doc("Ended in another way; what bench cancelled is left out.")]
    share: Annotated[float | None, doc("Of all requests that went anywhere, 0 to 1.")]
    ttft_ms: Annotated[LatencyStats, doc("As of the cell.")]
    tpot_ms: Annotated[LatencyStats | UnsetType, doc("As of the cell.")] = UNSET
    e2e_ms: Annotated[LatencyStats | UnsetType, doc("As of the cell.")] = UNSET
    cached_share: Annotated[
        float | UnsetType | None, doc("Of its prompt tokens, from its cache, 0 to 1; null: usage lacks it.")
    ] = UNSET
    output_tokens_per_s: Annotated[float | None, doc("Its part of the cell's; null: no token counts.")]


class Replicas(Record, frozen=True, kw_only=True):
    """Several servers of one model that shared the requests of a cell."""

    balance: Annotated[Balance, doc("How requests were spread.")]
    fairness: Annotated[
        float | None,
        doc("Jain's index of the output tokens/s, 1/n to 1: 1 where all URLs gave as many; null: not known."),
    ]
    urls: Annotated[tuple[Replica, ...], doc("Each, in the order given.")]


class Constraint(Record, frozen=True, kw_only=True):
    """Cost of constrained answers: the wait at the first use of a schema, and slower decoding."""

    first_use_ttft_ms: Annotated[float | None, doc("Median wait at the first use of a schema.")]
    later_ttft_ms: Annotated[float | None, doc("Median wait at later uses.")]
    first_uses: Annotated[int, doc("Schemas.")]
    later_uses: Annotated[int, doc("Requests.")]
    tpot_ratio: Annotated[float | None, doc("Constrained TPOT over free TPOT.")]


# `told` (whether the engine was asked for it), `asked` (how many), `rate`, and how many by verdict.
Counts = dict[str, bool | int | float | None]


class Answers(Record, frozen=True, kw_only=True):
    """Right and wrong answers by check and kind of request: `told`, asked, rate, and counts by verdict."""

    label: Annotated[dict[str, Counts] | UnsetType, doc("Labels.")] = UNSET
    structured: Annotated[dict[str, Counts] | UnsetType, doc("Structured output, by shape.")] = UNSET
    tool_call: Annotated[dict[str, Counts] | UnsetType, doc("Tool calls.")] = UNSET
    refusals: Annotated[dict[str, int] | UnsetType, doc("Why requests were refused, with counts.")] = UNSET

    @property
    def checks(self) -> dict[str, dict[str, Counts]]:
        """Counts by check and kind of request."""
        found = {"label": self.label, "structured": self.structured, "tool_call": self.tool_call}
        return {name: kinds for name, kinds in found.items() if not isinstance(kinds, UnsetType)}
