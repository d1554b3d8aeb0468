"""Requests in the dialect under test, to the server under test."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf

from harness.apis import APIS, Api, ApiName, Message
from harness.engines.speak.dialect import Chat, render_body
from harness.engines.speak.server import Server
from harness.probe.exchange import Line, Seen
from harness.spec.dialect import Dialect
from harness.spec.scenario import Request

FREE = Request(exact_output=False)  # greedy, ends where the model ends
FORCED = Request(exact_output=True)


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def line_to(server: Server, deadline: float) -> Line:
    """Opens a line for requests of the API that the server's dialect speaks, until `deadline`
    (time.monotonic()).
    """
    api = APIS[server.definition.dialect.api]
    return Line(server.api_url, server.access, deadline, api)


@dataclass(frozen=True, slots=True)
class Asker:
    server: Server
    line: Line
    thorough: bool = True  # also what only confirms, or no scenario asks for

    @property
    def dialect(self) -> Dialect:
        return self.server.definition.dialect

    @property
    def api(self) -> Api:
        return APIS[self.dialect.api]

    def ask(self, text: str, max_tokens: int, request: Request = FREE, most_s: float = inf) -> Seen:
        return self.put(Chat((user(text),), max_tokens), request, most_s=most_s)

    def put(
        self,
        chat: Chat,
        request: Request = FREE,
        added: Mapping[str, object] | None = None,
        most_s: float = inf,
    ) -> Seen:
        """`added`: fields that no dialect has. Given up after `most_s`."""
        body = render_body(self.server.definition, self.server.served_name, chat, request)
        if added:
            body = json.dumps(json.loads(body) | dict(added)).encode()
        return self.line.ask(body, most_s)

    def refusal_of(self, name: ApiName) -> str:
        """Returns why a short request of that API was not answered; "": it was."""
        self.line.count_request()
        return self.server.refusal_of(name)

    def put_without(self, chat: Chat, names: Collection[str], most_s: float) -> Seen:
        """Fields that every dialect has left out; given up after `most_s`."""
        body = json.loads(render_body(self.server.definition, self.server.served_name, chat, FREE))
        kept = {name: value for name, value in body.items() if name not in names}
        return self.line.ask(json.dumps(kept).encode(), most_s)
