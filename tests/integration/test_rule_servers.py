"""A server of known truth that breaks each rule about answers, and a calm one that breaks none of them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, OpenLoop
from harness.metrics.quality import quality
from harness.metrics.view import RequestView
from harness.mockserver import running
from harness.records.request_table import Expected
from harness.validity import Evidence, judge
from tests.factories.recorded import facts, requested

REQUESTS, TOKENS, ALLOWED = 10, 8, 16
CALM = {"ttft_ms": 20, "gap_ms": 10}
AT_ONCE = OpenLoop(np.zeros(REQUESTS, np.int64), max_in_flight=4, over_cap="drop")


def asking(number, tokens, ignore_eos):
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": f"What is {number}?"}],
        "max_tokens": tokens,
        "stream": True,
        "ignore_eos": ignore_eos,
        "stream_options": {"include_usage": True},
    }
    return json.dumps(body).encode()


def found(options, max_tokens=TOKENS, tokens=TOKENS, schedule=None, *, alike=1, shape="", **about):
    """Codes and what was measured, of answers that may have `max_tokens`; the server's limit is `tokens`.

    `alike`: how often each prompt comes.
    `shape`: what the answers are held to, though the server is not asked for it.
    """
    bodies = [asking(number // alike, tokens, not shape) for number in range(REQUESTS)]
    with running(**{**CALM, **options}) as server:
        job = LoadJob(
            f"{server.url}/v1/chat/completions", Access(), bodies, schedule or ClosedLoop(2), workers=1
        )
        result = run_load(job)
    of_workload = {"workload__exact_output": False, "workload__equal_prompts": alike}
    of_cell = facts(client=result.client, **of_workload, **about)
    asked = requested(*[(shape, {"max_tokens": max_tokens, "expected": 0 if shape else -1})] * REQUESTS)
    asked = replace(asked, expectations=(Expected(shape),) if shape else ())
    view = RequestView(result.records)
    answers = quality(view, asked).answers
    reasons = judge(Evidence(view, of_cell, requested=asked, answers=answers)).reasons
    return {str(reason.code): reason.measured for reason in reasons}


SLOTS = {"kind": "concurrency", "value": 8, "arrival": None, "over_cap": None}
LONG = {"max_tokens": 48, "tokens": 48}
BROKEN = [
    ("usage-implausible", f"of {REQUESTS} answers with", {"fault": "wrong-usage"}, {}),
    ("usage-implausible", "with more prompt tokens than bytes were sent", {}, {"most_prompt_tokens": 1}),
    ("usage-missing", f"{REQUESTS} of {REQUESTS} answers", {"usage": "never"}, {}),
    ("tokens-per-event", "2.67", {"tokens_per_event": 4}, {"habits": {"tokens_per_event": "one"}}),
    (
        "thinking-not-off",
        f"{REQUESTS} answers",
        {"reasoning_tokens": 4},
        {"request": {"api": "chat", "thinking": "off"}},
    ),
    ("thinking-missing", f"{REQUESTS} of {REQUESTS}", {}, {"request": {"api": "chat", "thinking": "on"}}),
    ("output-length", f"ended at a limit on their length after {TOKENS}.0", {}, {"max_tokens": ALLOWED}),
    ("failed-requests", f"5 of {REQUESTS}: HTTP 503", {"fault": "503:every=2"}, {}),
    ("dropped-requests", f"6 of {REQUESTS}", {}, {"schedule": AT_ONCE}),
    (
        "errors-as-answers",
        f'2 of {REQUESTS} answers: "CUDA out of memory. Tried to allocate 2.00 GiB."',
        {"fault": "error-text:every=5"},
        LONG,
    ),
    ("answers-same", f"{REQUESTS} of {REQUESTS} answers are the same", {"fault": "same-text"}, LONG),
    ("answers-same", f"5 of {REQUESTS} answers are the same", {"fault": "same-text:every=2"}, LONG),
    ("one-token-repeated", f'5 of {REQUESTS} answers: "!!!!!', {"fault": "one-token:every=2"}, LONG),
    (
        "tokens-without-text",
        f"{REQUESTS} of {REQUESTS} answers: 48.0 tokens in 2.0 bytes of text",
        {"fault": "no-text"},
        LONG,
    ),
    (
        "few-waves",
        "waves of answers",
        {"ttft_ms": "exponential:90"},
        {"load": SLOTS, "schedule": ClosedLoop(8)},
    ),
    ("form-refused", f"{REQUESTS} of {REQUESTS}", {"fault": "error-event"}, {"shape": "json_object"}),
    ("structured-cut", f"{REQUESTS} of {REQUESTS} answers end", {}, {"shape": "json_object"}),
    (
        "structured-ignored",
        "0% of the whole answers are valid (json_object)",
        {"stop_after_tokens": 4},
        {"shape": "json_object"},
    ),
]


@pytest.mark.parametrize(
    ("code", "measured", "options", "about"),
    BROKEN,
    ids=[f"{code}-{at}" for at, (code, *_) in enumerate(BROKEN)],
)
def test_a_server_breaks_the_rule_that_is_about_its_fault(code, measured, options, about):
    assert measured in found(options, **about)[code]


@pytest.mark.parametrize(("reasoning", "thinking"), [(0, "off"), (4, "on")])
def test_a_calm_server_that_does_as_declared_breaks_none_of_them(reasoning, thinking):
    declared = {"habits": {"tokens_per_event": "one"}, "request": {"api": "chat", "thinking": thinking}}
    reasons = found({"reasoning_tokens": reasoning}, most_prompt_tokens=100, **LONG, **declared)
    assert not {code for code, *_ in BROKEN} & reasons.keys()


def test_equal_prompts_may_have_equal_answers():
    """A file may hold a prompt many times, and a model at temperature 0 answers each alike."""
    assert "answers-same" not in found({}, alike=REQUESTS, **LONG)


def test_prompts_that_come_twice_do_not_hide_one_text_for_all():
    assert "answers-same" in found({"fault": "same-text"}, alike=2, **LONG)
