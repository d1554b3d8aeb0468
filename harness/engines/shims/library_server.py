"""bench's shim: one small HTTP server before an engine that is a library, the same for each of them.

`library_server.py NAME …` serves chat completions from `library_NAME.py`, which lies next to it, or
transcriptions where that is a library of speech. The
library's own thread writes each token to its client, so what that costs stands between two steps of the
library: it can be measured, and adds to the time per token.
"""

import argparse
import contextlib
import importlib
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Protocol

_SEND_S = 30.0  # a client that takes nothing for so long has left
_UNFINISHED = "\ufffd"  # a character whose last bytes come with the next token


@dataclass(frozen=True, slots=True)
class Settings:
    """What a library is loaded with."""

    model: str
    context_tokens: int
    max_sequences: int
    prefill_tokens: int
    threads: int
    dtype: str
    kv_type: str
    kv_cache_gib: int
    prefix_cache: bool
    scratch: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request wants of the library."""

    max_tokens: int
    ignore_eos: bool
    temperature: float
    top_p: float
    top_k: int
    seed: int


class Library(Protocol):
    """The class `Library` of each `library_NAME.py`, which is made of Settings."""

    version: str
    effective: dict[str, str]  # what became of its settings, where it tells

    def encode(self, text: str) -> list[int]: ...

    def prompt(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """The chat as its template makes it."""

    def decode(self, tokens: Sequence[int]) -> str: ...

    def serve(self, waiting: "SimpleQueue[Job]") -> None:
        """Runs without end, on a thread of its own: calls `put` and `end` of every job that comes."""

    # Of a library of speech instead of `encode`, `prompt` and `decode`; no job comes to its `serve`. Called
    # on the threads of several connections. Raises ValueError for what is no audio.
    transcribe: Callable[[bytes, str, float], str]  # file, language ("": it finds out), temperature


class RefusedError(ValueError):
    """The message is for the client."""


@dataclass(slots=True, eq=False)
class Job:
    prompt: list[int]
    asked: Asked
    library: Library
    answer: "Answer"
    gone: bool = False  # its client has left: no more of it is needed
    produced: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    _tokens: list[int] = field(default_factory=list)
    _from: int = 0  # the first token that is decoded again: the text of a token depends on those before it
    _written: int = 0  # tokens whose text is out

    def put(self, tokens: Sequence[int]) -> None:
        """Adds the tokens: those of one step."""
        self._tokens += tokens
        self.produced += len(tokens)
        self._tell(last=False)

    def say(self, text: str) -> None:
        """Adds the text of a library that decodes by itself, and then counts `produced` by itself as well."""
        if text:
            self._write(self.answer.text, text)

    def end(self, reason: str) -> None:
        self._tell(last=True)
        self._write(self.answer.end, reason)
        self.over.set()

    def _tell(self, *, last: bool) -> None:
        if self._written == len(self._tokens):
            return
        before = self.library.decode(self._tokens[self._from : self._written])
        text = self.library.decode(self._tokens[self._from :])
        if text.endswith(_UNFINISHED) and not last:
            return
        self._from, self._written = self._written, len(self._tokens)
        self.say(text[len(before) :])

    def _write(self, how: "Writer", text: str) -> None:
        if not self.gone:
            try:
                how(text, self.produced)
            except OSError:
                self.gone = True


class Writer(Protocol):
    def __call__(self, text: str, produced: int, /) -> None: ...


class Answer:
    """One answer on one connection: streamed, or whole at its end."""

    def __init__(self, sock: socket.socket, model: str, prompt_tokens: int, *, stream: bool, usage: bool):
        self._sock, self._model, self._prompt_tokens = sock, model, prompt_tokens
        self._stream, self._usage, self._begun, self._whole = stream, usage, False, ""
        self._id, self._created = f"chatcmpl-{time.time_ns():x}", int(time.time())
        mark = "\0"
        event = json.dumps(self._chunk({"content": mark}), separators=(",", ":"))
        self._before, self._after = (part.encode() for part in event.split(json.dumps(mark)))

    def text(self, text: str, _produced: int) -> None:
        if not self._stream:
            self._whole += text
        elif self._begun:
            self._send(b"data: " + self._before + json.dumps(text).encode() + self._after + b"\n\n")
        else:
            self._begun = True
            self._event(self._chunk({"role": "assistant", "content": text}))

    def end(self, reason: str, produced: int) -> None:
        usage = {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": produced,
            "total_tokens": self._prompt_tokens + produced,
        }
        if not self._stream:
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": self._whole},
                "finish_reason": reason,
            }
            document = self._document("chat.completion", [choice]) | {"usage": usage}
            self._sock.sendall(whole(200, document))
            return
        self._event(self._chunk({}, reason))
        if self._usage:
            self._event(self._document("chat.completion.chunk", []) | {"usage": usage})
        done = b"data: [DONE]\n\n"
        self._sock.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(done), done))

    def _event(self, document: dict[str, object]) -> None:
        self._send(b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n")

    def _send(self, data: bytes) -> None:
        self._sock.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def _chunk(self, delta: dict[str, str], reason: str | None = None) -> dict[str, object]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return self._document("chat.completion.chunk", [choice])

    def _document(self, kind: str, choices: list[dict[str, object]]) -> dict[str, object]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._model,
            "choices": choices,
        }


def whole(status: int, document: object) -> bytes:
    """Head and body of a JSON answer."""
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


_NO_ROUTE = whole(404, {"error": "no route"})
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class _Front(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, address: tuple[str, int], library: Library, model: str, settings: Settings) -> None:
        super().__init__(address, _Handler)
        self.library, self.model, self.settings = library, model, settings
        self.waiting: SimpleQueue[Job] = SimpleQueue()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = None
    server: _Front

    def log_message(self, *_: object) -> None:
        """Nothing per request: writing a log takes time from the library."""

    def do_GET(self) -> None:
        library = self.server.library
        found: dict[str, object] = {
            "/health": {"status": "ok"},
            "/version": {"version": library.version, "server": "bench's shim", **library.effective},
            "/v1/models": {"object": "list", "data": [{"id": self.server.model, "object": "model"}]},
        }
        known = self.path in found
        self.connection.sendall(whole(200, found[self.path]) if known else _NO_ROUTE)

    def do_POST(self) -> None:
        length = int(self.headers["content-length"] or 0)
        try:
            body = self.rfile.read(length)
            if self.path == "/v1/audio/transcriptions":
                self._transcribe(_form(self.headers["content-type"] or "", body))
                return
            document = json.loads(body)
            if not isinstance(document, dict):
                raise RefusedError("the body must be a JSON object")
            self._answer(document)
        except ValueError as error:  # RefusedError and broken JSON
            message = {"message": str(error), "type": "invalid_request_error", "code": 400}
            self.connection.sendall(whole(400, {"error": message}))

    def _transcribe(self, fields: dict[str, bytes]) -> None:
        transcribe = getattr(self.server.library, "transcribe", None)
        if transcribe is None:
            self.connection.sendall(_NO_ROUTE)
            return
        if fields.get("response_format", b"json") != b"json" or fields.get("stream", b"false") != b"false":
            raise RefusedError("only whole answers with response_format json")
        language, temperature = fields.get("language", b"").decode(), float(fields.get("temperature", b"0"))
        text = transcribe(fields.get("file", b""), language, temperature)
        self.connection.sendall(whole(200, {"text": text}))

    def _answer(self, body: dict[str, object]) -> None:
        if not hasattr(self.server.library, "prompt"):
            self.connection.sendall(_NO_ROUTE)
        elif self.path == "/tokenize":
            tokens = self.server.library.encode(str(body.get("content", "")))
            self.connection.sendall(whole(200, {"tokens": tokens}))
        elif self.path == "/v1/chat/completions":
            self._chat(body)
        else:
            self.connection.sendall(_NO_ROUTE)

    def _chat(self, body: dict[str, object]) -> None:
        if body.get("response_format") or body.get("tools"):
            raise RefusedError("response_format and tools are not passed on to the library")
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            raise RefusedError("messages must be a list of objects")
        prompt = self.server.library.prompt(messages)
        room = self.server.settings.context_tokens - len(prompt)
        if room < 1:
            raise RefusedError(f"{len(prompt)} tokens of prompt, and a context of {room + len(prompt)}")
        stream = body.get("stream") is True
        options = body.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True
        answer = Answer(self.connection, self.server.model, len(prompt), stream=stream, usage=usage)
        self.connection.settimeout(_SEND_S)
        if stream:
            self.connection.sendall(_STREAM_HEAD)
        job = Job(prompt, _asked(body, room), self.server.library, answer)
        self.server.waiting.put(job)
        job.over.wait()
        self.connection.settimeout(None)
        self.close_connection = self.close_connection or job.gone


def _form(content_type: str, body: bytes) -> dict[str, bytes]:
    """The parts of multipart/form-data, by name."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    if not boundary:
        raise RefusedError("the body must be multipart/form-data")
    fields = {}
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        if name := re.search(rb'[ ;]name="([^"]*)"', head):
            fields[name[1].decode("latin-1")] = value.removesuffix(b"\r\n")
    return fields


def _asked(body: dict[str, object], room: int) -> Asked:
    return Asked(
        max_tokens=min(int(_number(body, "max_tokens", room)), room),
        ignore_eos=body.get("ignore_eos") is True,
        temperature=_number(body, "temperature", 0.0),
        top_p=_number(body, "top_p", 1.0),
        top_k=int(_number(body, "top_k", 0)),
        seed=int(_number(body, "seed", 0)),
    )


def _number(body: dict[str, object], name: str, default: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError(f"{name} must be a number")
    return value


def main() -> None:
    asked = _arguments()
    settings = Settings(**{name: getattr(asked, name) for name in Settings.__slots__})
    library: Library = importlib.import_module(f"library_{asked.library}").Library(settings)
    front = _Front((asked.host, asked.port), library, asked.served_model_name, settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=front.serve_forever, daemon=True).start()
    engine = threading.Thread(target=library.serve, args=(front.waiting,), daemon=True)
    engine.start()
    print(f"bench's shim serves {asked.library} {library.version} on {front.server_address}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while engine.is_alive() and not stop.wait(0.2):
            pass
    if not stop.is_set():
        raise SystemExit("the library's thread has ended")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="library_server.py", allow_abbrev=False)
    parser.add_argument("library")
    parser.add_argument("--model", default="")
    parser.add_argument("--served-model-name", default="bench")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--max-model-len", dest="context_tokens", type=int, default=2048)
    parser.add_argument("--max-num-seqs", dest="max_sequences", type=int, default=8)
    parser.add_argument("--max-num-batched-tokens", dest="prefill_tokens", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--kv-cache-dtype", dest="kv_type", default="")
    parser.add_argument("--kv-cache-gib", type=int, default=1)
    parser.add_argument("--enable-prefix-caching", dest="prefix_cache", action="store_true")
    parser.add_argument("--scratch", default="")
    return parser.parse_args()


if __name__ == "__main__":
    main()
