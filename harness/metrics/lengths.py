"""Tells whether prompts are as long as they were made: what the server counted against what was asked."""

from harness.metrics.view import RequestView
from harness.model import TemplateTokens
from harness.records.layout import UNKNOWN
from harness.records.request_table import RequestTable


def template_tokens(view: RequestView, requested: RequestTable | None) -> TemplateTokens | None:
    """Prompt tokens beyond the content, least and most, of requests that carry no earlier answers.

    Where all have the same messages the two are equal if every text has exactly its length. None where the
    server did not count prompts.
    """
    rows = view.tried[view.tried["prompt_tokens"] != UNKNOWN]
    if requested is None or not len(rows):
        return None
    rows = rows[requested.numbers["turn"][rows["seq"]] <= 0]
    if not len(rows):
        return None
    beyond = rows["prompt_tokens"] - requested.numbers["content_tokens"][rows["seq"]]
    return TemplateTokens(min=int(beyond.min()), max=int(beyond.max()))
