"""The bodies of later turns: made when they are due, from the answers that the server really gave.

The job holds them with marks in the place of what is not known yet. A mark is a byte that JSON never holds.
"""

import json
from collections.abc import Sequence

from harness.load.finalize import Finalized
from harness.load.job import Sessions
from harness.load.lazy_sequence import LazySequence
from harness.records.layout import Outcome, content

ANSWER = b"\x00"  # the assistant's message: the answers of the session in their order, from its first
TOOL = b"\x01"  # the start of a message that answers the call before it, up to its content


class TurnBodies(LazySequence[bytes]):
    def __init__(self, bodies: Sequence[bytes], sessions: Sessions) -> None:
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

    def answered(self, index: int, finalized: Finalized) -> bool:
        """Keeps the answer for the turns after it; False where none will come."""
        session = self._sessions[index]
        last = index + 1 == len(self._sessions) or self._sessions[index + 1] != session
        if last or finalized.outcome is not Outcome.OK:
            self._answers.pop(session, None)
            return False
        said = content(finalized.events, finalized.text)
        self._answers.setdefault(session, []).append(_as_messages(said, finalized.tool_calls))
        return True


def _as_messages(said: str, tool_calls: str) -> tuple[bytes, bytes]:
    """Of several calls the first is carried on; a result that no call asked for is the user's message."""
    message: dict[str, object] = {"role": "assistant", "content": said}
    tool = b'{"role":"user",'
    if tool_calls:
        call = json.loads(tool_calls)[0]
        name = call["id"] or "call_0"
        function = {"name": call["name"], "arguments": call["arguments"]}
        message["tool_calls"] = [{"id": name, "type": "function", "function": function}]
        tool = b'{"role":"tool","tool_call_id":%b,' % json.dumps(name).encode()
    return json.dumps(message, separators=(",", ":")).encode(), tool
