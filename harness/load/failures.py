"""The error texts of records, the same on every carrier."""

from harness.records.layout import Outcome

CLOSED_EARLY = "the connection closed before the answer was complete"
_CLOSED_AFTER_SEND = "the connection closed after the request was sent, before any answer"
STOPPED = "the run was stopped"
LATE = "the answer did not end within {seconds:g} s of its send"
HUNG_UP = "the user hung up, as the scenario says"
NO_CONNECTION = "no connection in time"
DRAIN_OVER = "the answer did not end before the window's drain limit"
AT_CAP = "due when the in-flight cap was reached"
NEVER_SENT = "due, but held back by the in-flight cap until the window closed"


def closed_after_send(outcome: Outcome, error: str) -> str:
    """The text where nothing of an answer came before the close; `error`: what broke the connection."""
    return _CLOSED_AFTER_SEND if outcome is Outcome.TRUNCATED else f"{_CLOSED_AFTER_SEND}: {error}"
