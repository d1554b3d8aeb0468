"""A server under probe that is a function: from the body of a request to what a client sees of the answer."""

import json
import time
from dataclasses import dataclass, field
from types import SimpleNamespace

from harness.apis import CHAT
from harness.client.answer import Answer
from harness.probe.asker import Asker
from harness.probe.exchange import Seen, _read
from harness.spec.backend_refs import parse_backend

USAGE = {"prompt_tokens": 9, "completion_tokens": 2}


def read(body, content_type="text/event-stream", *, pieces=None, api=CHAT):
    """`pieces`: seconds since the request, and the body's length then."""
    headers = {} if content_type is None else {"content-type": content_type}
    answer = Answer("http://h:1/x", 200, headers, body, ())
    return _read(answer, pieces or [(0.0, 10), (0.5, len(body))], api)


def seen(*documents, done=True, api=CHAT, before=b""):
    body = before + b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents)
    return read(body + (b"data: [DONE]\n\n" if done else b""), api=api)


def chunk(content=None, *, finish=None, usage=None, **delta):
    words = {} if content is None else {"content": content}
    made = {"choices": [{"index": 0, "delta": words | delta, "finish_reason": finish}]}
    return made | ({"usage": USAGE} if usage else {})


def answered(text="yes", *, finish="stop", **usage):
    """A usual answer: a role, a chunk a letter, the reason, and the usage in a chunk of its own."""
    counts = USAGE | {"completion_tokens": len(text)} | usage
    own = {"choices": [], "usage": counts}
    return seen(chunk("", role="assistant"), *map(chunk, text), chunk(finish=finish), own)


def definition(**tables):
    backend = {"name": "x", "title": "X", "licence": "MIT", "homepage": "", "weights": "none"}
    server = {"ready_path": "/health", "startup_timeout_s": 5}
    return parse_backend({"backend": backend, "server": server} | tables, "x.toml")


@dataclass
class Server:
    """What checks ask of a server besides requests; counters and tokens are given."""

    definition: object
    told: dict = field(default_factory=dict)
    served_name: str = "m"
    base_url: str = "http://h:1"
    access: object = None
    started_here: bool = True
    first_answer_s: float | None = None

    def counters(self):
        return self.told.get("counters")

    def version(self):
        return self.told.get("version")

    def info(self):
        return self.told.get("info", {})

    def refusal_of(self, api):
        return self.told.get("refuses", {}).get(api, "")

    def count_tokens(self, texts):
        counts = self.told.get("tokens")
        return counts if counts is None else [counts[len(text.split())] for text in texts]

    def reset_prefix_cache(self):
        return self.told["reset"]()


def asker(answer, made=None, *, thorough=True, **told):
    """`answer`: a Seen, or a function from the fields of a request."""
    asked = []

    def ask(body, most_s=None):
        asked.append(json.loads(body))
        return answer if isinstance(answer, Seen) else answer(asked[-1])

    line = SimpleNamespace(ask=ask, asked=asked, count_request=lambda: None, deadline=time.monotonic() + 60)
    return Asker(Server(made or definition(), told), line, thorough)
