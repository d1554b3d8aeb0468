"""Reasons of null figures that a file of another tool does not bear out: what it does not hold may have been.

They are texts, which is all that a summary keeps of them.
"""


class OfServer(str):
    """The server did not report it, as far as the file has its answers."""


class OfTimes(str):
    """Nothing was due, sent or answered, as far as the file has times."""


NOT_COUNTED = OfServer("the server reports no token counts")
NO_ANSWER = OfTimes("no answer to count")
