"""The bodies of later turns: made when they are due, from the answers that the server really gave.

The job holds them with marks in the place of what is not known yet: `ANSWER` stands for the answers of the
session in their order, from its first.
"""

from collections.abc import Sequence

from harness.apis import ANSWER, CHAT, TOOL, Api
from harness.load.finalize import Finalized
from harness.load.job import Sessions
from harness.load.lazy_sequence import LazySequence
from harness.records.layout import Outcome, content


class TurnBodies(LazySequence[bytes]):
    def __init__(self, bodies: Sequence[bytes], sessions: Sessions, api: Api = CHAT) -> None:
        self._api = api
        self._bodies, self._sessions = bodies, sessions.session.tolist()
        self._answers: dict[int, list[tuple[bytes, bytes]]] = {}  # by session: what ANSWER and TOOL become

    def __len__(self) -> int:
        return len(self._bodies)

    def make(self, index: int) -> bytes:
        """Only of a turn whose session has come so far."""
        first, *later = self._bodies[index].split(ANSWER)
        if not later:
            return first
        answers = self._answers[self._sessions[index]]
        pieces = [first]
        for position, piece in enumerate(later):
            message, tool = answers[position]
            pieces += [message, piece.replace(TOOL, tool)]
        return b"".join(pieces)

    def keep(self, index: int, finalized: Finalized) -> None:
        """The answer, for the turns after it where any will come."""
        session = self._sessions[index]
        last = index + 1 == len(self._sessions) or self._sessions[index + 1] != session
        if last or finalized.outcome is not Outcome.OK:
            self._answers.pop(session, None)
            return
        said = content(finalized.events, finalized.text)
        self._answers.setdefault(session, []).append(self._api.turn(said, finalized.tool_calls))
