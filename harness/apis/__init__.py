"""The APIs that requests may speak: one module each, and this table of them."""

from typing import Literal, get_args

from harness.apis.api import ANSWER, BLANK, KEPT, TOOL, Api, Fields, Gives, Message
from harness.apis.chat import CHAT
from harness.apis.completions import COMPLETIONS
from harness.apis.embeddings import EMBEDDINGS
from harness.apis.messages import MESSAGES
from harness.apis.rerank import RERANK
from harness.apis.responses import RESPONSES
from harness.apis.transcriptions import TRANSCRIPTIONS

ApiName = Literal["chat", "completions", "responses", "messages", "embeddings", "rerank", "transcriptions"]
API_NAMES: tuple[ApiName, ...] = get_args(ApiName)
APIS: dict[str, Api] = {
    api.name: api for api in (CHAT, COMPLETIONS, RESPONSES, MESSAGES, EMBEDDINGS, RERANK, TRANSCRIPTIONS)
}
