"""Requests as OpenTelemetry spans, from rows as the query gives them."""

import pytest

from harness.apis import API_NAMES
from harness.report.exchange.otlp import messages

ROW = {
    "run": "r", "cell": "c", "seq": 0, "label": "vllm", "started_unix_ns": 10, "sent_ns": 1, "end_ns": 5,
    "outcome": "ok", "error": None,
}  # fmt: skip
BLANK = (
    "engine_version", "backend", "simulated", "load_kind", "load_value", "headers_ns", "first_text_ns",
    "last_text_ns", "prompt_tokens", "output_tokens", "http_status", "phase", "attempts", "cached_tokens",
)  # fmt: skip


@pytest.mark.parametrize("api", [*API_NAMES, None])
def test_a_span_has_the_operation_of_its_api(api):
    row = {**dict.fromkeys(BLANK), **ROW, "api": api}
    (message,) = messages(row, [row.values()])
    (span,) = message["resourceSpans"][0]["scopeSpans"][0]["spans"]
    chats = {"completions": "text_completion", "responses": "chat", "messages": "chat", None: "chat"}
    wanted = chats.get(api, api)
    assert span["name"] == wanted
    assert {"key": "gen_ai.operation.name", "value": {"stringValue": wanted}} in span["attributes"]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("ok", {"code": 1}), ("abandoned", {}), ("timeout", {"code": 2, "message": "timeout"})],
)
def test_a_user_who_hung_up_as_planned_is_no_error(outcome, status):
    row = {**dict.fromkeys(BLANK), **ROW, "api": "chat", "outcome": outcome}
    (message,) = messages(row, [row.values()])
    assert message["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["status"] == status
