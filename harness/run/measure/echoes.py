"""Answers that give their own prompts back."""

from collections.abc import Iterable

import numpy as np

from harness.records.layout import Outcome, Phase, Records
from harness.validity.answers import ECHO_CHARS
from harness.workload.prompts.request import ChatRequest, Message

_HEAD_CHARS = 64  # of a message
_FENCE = "```"  # a model that goes on with code repeats it in a block of its own; no template begins one


def echoed(records: Records, requests: Iterable[ChatRequest]) -> int:
    """Counts the measured answers to first turns that hold the beginnings of all messages, in their order.

    `requests`: of the cell, in their order.
    """
    rows = records.requests[: len(records.texts)]
    measured = (rows["phase"] == Phase.MEASURE) & (rows["outcome"] == Outcome.OK)
    places = np.flatnonzero(measured & (rows["output_chars"] >= ECHO_CHARS)).tolist()
    at = dict(zip(rows["seq"][places].tolist(), places, strict=True))  # the texts may lie on disk
    return sum(
        _repeats(request.messages, records.texts[at[seq]])
        for seq, request in enumerate(requests if at else ())
        if seq in at and request.turn <= 0
    )


def _repeats(messages: Iterable[Message], text: str) -> bool:
    """Whether the text holds them, as far as it goes: a limit on its length may cut a long prompt."""
    seen = end = 0
    for _role, content in messages:
        begin = content.strip()[:_HEAD_CHARS]
        at = text.find(begin, end)
        if at < 0 or _FENCE in text[end:at]:
            return False
        seen, end = seen + len(begin), at + len(content.strip())
        if end > len(text):
            break
    return seen >= ECHO_CHARS
