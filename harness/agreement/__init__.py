"""Whether backends that serve the same model answer alike, and still do under load."""

from harness.agreement.accuracy import decided
from harness.agreement.compare import CONDITIONS, compare, warnings
from harness.agreement.made import made_questions
from harness.agreement.questions import (
    Question,
    as_json,
    from_json,
    interleaved,
    load_questions,
    messages_of,
)
from harness.stats.paired import LEVEL, LOOKS, look_ends
