"""Every metric of a cell, declared once: schema, docs, tables, charts, limits and verdicts follow from it."""

from typing import Annotated

from harness.model.figures import LatencyStats
from harness.model.identity import Identity
from harness.model.metric import OF_ANSWERS, OF_LENGTH, OF_TOKENS, Charts, Column, Metric


class Measured(Identity, frozen=True, kw_only=True):
    """A cell's metrics, in the order in which tables show them."""

    ttft_ms: Annotated[
        LatencyStats,
        Metric(
            of_text=True,
            family="latency",
            span=("start_ns", "first_text_ns"),
            short="TTFT",
            title="Time to first token",
            about="From the intended send (in a closed loop: the actual one) to the first event that carries "
            "generated text: content, reasoning or tool-call text, never a role-only or empty delta.",
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
            about="From the actual send to the first event that carries generated text. Time spent "
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
            about="From the start to the first event of reasoning, of the answers that have it. "
            "The TTFT counts from the same event.",
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
            about="From the start to the first event with content or a tool call, where answers begin with "
            "reasoning. An answer that ended before its reasoning did counts as never reached.",
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
            "left out (`output_tokens.unknown_gaps`).",
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
            about="(last text event − first) / (output tokens − those of the first arrival), per request; "
            "answers of one token, or that came at once, have none.",
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
            about="From the intended send (in a closed loop: the actual one) to the last event that carries "
            "generated text. Vectors and scores come whole: to the end of that answer.",
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
            about="Of recorded sessions, from the start of the first call to the end of the last one, tools "
            "and people included. A session ends with its first call that fails, and never gets there.",
            per_request=False,
            of_session=True,
            distorted_by=("answers", "output-length", "output-text"),
            columns=(Column(statistic="p50", presence="where it applies"),),
            charts=Charts(stem="session", load=("p50", "p90")),
        ).meta,
    ] = None
    model_time_share: Annotated[
        float | None,
        Metric(
            family="share",
            short="time in the model",
            title="Time of sessions in the model",
            about="Of the time of the sessions that ended, the share in which at least one call was in "
            "flight, 0 to 1.",
            compared=False,
            columns=(Column(head=("in", "model", "%"), presence="where it applies"),),
        ).meta,
    ] = None
    tool_time_share: Annotated[
        float | None,
        Metric(
            family="share",
            short="time in tools",
            title="Time of sessions in tools",
            about="Of the same time, the share in which no call was in flight and the next one waited for a "
            "tool, 0 to 1. What is left is the time of people.",
            compared=False,
            columns=(Column(head=("in", "tools", "%"), presence="where it applies"),),
        ).meta,
    ] = None
    output_tokens_per_s: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="rate",
            counts="output_tokens",
            short="output",
            title="Throughput",
            own_unit="tokens/s",
            about="Output tokens of the answers, each by the share of its work that lies inside the window, "
            "per second of the window.",
            distorted_by=OF_TOKENS,
            columns=(Column(head=("output", "", "tok/s")),),
            charts=Charts(stem="throughput", papers=("",)),
        ).meta,
    ]
    reasoning_tokens_per_s: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="rate",
            counts="reasoning_tokens",
            short="reasoning",
            title="Reasoning throughput",
            own_unit="tokens/s",
            about="Output tokens that the server counts as reasoning, by the same shares.",
            distorted_by=OF_TOKENS,
        ).meta,
    ] = None
    answer_tokens_per_s: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="rate",
            short="answer",
            title="Answer throughput",
            own_unit="tokens/s",
            about="Output tokens without reasoning, by the same shares; null without reasoning.",
            distorted_by=OF_TOKENS,
            columns=(Column(head=("answer", "", "tok/s"), presence="where it applies"),),
        ).meta,
    ] = None
    input_tokens_per_s: Annotated[
        float | None,
        Metric(
            family="rate",
            counts="prompt_tokens",
            short="input",
            title="Input throughput",
            own_unit="tokens/s",
            about="Prompt tokens of the answers, by the same shares.",
            distorted_by=OF_LENGTH,
            columns=(Column(head=("input", "", "tok/s"), presence="without text"),),
        ).meta,
    ]
    requests_per_s: Annotated[
        float | None,
        Metric(
            family="rate",
            short="requests",
            title="Answers",
            own_unit="per s",
            about="Answers of any phase, each by the share of its work that lies inside the window, per "
            "second of the window.",
            distorted_by=OF_ANSWERS,
            columns=(Column(head=("done", "", "req/s")),),
            charts=Charts(stem="requests"),
        ).meta,
    ]
    items_per_s: Annotated[
        float | None,
        Metric(
            family="rate",
            short="items",
            title="Items",
            own_unit="items/s",
            about="Texts that were embedded, or documents that were ranked, by the same shares.",
            distorted_by=OF_LENGTH,
            columns=(Column(head=("items", "", "/s"), presence="where it applies"),),
            charts=Charts(stem="items", papers=("",)),
        ).meta,
    ] = None
    output_chars_per_s: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="rate",
            short="output",
            title="Throughput in characters",
            own_unit="characters/s",
            about="Characters of the answers, by the same shares. They compare between tokenizers.",
            distorted_by=OF_LENGTH,
        ).meta,
    ]
    goodput_requests_per_s: Annotated[
        float | None,
        Metric(
            family="rate",
            short="goodput",
            title="Goodput",
            own_unit="requests/s",
            about="Answers inside every limit of `[slo]`, by the same shares.",
            distorted_by=OF_ANSWERS,
            columns=(Column(head=("goodput", "", "req/s"), presence="when asked for"),),
            charts=Charts(stem="goodput", papers=("",)),
        ).meta,
    ]
    prefix_cache_hit_rate: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="share",
            short="cached share of prompt tokens",
            title="Prefix-cache hits",
            about="Cached share of the prompt tokens of the measured answers, 0 to 1, from their usage "
            "blocks; else from the engine's counters over the whole cell. `prefix_cache_source` says which.",
            ideal="prefix_cache_ideal",
            columns=(Column(head=("cache", "hit", "%")),),
            charts=Charts(stem="cache", papers=("",)),
        ).meta,
    ]
    host_cache_hit_rate: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="share",
            short="share of prompt tokens from host memory",
            title="Hits behind the KV cache",
            about="Share of the prompt tokens, 0 to 1, that came from behind the KV cache, such as from host "
            "memory: of `prefix_cache_hit_rate` the part that the engine counts so over the whole cell.",
        ).meta,
    ] = None
    prefix_cache_ideal: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="share",
            short="ideal",
            title="Ideal prefix-cache hits",
            about="Share of the requests' own tokens, 0 to 1, that an unlimited cache could reuse, one after "
            "another, chat template left out; of the requests that the hit rate is of.",
            compared=False,
        ).meta,
    ]
    structured_valid_rate: Annotated[
        float | None,
        Metric(
            family="share",
            short="answers that fit the schema",
            title="Answers that fit the schema",
            about="Answers of the form asked for among the whole ones, 0 to 1.",
            columns=(Column(head=("valid", "form", "%"), presence="when asked for"),),
            charts=Charts(stem="valid"),
        ).meta,
    ]
    tool_call_valid_rate: Annotated[
        float | None,
        Metric(
            family="share",
            short="right tool calls",
            title="Right tool calls",
            about="Right tool calls among the whole answers, 0 to 1.",
            compared=False,
            columns=(Column(head=("valid", "calls", "%"), presence="when asked for"),),
        ).meta,
    ]
    label_accuracy: Annotated[
        float | None,
        Metric(
            family="share",
            short="right labels",
            title="Right labels",
            about="Right labels among the answers, 0 to 1.",
            compared=False,
            columns=(Column(head=("right", "labels", "%"), presence="when asked for"),),
        ).meta,
    ]
    victim_loss: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="price",
            short="loss of the victim",
            title="Interference",
            own_unit="×",
            about="Mean E2E of the light requests of a victim probe next to heavy ones, over that of those "
            "alone; 1: nothing is lost.",
            per_request=False,
            distorted_by=OF_ANSWERS,
            columns=(Column(head=("victim", "loss", "×"), presence="where it applies"),),
            charts=Charts(stem="victim"),
        ).meta,
    ] = None
    image_ms: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="price",
            short="TTFT that an image adds",
            title="Images",
            own_unit="ms",
            about="TTFT that one fresh image adds, by the medians of requests with the most and the fewest.",
            columns=(Column(head=("per", "image", "ms"), presence="where it applies"),),
            charts=Charts(stem="images"),
        ).meta,
    ] = None
    cost_per_million_output_tokens: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="price",
            short="cost of a million output tokens",
            title="Cost",
            about="Price of a million output tokens, in the currency of the price given.",
            distorted_by=OF_TOKENS,
            columns=(Column(head=("cost", "1M tok", ""), presence="when asked for"),),
            charts=Charts(stem="cost", papers=("",)),
        ).meta,
    ]
    joules_per_output_token: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="price",
            short="energy of an output token",
            title="Energy",
            own_unit="J",
            about="Energy of an output token, idle power included.",
            distorted_by=OF_TOKENS,
            columns=(Column(head=("energy", "", "J/tok"), presence="when asked for"),),
            charts=Charts(stem="energy"),
        ).meta,
    ]
