"""Answers of a server besides completions: health, version, models, counters, tokens, cache reset."""

import hashlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from harness import __version__
from harness.mockserver.ask import BadAskError, adapter_name, load_object, prompt_tokens, token_id
from harness.mockserver.dialect import SLOTS, Dialect, Tokenizer
from harness.mockserver.engine import Engine
from harness.mockserver.metrics import Meter
from harness.mockserver.options import Options
from harness.mockserver.wire import Request, answer, json_answer

Handler = Callable[[Request], bytes]


def filled(template: Any, values: Mapping[str, object]) -> Any:
    """A copy in which each text that is a `{name}` is that value."""
    if isinstance(template, Mapping):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, str) and template[:1] == "{" and template[1:-1] in values:
        return values[template[1:-1]]
    return template


def error(dialect: Dialect, status: int, message: str, field: str = "") -> bytes:
    values = {"message": message, "type": HTTPStatus(status).phrase, "code": status, "field": field}
    return json_answer(status, filled(dialect.errors.body, values))


def no_route(dialect: Dialect, request: Request) -> bytes:
    if dialect.errors.no_route:
        return json_answer(404, dialect.errors.no_route)
    return error(dialect, 404, f"no route {request.method} {request.path}")


class Routes:
    def __init__(self, options: Options, engine: Engine) -> None:
        self._options, self._engine, self._dialect = options, engine, options.dialect
        self._meter = Meter(engine, options.dialect, options.model_name)
        self.model_names = {options.model_name, *map(adapter_name, range(options.adapters))}  # as listed
        dialect = self._dialect
        health = (
            answer(200, b"", "text/plain") if dialect.health is None else json_answer(200, dialect.health)
        )
        self._known: dict[tuple[str, str], Handler] = {
            ("GET", dialect.health_path): lambda _: health,
            ("GET", "/v1/models"): lambda _: json_answer(200, self._models()),
        }
        if dialect.version_path:
            self._known["GET", dialect.version_path] = lambda _: self._says(dialect.version)
        if dialect.info_path:
            self._known["GET", dialect.info_path] = lambda _: self._says(dialect.info)
        if dialect.metrics_path:
            self._known["GET", dialect.metrics_path] = lambda _: answer(
                200, self._meter.prometheus().encode(), "text/plain; version=0.0.4"
            )
        if dialect.json_metrics_path:
            self._known["GET", dialect.json_metrics_path] = lambda _: json_answer(200, self._meter.json())
        if tokenizer := dialect.tokenizer:
            self._known["POST", tokenizer.path] = lambda request: self._tokenize(tokenizer, request)
        if reset := dialect.reset:
            self._known[reset.method, reset.path] = lambda _: self._reset()
        if dialect.pulls_models:
            self._known |= {
                ("POST", "/api/generate"): self._load,
                ("POST", "/api/pull"): lambda _: json_answer(200, {"status": "success"}),
                ("POST", "/api/create"): lambda request: self._name(request, "model"),
                ("POST", "/api/copy"): lambda request: self._name(request, "destination"),
                ("POST", "/api/blobs/"): self._blob,
                ("GET", "/api/ps"): lambda _: json_answer(
                    200, {"models": [{"name": options.model_name, "size": 1, "size_vram": 0}]}
                ),
            }

    def serves(self, name: str) -> bool:
        return name in self.model_names or (bool(name) and name == self._dialect.own_name)

    def answer(self, request: Request) -> bytes | None:
        """None: no such route. One that is declared with a `/` at its end has what follows in it."""
        handler = self._known.get((request.method, request.path))
        if handler is None:
            stem = request.path[: request.path.rfind("/") + 1]
            handler = self._known.get((request.method, stem)) if len(stem) > 1 else None
        try:
            return handler(request) if handler else None
        except BadAskError as refused:
            return error(self._dialect, self._dialect.errors.invalid, str(refused), refused.field)

    def _says(self, template: Mapping[str, object]) -> bytes:
        options = self._options
        values = {
            "version": f"{__version__}+simulated",
            "model": options.model_name,
            "kv_tokens": options.cache_tokens,
            "kv_tokens_of_slot": options.cache_tokens // SLOTS,
        }
        return json_answer(200, filled(template, values))

    def _models(self) -> dict[str, object]:
        data = [
            {
                "id": name,
                "object": "model",
                "created": 0,
                "owned_by": self._dialect.owned_by,
                **self._dialect.card,
            }
            for name in sorted(self.model_names)
        ]
        return {"object": "list", "data": data}

    def _tokenize(self, tokenizer: Tokenizer, request: Request) -> bytes:
        body = load_object(request.body)
        text = body.get(tokenizer.text_field)
        if tokenizer.lists and isinstance(text, list):
            return self._tokenize_each(tokenizer, text)
        asked = body if text is None else {"prompt": text}
        tokens = prompt_tokens(asked, self._options.chars_per_token)
        ids = [token_id(token) for token in tokens]
        if not tokenizer.tokens_key:
            return json_answer(
                200, [{"id": number, "text": str(token)} for number, token in zip(ids, tokens, strict=True)]
            )
        extra = filled(self._dialect.tokenizer_extra, {"count": len(ids)})
        return json_answer(200, {**extra, tokenizer.tokens_key: ids})

    def _tokenize_each(self, tokenizer: Tokenizer, texts: list[Any]) -> bytes:
        each = [prompt_tokens({"prompt": text}, self._options.chars_per_token) for text in texts]
        extra = filled(self._dialect.tokenizer_extra, {"count": [len(tokens) for tokens in each]})
        ids = [[token_id(token) for token in tokens] for tokens in each]
        return json_answer(200, {**extra, tokenizer.tokens_key: ids})

    def _reset(self) -> bytes:
        """Empties nothing while requests run: answers `reset_busy`, or as vLLM 200 and `success` false."""
        idle, dialect = not self._engine.running, self._dialect
        if not idle and dialect.reset_busy:
            return error(dialect, dialect.reset_busy, "requests are running")
        if idle:
            self._engine.cache.clear()
            self._engine.host_cache.clear()
        if dialect.reset_answer is None:
            return answer(200, b"Cache flushed.", "text/plain")
        success = {"success": idle} if "success" in dialect.reset_answer else {}
        return json_answer(200, {**dialect.reset_answer, **success})

    def _load(self, request: Request) -> bytes:
        """Ollama: `keep_alive` 0 unloads the model, and its cache with it."""
        unload = load_object(request.body).get("keep_alive") == 0
        if unload:
            self._engine.cache.clear()
        return json_answer(200, {"done": True, "done_reason": "unload" if unload else "load"})

    def _name(self, request: Request, field: str) -> bytes:
        self.model_names.add(str(load_object(request.body).get(field)))
        return json_answer(200, {"status": "success"})

    def _blob(self, request: Request) -> bytes:
        wanted = request.path.rpartition(":")[2]
        if hashlib.sha256(request.body).hexdigest() != wanted:
            raise BadAskError("digest mismatch")
        return answer(201, b"", "text/plain")
