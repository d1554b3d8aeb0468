"""Figures of one cell that consist of several numbers."""

from typing import Annotated, Literal

from harness.model.record import UNSET, Record, UnsetType, doc

Number = int | float
_UPPER = "One-sided 95% upper confidence bound of the percentile, by order statistics."


class LatencyStats(Record, frozen=True, kw_only=True):
    """Statistics of a latency in ms. Null where the sample is too small for the percentile."""

    mean: Annotated[float | None, doc("Mean of the samples that are finite; null: there is none.")]
    p50: Annotated[float | None, doc("Median; null: fewer than 5 samples, or too many failed.")]
    p50_upper: Annotated[float | None, doc(_UPPER)] = None
    p50_gap: Annotated[
        tuple[float, float] | UnsetType,
        doc(
            "Ends of a gap between two groups of samples that the median lies in, or could as well lie on "
            "the other side of, ms; missing: there is none, or fewer than 32 samples."
        ),
    ] = UNSET
    p90: Annotated[float | None, doc("90th percentile; null: fewer than 29 samples, or too many failed.")]
    p90_upper: Annotated[float | None, doc(_UPPER)] = None
    p95: Annotated[float | None, doc("95th percentile; null: fewer than 59 samples, or too many failed.")]
    p95_upper: Annotated[float | None, doc(_UPPER)] = None
    p99: Annotated[float | None, doc("99th percentile; null: fewer than 299 samples, or too many failed.")]
    p99_upper: Annotated[float | None, doc(_UPPER)] = None


class Requests(Record, frozen=True, kw_only=True):
    """Counts of the measured phase; warm-up apart."""

    planned: Annotated[int, doc("Requests planned for the measured phase.")]
    unsent: Annotated[int, doc("Requests that never became due, warm-up included.")]
    sent: Annotated[int, doc("Measured requests that were sent.")]
    ok: Annotated[int, doc("Measured requests that were answered in full.")]
    failed: Annotated[int, doc("Measured requests that failed; dropped, cancelled, abandoned apart.")]
    dropped: Annotated[int, doc("Measured requests due and never sent: at the in-flight cap, or at the end.")]
    cancelled: Annotated[int, doc("Measured requests that ended because a person stopped the run.")]
    impatient: Annotated[int | UnsetType, doc("Requests whose users hang up; missing: nobody does.")] = UNSET
    resent: Annotated[int | None, doc("Requests sent again; null: attempts were not recorded.")] = None
    warmup: Annotated[int, doc("Warm-up requests that became due, however they ended.")]
    outcomes: Annotated[dict[str, int], doc("Measured requests by outcome: docs/metrics.md.")]

    @property
    def due(self) -> int:
        """Measured requests that became due: a duration, or a person, may end the load before all do."""
        return sum(self.outcomes.values())

    @property
    def abandoned(self) -> int:
        return self.outcomes.get("abandoned", 0)


class Arrivals(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Open loop: arrivals as asked and as sent, with limits and a verdict."""

    process: Annotated[str | None, doc("Declared arrival process; null: not known.")]
    arrivals: Annotated[int, doc("Requests sent by the schedule; later turns of chats have none.")]
    against: Annotated[
        str | None, doc("Reference of the test: a process, or the schedule itself; null: not tested.")
    ] = None
    asked: Annotated[
        dict[str, float] | None,
        doc("Figures of the schedule: rate_per_s, gap_cv, dispersion; null: too few."),
    ] = None
    achieved: Annotated[
        dict[str, float] | None,
        doc("Figures of the sends: rate_per_s, gap_cv, dispersion, and ks (Kolmogorov-Smirnov)."),
    ] = None
    limits: Annotated[
        dict[str, list[float]] | None, doc("Lowest and highest value by chance, for each figure.")
    ] = None
    verdict: Annotated[
        Literal["kept", "differs", "not tested"],
        doc("Whether all figures of the sent requests lie within their limits."),
    ]
    reason: Annotated[
        str | UnsetType | None,
        doc("Figures outside their limits, or why nothing was tested; null: all inside."),
    ] = UNSET


class Law(Record, frozen=True):
    """A relation that must hold between figures of the cell: docs/metrics.md."""

    law: Annotated[str, doc("Law in words: docs/metrics.md.")]
    measured: Annotated[Number | None, doc("Measured side of the law, in its own unit; null: not known.")] = (
        None
    )
    expected: Annotated[Number | None, doc("Predicted side of the law, in its unit; null: not known.")] = None
    tolerance: Annotated[Number | None, doc("Largest difference that the edges of the window allow.")] = None
    holds: Annotated[bool | None, doc("Whether the law holds within the tolerance; null: not judged.")] = None
    why: Annotated[str | None, doc("Reason that it was not judged; null: it was.")] = None


class Limit(Record, frozen=True, kw_only=True):
    """One latency limit of the scenario."""

    metric: Annotated[str, doc("Latency that is limited, such as ttft_ms.")]
    share: Annotated[str, doc("Share of the requests that must be inside the limit: p50 to p99, or max.")]
    limit_ms: Annotated[Number, doc("Highest latency that keeps the limit.")]
    within: Annotated[float, doc("Share of the measured requests inside the limit, 0 to 1.")]
    met: Annotated[bool, doc("Whether the share inside the limit is at least the one asked for.")]


def share_of(name: str) -> float:
    """Share of requests that a limit is for: p95 is 0.95, max is 1."""
    return 1.0 if name == "max" else float(name.removeprefix("p")) / 100


class Slo(Record, frozen=True, kw_only=True):
    """Share of good requests, and each limit with what it was kept by."""

    limits: Annotated[tuple[Limit, ...], doc("Limits of the scenario's [slo], each with the share inside.")]
    met: Annotated[bool, doc("Whether every limit is met.")]
    good: Annotated[int, doc("Measured requests answered inside the loosest limit of every latency.")]
    requests: Annotated[int, doc("Measured requests; those that a person cancelled are left out.")]
    attainment: Annotated[float, doc("Share of good requests among the measured ones, 0 to 1.")]
    good_token_share: Annotated[
        float | UnsetType | None,
        doc("Share of the output tokens in good requests, 0 to 1; null: not counted."),
    ] = UNSET


class Standstill(Record, frozen=True, kw_only=True):
    """Time of the measured part for which the load process that stood still longest did not run."""

    lost_ms: Annotated[float, doc("Time that the worst load process stood still, in stalls from 100 ms on.")]
    share: Annotated[float, doc("Lost time as a share of the measured part, first send to last end; 0 to 1.")]
    longest_ms: Annotated[float, doc("Longest stall of the worst load process.")]
    at_s: Annotated[
        float | None, doc("Start of the longest stall, s from the start of the cell; null: there was none.")
    ] = None
    hit_share: Annotated[
        float, doc("Share of the answers that a stall of their process made over 10% longer; 0 to 1.")
    ]
    who: Annotated[
        Literal["machine", "client"] | None,
        doc("Stalled party: machine (the sampler too, and nothing arrived) or client; null: nobody."),
    ] = None
    sampler_ms: Annotated[
        float | None, doc("Lost time in which the sampler stood still too; null: not known.")
    ] = None
    arrived_meanwhile: Annotated[
        int | None, doc("Server events that the kernel stamped in the lost time; null: it stamps none.")
    ] = None


class EngineStall(Record, frozen=True, kw_only=True):
    """A time in which nothing came from the engine though it had requests and the load generator ran."""

    at_s: Annotated[float, doc("Start of the silence, s from the start of the cell.")]
    lasted_ms: Annotated[float, doc("Length of the silence, within 50 ms.")]
    in_flight: Annotated[int, doc("Requests in flight when the silence ended.")]
    silences: Annotated[
        int | UnsetType, doc("Silences that cut answers, where there were several; missing: this one alone.")
    ] = UNSET
    silent_ms: Annotated[float | UnsetType, doc("Sum of these, ms.")] = UNSET


class SteadyState(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of ramp, steady part and drain; missing: nothing was tested."""

    state: Annotated[str, doc("Verdict: steady, stall, ramp kept, not steady, not tested or unknown.")]
    why: Annotated[str | None, doc("Difference by shape and size, or why nothing was tested; null: none.")]
    fixed_s: Annotated[float | None, doc("First measured send, s from the start of the cell.")] = None
    start_s: Annotated[float | None, doc("Start of the steady part, s from the start of the cell.")] = None
    end_s: Annotated[float | None, doc("Last send, s from the start of the cell.")] = None
    drained_s: Annotated[float | None, doc("Last end of a request, s from the start of the cell.")] = None
    cuts: Annotated[dict[str, int] | None, doc("Batches before the steady part, by figure.")] = None
    removed: Annotated[int | None, doc("Requests removed as warm-up by a rule; 0 since version 0.2.")] = None
    ramp_requests: Annotated[
        int | None, doc("Measured requests before the steady part, kept in all figures.")
    ] = None
    cold_misses: Annotated[bool | None, doc("Whether requests fill an empty cache, as is intended.")] = None
    drift: Annotated[
        dict[str, float | None] | None, doc("Relative change by a drift or a step, by figure; null: none.")
    ] = None
    shapes: Annotated[
        dict[str, str | None] | None,
        doc("Shape of the change: ramp, drift, step or stall, by figure; null: none."),
    ] = None


class Synchrony(Record, frozen=True, kw_only=True):
    """Closed loop: whether slots send together."""

    index: Annotated[float, doc("Synchrony of the sends: 0 evenly or by chance, 1 in lockstep.")]
    limit: Annotated[float, doc("Index above which sends come in bursts.")]
    waves: Annotated[int, doc("Waves that were measured: as many sends as slots each.")]
    groups: Annotated[int, doc("Bursts per period that the index is about: 1 or 2.")]
    in_bursts: Annotated[bool, doc("Whether the index is above the limit.")]
    burst: Annotated[float, doc("Requests in one burst: slots divided by groups.")]


class Sample(Record, frozen=True, kw_only=True):
    """Time and answers of the measured phase, against the least that the scenario declares enough."""

    seconds: Annotated[float, doc("Time from the first measured send to the end of the last measured one.")]
    answers: Annotated[int, doc("Measured requests that were answered.")]
    min_seconds: Annotated[float, doc("Least measured time that the scenario declares enough.")]
    min_answers: Annotated[int, doc("Least answers that the scenario declares enough.")]


class Backlog(Record, frozen=True, kw_only=True):
    """Backlog of an open loop: arrivals and answers, and requests in the system early and late."""

    probed_s: Annotated[float, doc("Time from the first to the last measured arrival.")]
    window_s: Annotated[
        float, doc("Time that the other figures cover: probed_s without the fill at its start.")
    ]
    arrivals: Annotated[int, doc("Requests that became due in the window.")]
    answered: Annotated[int, doc("Requests whose answers ended in the window.")]
    in_system_mean: Annotated[float, doc("Requests due and not yet ended, mean over the window.")]
    in_system_first: Annotated[
        float, doc("Requests due and not yet ended, mean over the window's first third.")
    ]
    in_system_last: Annotated[
        float, doc("Requests due and not yet ended, mean over the window's last third.")
    ]


class ProbeSize(Record, frozen=True, kw_only=True):
    """The least that a probe of --find-capacity must measure."""

    seconds: Annotated[float, doc("Least length of a probe of an open loop.")]
    answers: Annotated[int, doc("Least answers, so that a share within a limit has a confidence bound.")]
    waves: Annotated[int | UnsetType, doc("Least answers of each slot of a closed loop.")] = UNSET


class OutputTokens(Record, frozen=True, kw_only=True):
    """Tokens of the answers, as the server counts them."""

    total: Annotated[int | None, doc("Output tokens of the measured answers; null: one was not counted.")]
    source: Annotated[str | None, doc("Source of the counts: usage; null: the server reports none.")]
    tokens_per_event: Annotated[float | None, doc("Tokens per text event; above 1 a gap spans several.")]
    unknown_gaps: Annotated[int, doc("Gaps that ITL leaves out: tokens without text came in them.")] = 0


class TemplateTokens(Record, frozen=True, kw_only=True):
    """Prompt tokens that the chat template adds to the content."""

    min: Annotated[int, doc("Fewest prompt tokens that the template adds to a request.")]
    max: Annotated[int, doc("Most prompt tokens that the template adds to a request.")]


class AdapterFigures(Record, frozen=True, kw_only=True):
    """Cost of LoRA adapters, from medians over the cell. Latencies of each adapter are in `by_kind`."""

    count: Annotated[int, doc("LoRA adapters that requests may name.")]
    slots: Annotated[int | None, doc("Adapters that are in memory at once; null: all, or not known.")]
    swaps: Annotated[
        int, doc("Measured requests with a swap: an adapter that is none of the last `slots` named.")
    ]
    swap_ms: Annotated[
        float | None,
        doc("Median TTFT with a swap less that with an adapter and no swap; null: none of one kind."),
    ]
    ttft_over_base: Annotated[
        float | None,
        doc("Median TTFT with an adapter and no swap (a swap, if all have one) over the base model's."),
    ]
    tpot_over_base: Annotated[
        float | None, doc("Median TPOT with an adapter and no swap over the base model's.")
    ]


class ImageFigures(Record, frozen=True, kw_only=True):
    """Cost of images. Latencies of each count and sort are in `by_kind`."""

    sent: Annotated[int, doc("Images in the measured requests.")]
    sent_bytes: Annotated[int, doc("Size of the image files; base64 makes it a third larger.")]
    ms_by_sort: Annotated[
        dict[str, float | None],
        doc("TTFT that one image adds, ms, by size, format and state; null: only one count was answered."),
    ]
    cache_hit_rate: Annotated[
        float | None,
        doc("Share of images found in the engine's cache, whole cell, 0 to 1; null: not counted."),
    ]


class ClassStats(Record, frozen=True, kw_only=True):
    """Statistics of the requests of one class."""

    requests: Annotated[int, doc("Measured requests of the class.")]
    ok: Annotated[int, doc("Measured requests of the class that were answered in full.")]
    ttft_ms: Annotated[LatencyStats, doc("TTFT of the class, defined as the cell's.")]
    itl_ms: Annotated[LatencyStats, doc("ITL of the class, defined as the cell's.")]
    tpot_ms: Annotated[LatencyStats, doc("TPOT of the class, defined as the cell's.")]
    e2e_ms: Annotated[LatencyStats, doc("E2E of the class, defined as the cell's.")]
    cached_share: Annotated[float | None, doc("Share of cached prompt tokens, 0 to 1; null: usage lacks it.")]
    tokens_per_event: Annotated[float | None, doc("Tokens per text event; null: not counted.")] = None


class SessionCounts(Record, frozen=True, kw_only=True):
    """Recorded sessions that were to be measured, by how they ended."""

    planned: Annotated[int, doc("Sessions that were to be measured.")]
    ended: Annotated[int, doc("Sessions whose calls were all answered in full.")]
    failed: Annotated[int, doc("Sessions that a failed call ended.")]
    cut: Annotated[int, doc("Sessions that were not at their end when the cell was over; see `not_begun`.")]
    not_begun: Annotated[int, doc("Sessions of `cut` without a call.")]
    calls_mean: Annotated[float | None, doc("Mean calls of those ended or failed; null: none.")] = None


class Constraint(Record, frozen=True, kw_only=True):
    """Cost of constrained answers: the wait at the first use of a schema, and slower decoding."""

    first_use_ttft_ms: Annotated[float | None, doc("Median wait for the first text at a schema's first use.")]
    later_ttft_ms: Annotated[float | None, doc("Median wait for the first text at a schema's later uses.")]
    first_uses: Annotated[int, doc("Answers at the first use of a schema: one for each schema.")]
    later_uses: Annotated[int, doc("Answers at later uses of a schema.")]
    tpot_ratio: Annotated[float | None, doc("Median TPOT of constrained answers over that of free ones.")]


# `constrained` (whether the request carried the check), `asked` (how many), `rate`, and how many by verdict.
Counts = dict[str, bool | int | float | None]


class Answers(Record, frozen=True, kw_only=True):
    """Right and wrong answers by check and kind of request: `constrained`, asked, rate, counts by verdict."""

    label: Annotated[dict[str, Counts] | UnsetType, doc("Right and wrong labels by kind.")] = UNSET
    structured: Annotated[dict[str, Counts] | UnsetType, doc("Right and wrong answers by shape.")] = UNSET
    tool_call: Annotated[dict[str, Counts] | UnsetType, doc("Right and wrong tool calls by kind.")] = UNSET
    refusals: Annotated[
        dict[str, int] | UnsetType, doc("Refused requests by the server's reason, the 20 most frequent ones.")
    ] = UNSET

    @property
    def checks(self) -> dict[str, dict[str, Counts]]:
        """Counts by check and kind of request."""
        found = {"label": self.label, "structured": self.structured, "tool_call": self.tool_call}
        return {name: kinds for name, kinds in found.items() if not isinstance(kinds, UnsetType)}
