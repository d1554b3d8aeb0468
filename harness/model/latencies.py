"""The latencies of a cell, declared once: what `metrics` says of its metrics holds for them."""

from typing import Annotated

from harness.model.figures import LatencyStats
from harness.model.identity import Identity
from harness.model.metric import OF_TOKENS, Charts, Column, Metric


class Timed(Identity, frozen=True, kw_only=True):
    """A cell's latencies, in the order in which tables show them."""

    ttft_ms: Annotated[
        LatencyStats,
        Metric(
            of_text=True,
            family="latency",
            span=("start_ns", "first_text_ns"),
            short="TTFT",
            title="Time to first token",
            about="Time from the intended send (in a closed loop: the actual one) to the first event that "
            "carries generated text: content, reasoning or tool-call text, never a role-only or empty "
            "delta.",
            distorted_by=("queued-output-length",),
            columns=(
                Column(statistic="p50"),
                Column(statistic="p90"),
                Column(statistic="p99", presence="when known"),
            ),
            charts=Charts(
                stem="ttft",
                load=("p50", "p90", "p99"),
                rate=("p50", "p90"),
                papers=("p50", "p90"),
                distribution="papers",
            ),
        ).meta,
    ]
    ttft_service_ms: Annotated[
        LatencyStats,
        Metric(
            of_text=True,
            family="latency",
            span=("sent_ns", "first_text_ns"),
            short="TTFT from the actual send",
            title="Time to first token from the actual send",
            about="Time from the actual send to the first event that carries generated text. Time spent "
            "connecting lies before it: it is stored as `connect_ns`.",
            distorted_by=("queued-output-length",),
        ).meta,
    ]
    ttft_reasoning_ms: Annotated[
        LatencyStats | None,
        Metric(
            of_text=True,
            family="latency",
            short="TTFT reasoning",
            title="Time to first reasoning token",
            about="Time from the intended send (in a closed loop: the actual one) to the first event of "
            "reasoning, of the answers that have it. The TTFT ends with the same event.",
            per_request=False,
            distorted_by=("queued-output-length",),
        ).meta,
    ] = None
    ttft_answer_ms: Annotated[
        LatencyStats | None,
        Metric(
            of_text=True,
            family="latency",
            span=("start_ns", "first_answer_ns"),
            short="TTFT answer",
            title="Time to first answer token",
            about="Time from the intended send (in a closed loop: the actual one) to the first event with "
            "content or a tool call, where answers begin with reasoning. An answer that ended before its "
            "reasoning did counts as never reached.",
            distorted_by=("queued-output-length", "output-length"),
            columns=(Column(statistic="p50", presence="where it applies"),),
        ).meta,
    ] = None
    itl_ms: Annotated[
        LatencyStats,
        Metric(
            of_text=True,
            family="latency",
            short="ITL",
            title="Inter-token latency",
            about="Gaps between successive arrivals of text in one answer, pooled over requests. Events that "
            "came as one are one arrival (`events_per_arrival`), and an event may carry several tokens "
            "(`output_tokens.tokens_per_event`): that is one gap. A gap in which tokens without text came is "
            "left out (`output_tokens.unknown_gaps`), and so are those of failed requests.",
            per_request=False,
            distorted_by=("output-length", "tokens-per-event"),
            columns=(Column(statistic="p50"),),
            charts=Charts(stem="itl", load=("p50", "p99"), distribution="papers"),
        ).meta,
    ]
    tpot_ms: Annotated[
        LatencyStats,
        Metric(
            of_text=True,
            family="latency",
            short="TPOT",
            title="Time per output token",
            about="Time per output token of a request: (last text event − first) / (output tokens − those "
            "of the first arrival); answers of one token, or that came at once, have none. A failed request "
            "counts as never reached.",
            distorted_by=OF_TOKENS,
            columns=(Column(statistic="p50"),),
            charts=Charts(stem="tpot", load=("p50",), rate=("p50",), distribution="page"),
        ).meta,
    ]
    e2e_ms: Annotated[
        LatencyStats,
        Metric(
            family="latency",
            span=("start_ns", "last_text_ns"),
            short="E2E",
            title="End-to-end latency",
            about="Time from the intended send (in a closed loop: the actual one) to the last event that "
            "carries generated text. Vectors, scores and transcripts come whole: to the end of that answer.",
            distorted_by=("output-length", "output-text"),
            columns=(Column(statistic="p50"),),
            charts=Charts(stem="e2e", load=("p50", "p90"), rate=("p50",), distribution="page"),
        ).meta,
    ]
    session_ms: Annotated[
        LatencyStats | None,
        Metric(
            family="latency",
            short="session",
            title="Time to the last call",
            about="Time of a recorded session from the start of the first call to the end of the last one, "
            "tools and people included. A session ends with its first call that fails, and never gets "
            "there.",
            per_request=False,
            of_stamps=False,
            distorted_by=("answers", "output-length", "output-text"),
            columns=(Column(statistic="p50", presence="where it applies"),),
            charts=Charts(stem="session", load=("p50", "p90")),
        ).meta,
    ] = None
    real_time_factor: Annotated[
        LatencyStats | None,
        Metric(
            family="latency",
            own_unit="s/s",
            short="real-time factor",
            title="Real-time factor",
            about="Ratio of `e2e_ms` to the length of the audio in the file that was sent, for each "
            "recording: below 1, it is transcribed in less time than it lasts. Waiting in the server's "
            "queue is in it.",
            per_request=False,
            of_stamps=False,
            distorted_by=("output-length", "output-text"),
            columns=(Column(statistic="p50", head=("RTF", "p50", "s/s"), presence="where it applies"),),
            charts=Charts(stem="real-time-factor", load=("p50",)),
        ).meta,
    ] = None
