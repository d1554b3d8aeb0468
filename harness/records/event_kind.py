"""Kinds of events, in a module of their own so that they can be used without numpy."""

from enum import IntEnum

UNKNOWN = -1


class EventKind(IntEnum):
    """The content of one SSE event. TEXT, REASONING and TOOL_CALL are generated text."""

    OTHER = 0  # role-only or empty delta, finish chunk
    TEXT = 1
    REASONING = 2
    TOOL_CALL = 3
    USAGE = 4  # usage alone
    DONE = 5
    ERROR = 6
    COMMENT = 7
    VALUES = 8  # vectors or scores: a whole answer without text


GENERATED = (EventKind.TEXT, EventKind.REASONING, EventKind.TOOL_CALL)
