"""OpenAI Completions: `/v1/completions`. The prompt is raw text, so its length in tokens is exact."""

import json
from collections.abc import Sequence

from harness.apis import chat
from harness.apis.api import ANSWER, BLANK, Api, Fields, Message


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    """A single message is the prompt as it stands; several follow one another with an empty line between."""
    prompt = "\n\n".join(str(message["content"]) for message in messages)
    return {"prompt": prompt, "max_tokens": max_tokens}


def _turn(text: str, tool_calls: str) -> tuple[bytes, bytes]:
    """The answer stands inside the prompt, which is one JSON string."""
    return json.dumps(text).encode()[1:-1], b""


COMPLETIONS = Api(
    name="completions",
    title="Completions",
    path="/v1/completions",
    body=_body,
    read=chat.read,
    text_keys=("text",),
    end="[DONE]",
    turn=_turn,
    marks=((BLANK.encode(), ANSWER),),
    stream_options=True,
    templated=False,
)
