"""Reads TraceLab's traces of coding agents: a round per line, with the reused and the new part of its prompt.

Rounds of one `session_id` are the calls of a session. The file does not say which session started which, so
agents that were started by another one are sessions of their own.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from harness.workload.traces.dates import seconds_of
from harness.workload.traces.rows import BadRow, an_object, number
from harness.workload.traces.sessions import Begins, Call, Thread, checked

KEYS = {"session_id", "input_tokens_total", "prefix_tokens", "timing_events"}
FIRST_PREFIX = "first calls whose prompt was in a cache before: it is their own here"
_BROUGHT = ("user_message", "tool_result")
_GENERATED = ("text", "reasoning", "tool_call")


def threads(
    documents: Iterator[tuple[int, Any]], skipped: "Counter[str]", remarks: "Counter[str]"
) -> Iterator[Thread]:
    sessions: dict[str, list[tuple[Call, int]]] = {}
    for _, value in documents:
        try:
            row = an_object(value)
            if not isinstance(session := row.get("session_id"), str):
                raise BadRow("a session_id that is not a text")
            read = _round(row)
            sessions.setdefault(session, []).append(read)
        except BadRow as bad:
            skipped[str(bad)] += 1
    for session in list(sessions):
        rounds = sorted(sessions.pop(session), key=lambda entry: entry[0].start_s)
        before: Call | None = None
        for call, prefix in rounds:
            if before is None:
                remarks[FIRST_PREFIX] += prefix > 0
            elif prefix:
                call.begins = Begins(before, min(prefix, call.input_tokens, before.input_tokens))
            before = call
        yield Thread.of([call for call, _ in rounds])


def _round(row: Mapping[str, Any]) -> tuple[Call, int]:
    """The call of a round, and the tokens of its prompt that it reuses. Raises BadRow."""
    events = row.get("timing_events")
    if not isinstance(events, list):
        raise BadRow("timing_events that are not a list")
    brought: list[tuple[float, str]] = []
    generated: list[float] = []
    for event in events:
        kind = event.get("event_type") if isinstance(event, dict) else None
        if kind in _BROUGHT:
            brought.append((seconds_of(event.get("timestamp")), kind))
        elif kind in _GENERATED:
            generated.append(seconds_of(event.get("timestamp")))
    if not brought and not generated:
        raise BadRow("a round without a time")
    # The call was sent when the last of its inputs was there.
    start_s, kind = max(brought, default=(min(generated, default=0.0), ""))
    end_s = max([start_s, *generated])
    given = checked(
        start_s, number(row.get("input_tokens_total")), number(row.get("output_tokens")), end_s - start_s
    )
    prefix = row.get("prefix_tokens")
    if type(prefix) is not int or prefix < 0:
        raise BadRow("prefix_tokens that are not a whole number")
    call = Call(start_s, end_s, int(given.input_tokens), int(given.output_tokens), tool=kind == "tool_result")
    return call, prefix
