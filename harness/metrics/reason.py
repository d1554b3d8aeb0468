"""Reasons of null figures that may be wrong of a file of another tool: the file may only lack the fact.

They are texts, which is all that a summary keeps of them.
"""


class OfServer(str):
    """The server did not report it. A file may just not hold it."""


class OfTimes(str):
    """Nothing was due, sent or answered. A file without times does not show that."""


NOT_COUNTED = OfServer("the server reports no token counts")
NO_ANSWER = OfTimes("no answer to count")
