"""The bodies of later turns: made when they are due, from the answers that the server really gave.

The job holds them with marks in the place of what is not known yet: `ANSWER` stands for the answers of the
session in their order, from its first. A body with `KEPT` names the last of them, which the server keeps.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from harness.apis import ANSWER, CHAT, KEPT, TOOL, Api
from harness.load.finalize import Finalized
from harness.load.job import Sessions
from harness.load.lazy_sequence import LazySequence
from harness.records.layout import Outcome, content


class _Answered(NamedTuple):
    """What the marks of an answer are replaced with."""

    message: bytes
    tool: bytes
    kept_tool: bytes
    kept: bytes


class TurnBodies(LazySequence[bytes]):
    def __init__(self, bodies: Sequence[bytes], sessions: Sessions, api: Api = CHAT) -> None:
        self._api = api
        self._bodies, self._sessions = bodies, sessions.session.tolist()
        self._answers: dict[int, list[_Answered]] = {}  # by session

    def __len__(self) -> int:
        return len(self._bodies)

    def make(self, index: int) -> bytes:
        """The body of a turn whose session has come so far."""
        body = self._bodies[index]
        if KEPT in body:
            last = self._answers[self._sessions[index]][-1]
            return body.replace(TOOL, last.kept_tool).replace(KEPT, last.kept)
        first, *later = body.split(ANSWER)
        if not later:
            return first
        answers = self._answers[self._sessions[index]]
        pieces = [first]
        for position, piece in enumerate(later):
            answered = answers[position]
            pieces += [answered.message, piece.replace(TOOL, answered.tool)]
        return b"".join(pieces)

    def keep(self, index: int, finalized: Finalized) -> None:
        """Keeps an answer for later turns, if there are any."""
        session = self._sessions[index]
        last = index + 1 == len(self._sessions) or self._sessions[index + 1] != session
        if last or finalized.outcome is not Outcome.OK:
            self._answers.pop(session, None)
            return
        message, tool = self._api.turn(content(finalized.events, finalized.text), finalized.tool_calls)
        kept_tool = self._api.other_results(finalized.tool_calls) + tool
        name = json.dumps(finalized.answer_id).encode()
        self._answers.setdefault(session, []).append(_Answered(message, tool, kept_tool, name))
