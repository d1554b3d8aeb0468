"""What a chat answer says about itself."""

from typing import Any


def cached(answer: dict[str, Any]) -> int:
    """Prompt tokens the engine did not have to process."""
    return int(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
