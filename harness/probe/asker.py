"""Requests in the dialect under test, to the server under test."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.engines.dialect import render_body
from harness.engines.server import Server
from harness.probe.exchange import Line, Seen
from harness.prompts.request import Constraint
from harness.spec.dialect import Dialect
from harness.spec.scenario import Request

FREE = Request(exact_output=False)  # greedy, ends where the model ends
FORCED = Request(exact_output=True)


@dataclass(frozen=True, slots=True)
class Asker:
    server: Server
    line: Line
    thorough: bool = True  # also what only confirms, or no scenario asks for

    @property
    def dialect(self) -> Dialect:
        return self.server.definition.dialect

    def ask(
        self,
        text: str,
        max_tokens: int,
        request: Request = FREE,
        *,
        system: str = "",
        constraint: Constraint | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        salt: str = "",
        added: Mapping[str, Any] | None = None,
    ) -> Seen:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": text})
        body = render_body(
            self.server.definition,
            self.server.served_name,
            messages,
            max_tokens,
            request,
            constraint=constraint,
            tools=tools,
            salt=salt,
        )
        if added:
            body = json.dumps(json.loads(body) | dict(added)).encode()
        return self.line.ask(body)
