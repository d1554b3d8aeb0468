"""Limits on the size of an answer: several times what any engine needs."""

HEAD_BYTES = 64 << 10  # of an answer's head, interim answers before it included
EVENT_BYTES = 1 << 20
_ANSWER_BYTES = 1 << 20  # whatever was asked for: error pages, comments, usage
_TOKEN_BYTES = 4 << 10  # an event of one token has 200 to 600 bytes, with every field that engines add
UNTOLD_BYTES = 64 << 20  # where nobody tells how many tokens were asked for


def answer_bytes(max_tokens: int) -> int:
    """The limit of one answer, on the wire and decompressed."""
    return _ANSWER_BYTES + _TOKEN_BYTES * max_tokens
