"""Answers of real engines, kept in tests/captures so that the scripted server can be checked with them.

`python -m tests.engines.capture llamacpp vllm` starts the engines and writes them anew.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from harness.engines.session import EngineSession, open_engine
from harness.engines.start.launch_choice import resolve_launch
from harness.engines.start.request import EngineRequest
from harness.host import paths
from harness.spec.backend import Backend
from harness.spec.backend_refs import parse_backend_list
from harness.spec.models import choose_model

FOLDER = Path(__file__).parent.parent / "captures"
ENGINES = ("llamacpp", "vllm", "transformers")

CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 6, "temperature": 0.0}
SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "teal"]}, "count": {"type": "integer", "maximum": 9}},
    "required": ["colour", "count"],
    "additionalProperties": False,
}
OPENAI_SHAPE = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


def exchanges(definition: Backend) -> dict[str, tuple[str, str, Any]]:
    """Name to method, path and JSON body (None: none)."""
    chat = definition.dialect.chat_path
    stream = {"stream": True, "stream_options": {"include_usage": True}, **definition.dialect.exact_output}
    asked: dict[str, tuple[str, str, Any]] = {
        "models": ("GET", "/v1/models", None),
        "health": ("GET", "/health", None),
        "chat": ("POST", chat, CHAT),
        "stream": ("POST", chat, CHAT | stream),
        "unknown-field": ("POST", chat, CHAT | {"no_such_field": 1}),
        "removed-field": ("POST", chat, CHAT | {"guided_json": SCHEMA}),
        "unknown-model": ("POST", chat, CHAT | {"model": "other"}),
        "schema": ("POST", chat, CHAT | {"max_tokens": 60, "response_format": OPENAI_SHAPE}),
        "no-messages": ("POST", chat, {"max_tokens": 4}),
        "wrong-format": ("POST", chat, CHAT | {"response_format": {"type": "yaml"}}),
        "no-route": ("GET", "/no/such/route", None),
    }
    server, reset, metrics = definition.server, definition.prefix_cache.reset, definition.metrics
    if server.version:
        asked["version"] = ("GET", server.version.path, None)
    if server.tokenize:
        text = {server.tokenize.text_field: "hello there", **server.tokenize.extra}
        asked["tokenize"] = ("POST", server.tokenize.path, text)
    if reset:
        asked["reset"] = (reset.method, reset.path.replace("{slot}", "0"), None)
    if metrics:
        asked["metrics"] = ("GET", metrics.path, None)
    return asked


def capture(base_url: str, served_name: str, definition: Backend) -> dict[str, Any]:
    """Name to status and what was answered: `json`, `chunks` of a stream, `series` of metrics, or `text`."""
    found = {}
    for name, (method, path, body) in exchanges(definition).items():
        named = {"model": served_name, **body} if body else None
        # Each on a connection of its own: llama.cpp closes one after an error without saying so.
        try:
            answer = httpx.request(method, base_url + path, json=named, timeout=120, trust_env=False)
        except httpx.RemoteProtocolError:
            found[name] = {"status": None}  # it hung up
        else:
            found[name] = {"status": answer.status_code, **_content(name, answer)}
    return found


def _content(name: str, answer: httpx.Response) -> dict[str, Any]:
    kind = answer.headers.get("content-type", "")
    if "event-stream" in kind:
        data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        return {
            "chunks": [json.loads(line) for line in data if line != "[DONE]"],
            "done": data[-1] == "[DONE]",
        }
    if name == "metrics":
        types = [line.split()[2:4] for line in answer.text.splitlines() if line.startswith("# TYPE ")]
        return {"series": {series: kind for series, kind in types if series.split(":")[0] != "python"}}
    if "json" in kind:
        return {"json": answer.json()}
    return {"text": answer.text}


def shape(value: Any) -> Any:
    """Keys and kinds of values, all that can be compared between two answers."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    if value is None or isinstance(value, bool):
        return str(value)
    return "number" if isinstance(value, int | float) else "text"


def stream_shape(chunks: list[Any]) -> list[Any]:
    """Of a stream's chunks in order, equal neighbours once."""
    shapes = [shape(chunk) for chunk in chunks]
    return [one for index, one in enumerate(shapes) if not index or one != shapes[index - 1]]


def shapes(answers: dict[str, Any]) -> dict[str, Any]:
    """Of every exchange, to see whether an engine still answers as it did."""
    return {
        name: stream_shape(answer["chunks"]) if "chunks" in answer else shape(answer)
        for name, answer in answers.items()
    }


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def of(engine: EngineSession) -> dict[str, Any]:
    answers = capture(engine.base_url, engine.served_name, engine.definition)
    version = engine.facts["package_version"] or engine.facts["server_version"]
    return {"engine": engine.definition.name, "version": version, "answers": answers}


def main(names: list[str]) -> None:
    for name in names or ENGINES:
        (ref,) = parse_backend_list(name)
        with tempfile.TemporaryDirectory() as logs:
            model_name, model = choose_model(None)
            wanted = EngineRequest(
                ref,
                resolve_launch(ref, "auto"),
                model_name,
                model,
                log_path=Path(logs, "log"),
                values={"threads": 1},
            )
            with open_engine(wanted, print) as engine:
                text = json.dumps(of(engine), indent=1, ensure_ascii=False)
        text = text.replace(str(paths.cache_dir()), "~/.cache/llm-servebench")
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{FOLDER / name}.json")


if __name__ == "__main__":
    main(sys.argv[1:])
