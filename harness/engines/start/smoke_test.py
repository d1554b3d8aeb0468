"""Steps from a server that answers to an engine that generates: model brought in, name learned, a first
text.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from harness.engines.provide.shared_folders import Say
from harness.engines.provide.weights import Weights
from harness.engines.speak.server import Server
from harness.errors import SetupError
from harness.spec.backend import Step
from harness.spec.template import fill

# An engine that is up but cannot generate is found before the first cell.
HELLO = [{"role": "user", "content": "Say hello."}]
_LATE_HINT = "it may load its model at the first request: send one first, or set request.timeout_s higher"


def prepare(server: Server, weights: Weights | None, say: Say, label: str, answer_s: float) -> None:
    """`weights` None: the server brings its own model. Raises SetupError with what was answered."""
    where = "local" if weights and weights.local else "hub"
    for step in server.definition.server.prepare:
        if step.when in ("always", where):
            _take(server, step, weights, say, label)
    named_hello(server, weights, answer_s)


def named_hello(server: Server, weights: Weights | None, answer_s: float | None = None) -> None:
    """Asks the server by the name that it serves the model under. Raises SetupError unless it generates."""
    declared = server.definition.server
    if declared.served_name == "{listed}":
        server.served_name = first_name(server)
    else:
        server.served_name = fill(declared.served_name, _values(server, weights))
    hello(server, answer_s)


def hello(server: Server, answer_s: float | None = None) -> None:
    """Raises SetupError unless it generates within `answer_s`, through the API that requests will speak."""
    asked = time.monotonic()
    try:
        if server.definition.dialect.api == "chat":
            server.one_chat(HELLO, 4, answer_s)
        else:
            server.check_api(answer_s)
    except SetupError as error:
        if answer_s is not None and time.monotonic() - asked >= answer_s:
            error.hint = _LATE_HINT
        raise
    if server.first_answer_s is None:
        server.first_answer_s = time.monotonic() - asked


def first_name(server: Server, before: str = "") -> str:
    """Returns the first of the models that the server lists, or the one that it was asked for `before`: an
    order of names may change.
    """
    names = server.model_names()
    if not names:
        raise SetupError(
            "the server lists no model",
            where=f"{server.base_url}/v1/models",
            hint="name it with --model-name",
        )
    return before if before in names else names[0]


def check_alike(first: Server, others: Sequence[Server]) -> None:
    """Raises SetupError unless the others serve the first one's model, in its version where they tell one."""
    models, version = _models(first), first.version()
    for other in others:
        listed = _models(other)
        if listed != models and first.served_name not in listed:
            what = f"serves {', '.join(listed) or 'no model that it lists'}; {first.base_url} serves "
            _differs(other, what + first.served_name)
        if (its := other.version()) != version and its and version:
            _differs(other, f"runs version {its}; {first.base_url} runs {version}")


def _models(server: Server) -> list[str]:
    """Empty where it lists none: its model is then named with --model-name."""
    try:
        return server.model_names()
    except SetupError:
        return []


def _differs(server: Server, what: str) -> NoReturn:
    raise SetupError(
        what,
        where=server.base_url,
        hint="URLs joined by + are replicas of one model; a comma between NAME=URL entries compares servers",
    )


def _values(server: Server, weights: Weights | None) -> dict[str, str]:
    return {
        "served_name": server.served_name,
        "model": weights.model if weights else server.served_name,
        "model_digest": (weights.sha256 if weights else None) or "",
    }


def _take(server: Server, step: Step, weights: Weights | None, say: Say, label: str) -> None:
    values = _values(server, weights)
    say(f"{label}: {fill(step.path, values)}")
    if not step.upload:
        server.step(step, values)
    elif weights and Path(weights.model).is_file():
        with Path(weights.model).open("rb") as file:
            server.step(step, values, file)
    else:
        raise SetupError(
            f"{step.path} takes one file",
            where=weights.model if weights else server.base_url,
            hint="give a .gguf file with --model",
        )
