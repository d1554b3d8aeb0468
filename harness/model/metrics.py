"""Every metric of a cell, declared once: schema, docs, tables, charts, limits and verdicts follow from it."""

from typing import Annotated

from harness.model.latencies import Timed
from harness.model.metric import OF_ANSWERS, OF_LENGTH, OF_TOKENS, Charts, Column, Metric


class Measured(Timed, frozen=True, kw_only=True):
    """A cell's metrics, in the order in which tables show them: after the latencies."""

    model_time_share: Annotated[
        float | None,
        Metric(
            family="share",
            short="time in the model",
            title="Time of sessions in the model",
            about="Share of the time of the sessions that ended in which at least one call was in flight, 0 "
            "to 1.",
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
            about="Share of the time of the sessions that ended in which no call was in flight and the next "
            "one waited for a tool, 0 to 1. What is left is the time of people.",
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
            about="Output tokens that the server counts as reasoning, per second of the window, weighted as "
            "in `output_tokens_per_s`.",
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
            about="Output tokens without reasoning, per second of the window, weighted as in "
            "`output_tokens_per_s`; null without reasoning.",
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
            about="Prompt tokens of the answers, per second of the window, weighted as in "
            "`output_tokens_per_s`.",
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
            about="Texts that were embedded, or documents that were ranked, per second of the window, "
            "weighted as in `requests_per_s`.",
            distorted_by=OF_LENGTH,
            columns=(Column(head=("items", "", "/s"), presence="where it applies"),),
            charts=Charts(stem="items", papers=("",)),
        ).meta,
    ] = None
    audio_s_per_s: Annotated[
        float | None,
        Metric(
            family="rate",
            short="audio",
            title="Audio transcribed",
            own_unit="s/s",
            about="Seconds of audio in the recordings that were transcribed, per second of the window, "
            "weighted as in `requests_per_s`: by their length in the files that were sent, silence "
            "included.",
            distorted_by=OF_ANSWERS,
            columns=(Column(head=("audio", "", "s/s"), presence="where it applies"),),
            charts=Charts(stem="audio"),
        ).meta,
    ] = None
    output_chars_per_s: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="rate",
            short="output text",
            title="Throughput in characters",
            own_unit="characters/s",
            about="Characters of the answers, per second of the window, weighted as in "
            "`output_tokens_per_s`. They compare between tokenizers.",
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
            about="Answers inside the loosest limit of every latency in `[slo]`, per second of the window, "
            "weighted as in `requests_per_s`.",
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
            about="Share of the prompt tokens, 0 to 1, that came from behind the KV cache, such as from "
            "host memory: the part of `prefix_cache_hit_rate` that the engine counts so over the whole "
            "cell.",
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
            "another, chat template left out; of the requests that the hit rate is of. Several URLs have a "
            "cache each.",
            compared=False,
        ).meta,
    ]
    structured_valid_rate: Annotated[
        float | None,
        Metric(
            family="share",
            short="answers that fit the schema",
            title="Answers that fit the schema",
            about="Share of the whole answers that have the form asked for, 0 to 1.",
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
            about="Share of the whole answers with right tool calls, 0 to 1.",
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
            about="Share of the answers with the right label, 0 to 1.",
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
            about="TTFT that one fresh image adds, from the median TTFT of requests with the most and with "
            "the fewest images.",
            columns=(Column(head=("per", "image", "ms"), presence="where it applies"),),
            charts=Charts(stem="images"),
        ).meta,
    ] = None
    tokens_after_hang_up: Annotated[
        float | None,
        Metric(
            of_text=True,
            family="price",
            short="tokens after a hang-up",
            title="Users who hang up",
            own_unit="tok",
            about="Output tokens that the engine generated after its user had hung up, by its counter: mean "
            "of these requests.",
            compared=False,  # it may be 0, which has no ratio
            per_request=False,
            columns=(Column(head=("after", "hang-up", "tok"), presence="where it applies"),),
            charts=Charts(stem="hang-up"),
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
    cost_per_thousand_requests: Annotated[
        float | None,
        Metric(
            family="price",
            short="cost of a thousand answers",
            title="Cost of answers",
            about="Price of a thousand answers, in the currency of the price given: `requests_per_s` for the "
            "price of an hour.",
            compared=False,
            columns=(Column(head=("cost", "1k req", ""), presence="when asked for"),),
            charts=Charts(stem="cost-requests"),
        ).meta,
    ] = None
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
