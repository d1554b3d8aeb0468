"""The definitions of each tool, each with one line on how it differs from the one here. Imported figures of
two tools are compared where their lines are equal: what differs has lines that differ.

Read in vllm 0.32.0 and 0.33.0 `vllm/benchmarks`, sglang 0.5.23 `sglang/benchmark/serving.py`, aiperf 0.13.0
`metrics/types`, guidellm 0.8.1 `schemas` and `backends/openai/http.py`, inference-perf 0.7.0
`reportgen/base.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.metrics.peers.answers import Answers
from harness.metrics.view import Floats

Measure = Literal["TTFT", "ITL", "TPOT", "E2E", "output", "requests"]
Percentile = Literal["linear", "inverted_cdf"]


@dataclass(frozen=True, slots=True)
class Sample:
    values: Floats
    weights: Floats | None = None


Measures = Mapping[Measure, Sample | float]


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    compute: Callable[[Answers], Measures]
    why: Mapping[Measure, str]
    percentile: Percentile = "linear"
    together: bool = False  # it sends the first requests of a closed loop all at once
    usage_alone: bool = False  # usage in a chunk with a choice is not seen: its tokenizer counts the text


def _rates(answers: Answers, ended: float | None = None) -> Measures:
    """Rates over the wall time of the load, ramp and drain included, to `ended` or the latest end."""
    span_s = ((answers.ended if ended is None else ended) - answers.begun) / 1e3
    if span_s <= 0:  # a damaged file of another tool
        return {}
    return {"output": answers.answered_tokens / span_s, "requests": answers.answered / span_s}


def _per_token(spans: Floats, tokens: Floats) -> Floats:
    many = tokens > 1
    return spans[many] / (tokens[many] - 1)


def _streamed(answers: Answers, start: Floats, first: Floats, last: Floats, gaps: Floats) -> Measures:
    """The measures of a tool that takes all times from the same events. ms, one per answer; `gaps` are
    pooled."""
    return {
        "TTFT": Sample(first - start),
        "ITL": Sample(gaps),
        "TPOT": Sample(_per_token(last - first, answers.tokens)),
        "E2E": Sample(last - start),
        **_rates(answers),
    }


def _vllm(answers: Answers) -> Measures:
    start = answers.sent - answers.connect
    return _streamed(answers, start, answers.first_choice, answers.last_choice, answers.choice_gaps)


def _vllm_text(answers: Answers) -> Measures:
    start = answers.sent - answers.connect
    return _streamed(answers, start, answers.first_text, answers.last_text, answers.text_gaps)


def _sglang(answers: Answers) -> Measures:
    # Its session, and so its connection, is new for each request; ours was open: a measured handshake stands
    # in.
    start = answers.sent - np.maximum(answers.connect, answers.handshake)
    first = np.where(answers.first_prose > answers.last_event, start, answers.first_prose)
    return _streamed(answers, start, first, answers.last_event, answers.prose_gaps)


def _aiperf(answers: Answers) -> Measures:
    start = answers.sent - answers.connect
    mean_gaps = _per_token(answers.last_text - answers.first_text, answers.tokens)
    return {
        "TTFT": Sample(answers.first_text - start),
        "ITL": Sample(mean_gaps),
        "E2E": Sample(answers.last_text - start),
        **_rates(answers, answers.last_answer),
    }


def _guidellm(answers: Answers) -> Measures:
    some, many = answers.tokens > 0, answers.tokens > 1
    return {
        "TTFT": Sample(answers.first_text - answers.sent),
        "ITL": Sample(
            _per_token(answers.last_text - answers.first_text, answers.tokens), answers.tokens[many] - 1
        ),
        "TPOT": Sample((answers.last_text - answers.sent)[some] / answers.tokens[some], answers.tokens[some]),
        "E2E": Sample(answers.end - answers.sent),
        **_rates(answers),
    }


_MOST_TOGETHER = 10_000_000  # tokens that shared an event: beyond, every statistic of them is 0


def _inference_perf(answers: Answers) -> Measures:
    start = answers.sent - answers.connect
    many = answers.tokens > 1
    together = min(int(np.maximum(answers.tokens - answers.text_events, 0).sum()), _MOST_TOGETHER)
    return {
        "TTFT": Sample((answers.first_text - start)[many]),
        "ITL": Sample(np.append(answers.text_gaps, np.zeros(together)) if together else answers.text_gaps),
        "TPOT": Sample(_per_token(answers.last_text - answers.first_text, answers.tokens)),
        "E2E": Sample(answers.end - start),
        **_rates(answers),
    }


# Parts of sentences that readers of other tools' files share: equal sentences are compared.
LEAVES_OUT = "failed requests are left out"
WHOLE_RUN = "over the whole run, ramp and drain included, where here it is the steady window"
ANSWERS = f"answers {WHOLE_RUN}"
TEXT_SINCE_SEND = "first text since the actual send (connecting included), not since the intended one"

TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "vllm",
            "vllm bench serve 0.32",
            _vllm,
            {
                "TTFT": "ends at the first chunk with a choice, be it role-only; starts at the send; "
                f"{LEAVES_OUT}",
                "ITL": "gaps of all chunks with a choice: the one before the first text and the finish "
                "chunk too",
                "TPOT": "from its early first chunk to its late last one, over (tokens − 1)",
                "E2E": "send to the last chunk with a choice, not intended send to the last text",
                "output": f"usage tokens {WHOLE_RUN}",
                "requests": ANSWERS,
            },
            together=True,
            usage_alone=True,
        ),
        Tool(
            "sglang",
            "sglang bench_serving 0.5.23",
            _sglang,
            {
                "TTFT": "a new connection for each request: its handshake is inside; from the send; "
                f"0 where an answer is tool calls alone; {LEAVES_OUT}",
                "ITL": "gaps of text chunks, tool calls left out, 0 for those that arrive together; with "
                "speculation in SGLang, divided by the tokens of the chunk, which is not done here; failed "
                "requests are left out",
                "TPOT": "to the last line of the stream, [DONE] and usage included, over (tokens − 1)",
                "E2E": "send, with the handshake, to the last line of the stream",
                "output": f"tokens {WHOLE_RUN}; a server that sends usage only on demand is credited with "
                "the length that was asked for",
                "requests": ANSWERS,
            },
            together=True,
        ),
        Tool(
            "aiperf",
            "aiperf 0.13",
            _aiperf,
            {
                "TTFT": f"{TEXT_SINCE_SEND}; {LEAVES_OUT}",
                "ITL": "one mean per request, (last − first text) / (tokens − 1): what is TPOT here; its "
                "tail hides single long gaps",
                "E2E": "actual send to the last text",
                "output": "tokens from the first send to the last answer; counted by its own tokenizer "
                "unless it is set to take the server's",
                "requests": "answers from the first send to the last answer",
            },
        ),
        Tool(
            "guidellm",
            "guidellm 0.8",
            _guidellm,
            {
                "TTFT": "first text since the request's headers left: connecting is left out; on the wall "
                "clock; percentiles are samples, never interpolated",
                "ITL": "one mean per request, weighted by its tokens: what is TPOT here",
                "TPOT": "(last text − send) / tokens: the time to the first token is inside",
                "E2E": "actual send, without connecting, to the end of the stream",
                "output": "mean of a rate over time, from the first send to the last answer",
                "requests": "mean of a rate over time, from the first send to the last answer",
            },
            "inverted_cdf",
        ),
        Tool(
            "inference-perf",
            "inference-perf 0.7",
            _inference_perf,
            {
                "TTFT": f"{TEXT_SINCE_SEND}; answers of one token have none; {LEAVES_OUT}",
                "ITL": "per token: tokens that share a chunk are 0 apart; counted by its tokenizer, here "
                "by usage",
                "TPOT": "as here, of the answers it has; reasoning text is not counted",
                "E2E": "actual send (connecting included) to the end of the stream",
                "output": f"tokens of its own tokenizer {WHOLE_RUN}; here by usage",
                "requests": ANSWERS,
            },
        ),
    )
}

# Where a tool changed what it means: from this version on, as it is called in `--as NAME@VERSION`.
CHANGED = {
    "vllm": (
        Tool(
            "vllm@0.33",
            "vllm bench serve 0.33",
            _vllm_text,
            {
                "TTFT": f"{TEXT_SINCE_SEND}; a role chunk no longer counts; {LEAVES_OUT}",
                "ITL": "gaps of text chunks; failed requests are left out; an engine whose finish chunk has "
                "empty content adds one short gap, which is not here",
                "TPOT": "as here, of the answers it has",
                "E2E": "actual send to the last text",
                "output": f"usage tokens {WHOLE_RUN}",
                "requests": ANSWERS,
            },
        ),
    )
}
