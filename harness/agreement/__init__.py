"""Whether backends that serve the same model answer alike, and still do under load."""

from harness.agreement.compare import CONDITIONS, compare, warnings
from harness.agreement.questions import (
    Question,
    as_json,
    from_json,
    interleaved,
    load_questions,
    messages_of,
)

__all__ = [
    "CONDITIONS",
    "Question",
    "as_json",
    "compare",
    "from_json",
    "interleaved",
    "load_questions",
    "messages_of",
    "warnings",
]
