"""Whether prompts have their length: the server's counts against what was asked for."""

from harness.metrics.view import RequestView
from harness.model import TemplateTokens
from harness.records.layout import UNKNOWN
from harness.records.request_table import RequestTable


def template_tokens(view: RequestView, requested: RequestTable | None) -> TemplateTokens | None:
    """Prompt tokens beyond the content, least and most, of requests that carry no earlier answers.

    If all have the same messages, the two are equal exactly when every text has its length. None if the
    server did not count prompts.
    """
    rows = view.measured_requests[view.measured_requests["prompt_tokens"] != UNKNOWN]
    if requested is None or not len(rows):
        return None
    rows = rows[requested.numbers["turn"][rows["seq"]] <= 0]
    if not len(rows):
        return None
    beyond = rows["prompt_tokens"] - requested.numbers["content_tokens"][rows["seq"]]
    return TemplateTokens(min=int(beyond.min()), max=int(beyond.max()))
