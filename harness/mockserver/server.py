"""The server: its routes, and what each answers."""

import errno
import gc
import os
import socket
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hmac import compare_digest

from harness.errors import SetupError, SpecError, reason
from harness.host import descriptors
from harness.host.tls import Secure
from harness.mockserver.ask import Ask, BadAskError, load_object, parse_ask, parse_recording, parse_values
from harness.mockserver.connection import SO_TIMESTAMPNS, Connection, DiedError
from harness.mockserver.engine import Engine, Job
from harness.mockserver.faults import NS_PER_S, refusal
from harness.mockserver.ledger import Ledger, Record
from harness.mockserver.loop import Loop
from harness.mockserver.options import Options
from harness.mockserver.routes import Routes, error, no_route
from harness.mockserver.transcripts import read_form
from harness.mockserver.wire import LAST_CHUNK, Request, chunk, error_answer, json_answer

API_KEY_VARIABLE = "BENCH_TRUTH_API_KEY"
COMPLETION_PATH = "/v1/completions"
RESPONSES_PATH = "/v1/responses"
MESSAGES_PATH = "/v1/messages"
EMBEDDINGS_PATH = "/v1/embeddings"
RERANK_PATH = "/v1/rerank"
TRANSCRIPTIONS_PATH = "/v1/audio/transcriptions"
BACKLOG = 4096
ACCEPTS_PER_LOOK = 16
ACCEPT_AGAIN_NS = 50_000_000  # after the last descriptor was in use
_CUT_SHORT = chunk(b"data: [DONE]\n\n") + LAST_CHUNK  # no finish reason, and nothing looks wrong
START_FAULT_S = 5.0  # how long `loading` and `refused` last when they do not say


class Server:
    """Bound when made, and listening unless a `refused` fault holds that back; answers when run."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.loop = Loop(precise=options.precise)
        self.engine = Engine(options)
        self.ledger = Ledger(options.keep_requests)
        self._api_key = os.environ.get(API_KEY_VARIABLE)
        self._tls = _tls_context(options.tls_pem) if options.tls_pem else None
        started_ns = time.monotonic_ns()
        loading_ns = {kind: self._start_fault_ns(kind) for kind in ("loading", "refused")}
        kind = {"503": "loading", "refused": "refused", "up": "lazy"}[options.dialect.loading]
        loading_ns[kind] = max(loading_ns.get(kind, 0), round(options.loading_s * NS_PER_S))
        self._loaded_ns = started_ns + loading_ns["loading"]
        self._lazy_ns = started_ns + loading_ns.get("lazy", 0)  # requests before wait for the model
        self._listener = self._bind()
        if any(fault.kind == "die-loading" for fault in options.faults):
            self._loaded_ns = sys.maxsize
            self.loop.at(started_ns + self._start_fault_ns("die-loading"), _die)
        elif loading_ns["refused"]:
            self.loop.at(started_ns + loading_ns["refused"], self._listen)
        else:
            self._listen()
        self._playing: dict[Job, Connection] = {}
        self._routes = Routes(options, self.engine)
        responses = options.dialect.responses
        if responses and not options.keeps_turns:
            responses = replace(responses, keeps_turns=False)
        styles = {RESPONSES_PATH: responses, MESSAGES_PATH: options.dialect.messages}
        self._styles = {path: style for path, style in styles.items() if style is not None}
        values = {EMBEDDINGS_PATH: options.dialect.embeddings, RERANK_PATH: options.dialect.rerank}
        self._values = {path: style for path, style in values.items() if style is not None}
        self._generates = {options.dialect.chat_path, COMPLETION_PATH, *self._styles, *self._values}
        if options.dialect.transcriptions:
            self._generates.add(TRANSCRIPTIONS_PATH)
        self._truth: dict[tuple[str, str], Callable[[], bytes]] = {
            ("GET", "/truth"): lambda: self._written(whole=True),
            ("GET", "/truth/statistics"): lambda: self._written(whole=False),
            ("POST", "/truth/reset"): self._reset_truth,
        }

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"{'https' if self._tls else 'http'}://{host}:{port}"

    def run(self) -> None:
        """Serves until stdin closes, where that was asked for; raises DiedError when that fault strikes."""
        if self.options.until_stdin_closes:
            self.loop.on_readable(sys.stdin.fileno(), self._read_stdin)
        descriptors.allow_all()  # each connection takes one
        # A full collection holds every stream back for milliseconds, and requests leave no cycles behind.
        gc.freeze()
        gc.disable()
        self.loop.run()

    def _start_fault_ns(self, kind: str) -> int:
        faults = (fault for fault in self.options.faults if fault.kind == kind)
        return max((fault.lasting_ns(START_FAULT_S) for fault in faults), default=0)

    def _bind(self) -> socket.socket:
        listener = socket.socket(socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "linux":
            listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)  # accepted sockets inherit it
        address = (self.options.host, self.options.port)
        try:
            listener.bind(address)
        except OSError as error:
            listener.close()
            taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
            raise SetupError(
                f"cannot bind: {error.strerror}",
                where="{}:{}".format(*address),
                hint="choose another --port" if taken else "--host takes an IPv4 address of this machine",
            ) from error
        listener.setblocking(False)
        return listener

    def _listen(self) -> None:
        self._listener.listen(BACKLOG)
        self.loop.on_readable(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_LOOK):
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
                # It stays readable, and the loop would try without a pause.
                self.loop.forget(self._listener)
                self.loop.at(time.monotonic_ns() + ACCEPT_AGAIN_NS, self._listen)
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tls = Secure(self._tls, None) if self._tls else None
            Connection(sock, self.loop, self.ledger, self._handle, tls, self.options.finishes_abandoned)

    def _handle(self, connection: Connection, request: Request) -> None:
        data = self._refused(request)
        if data is None and request.method == "POST" and request.path in self._generates:
            self._complete(connection, request)
            return
        if data is None:
            truth = self._truth.get((request.method, request.path))
            data = truth() if truth else self._routes.answer(request)
        if data is None:
            data = no_route(self.options.dialect, request)
        if request.method == "HEAD":  # a body would be read as the next answer
            data = data[: data.index(b"\r\n\r\n") + 4]
        connection.answer(data, close=not request.keep_alive)

    def _refused(self, request: Request) -> bytes | None:
        if request.path.startswith("/truth"):
            return None
        if time.monotonic_ns() < self._loaded_ns:
            body = {"message": "Loading model", "type": "unavailable_error", "code": 503}
            return json_answer(503, {"error": body})
        if self._api_key and request.path.startswith("/v1/"):
            expected = f"Bearer {self._api_key}".encode()
            if not compare_digest(request.headers.get("authorization", "").encode(), expected):
                return error_answer(401, "the bearer key is missing or wrong")
        return None

    def _complete(self, connection: Connection, request: Request) -> None:
        number = self.engine.number()
        record = Record(number, request.path, connection.received_ns, connection.read_ns)
        self.ledger.add(record)
        rng = self.engine.rng(request.body)
        fault = self.engine.fault(number, rng)
        record.fault = fault.kind if fault else None
        refused = refusal(fault) if fault else None
        if refused is None:
            try:
                ask = self._asked(request)
            except BadAskError as bad:
                status = bad.status or self.options.dialect.errors.invalid
                refused = status, error(self.options.dialect, status, str(bad), bad.field)
        if refused:
            record.status, data = refused
            connection.expect(record)
            connection.answer(data, close=not request.keep_alive)
            return
        if fault and fault.kind == "not-streamed":
            ask = replace(ask, stream=False)
        job = Job(
            ask=ask,
            record=record,
            rng=rng,
            fault=fault,
            gzip="gzip" in request.headers.get("accept-encoding", ""),
            close=not request.keep_alive,
        )
        if self.options.interrupts:
            for running in self._playing.values():
                running.cut(_CUT_SHORT)
        connection.expect(record, on_end=partial(self._leave, job))
        begin_ns = max(record.received_ns, self._lazy_ns)
        self.engine.submit(job, begin_ns, partial(self._begin, connection, job))

    def _asked(self, request: Request) -> Ask:
        name: object
        if request.path == TRANSCRIPTIONS_PATH:
            form = read_form(request.headers.get("content-type", ""), request.body)
            ask, name = parse_recording(form), form.get("model", b"").decode("latin-1")
        else:
            ask, name = self._asked_in_json(request), load_object(request.body).get("model")
        status = self.options.dialect.errors.unknown_model
        if status and name is not None and not self._routes.serves(str(name)):
            raise BadAskError(f"The model `{name}` does not exist.", status, "model")
        return ask

    def _asked_in_json(self, request: Request) -> Ask:
        chars_per_token = self.options.chars_per_token
        if (values := self._values.get(request.path)) is not None:
            return parse_values(request.body, values, chars_per_token)
        return parse_ask(
            request.body,
            self.options.dialect,
            chat=request.path != COMPLETION_PATH,
            chars_per_token=chars_per_token,
            image_tokens=self.options.image_tokens,
            style=self._styles.get(request.path),
            kept=self.engine.kept,
        )

    def _leave(self, job: Job, now_ns: int) -> None:
        self._playing.pop(job, None)
        self.engine.leave(job, now_ns)

    def _begin(self, connection: Connection, job: Job, admitted_ns: int) -> None:
        habits = self.options.habits
        close = job.close or (job.ask.stream and (habits.hang_up or habits.framing == "close"))
        self._playing[job] = connection
        connection.play(self.engine.writes(job, int(time.time())), admitted_ns, close=close)

    def _written(self, *, whole: bool) -> bytes:
        from harness.mockserver import statistics  # loads numpy, which no answer needs

        return json_answer(200, (statistics.document if whole else statistics.statistics)(self.ledger))

    def _reset_truth(self) -> bytes:
        self.ledger.reset()
        self.engine.restart_numbering()
        return json_answer(200, {"success": True})

    def _read_stdin(self) -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            self.loop.stop()


def _die() -> None:
    raise DiedError


def _tls_context(pem: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(pem)
    except OSError as error:
        hint = "one PEM file with the private key and the certificate"
        raise SpecError(
            f"no certificate and key: {reason(error)}", where=f"--tls-pem {pem}", hint=hint
        ) from None
    return context
