"""Whether prompts are as long as they were made: what the server counted against what was asked."""

import numpy as np
from numpy.typing import NDArray

from harness.asked import Asked
from harness.metrics.latency import measured
from harness.model import TemplateTokens
from harness.record import UNKNOWN


def template_tokens(requests: NDArray[np.void], asked: Asked | None) -> TemplateTokens | None:
    """Prompt tokens beyond the content, least and most, of requests that carry no earlier answers.

    Where all have the same messages the two are equal if every text has exactly its length. None where the
    server did not count prompts.
    """
    rows = requests[measured(requests) & (requests["prompt_tokens"] != UNKNOWN)]
    if asked is None or not len(rows):
        return None
    rows = rows[asked.numbers["turn"][rows["seq"]] <= 0]
    if not len(rows):
        return None
    beyond = rows["prompt_tokens"] - asked.numbers["content_tokens"][rows["seq"]]
    return TemplateTokens(min=int(beyond.min()), max=int(beyond.max()))
