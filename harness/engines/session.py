"""One engine from start to stop: the only way the rest of the harness gets at one."""

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from harness.client.answer import NoAnswerError, StatusError
from harness.engines.check.shim_cost import shim_us_per_token
from harness.engines.known import known
from harness.engines.liveness import ASKED_AGAIN_S, Liveness, restart_limit_s
from harness.engines.provide.install import EngineEnv
from harness.engines.provide.logged import Log, Reporter
from harness.engines.provide.models import ensure_weights
from harness.engines.provide.shared_folders import Say
from harness.engines.provide.weights import Weights
from harness.engines.speak.access import access_behind, access_of
from harness.engines.speak.prometheus import summed
from harness.engines.speak.server import ResetResult, Server
from harness.engines.start import orphans
from harness.engines.start.command import SERVED_NAME, configured, values_in_use
from harness.engines.start.containers.compose_launch import start_container
from harness.engines.start.kv_cache import reported_tokens
from harness.engines.start.launch_choice import LaunchChoice, track_of
from harness.engines.start.ports import check_port, free_port
from harness.engines.start.process_launch import start_process
from harness.engines.start.ready import failure, wait_ready
from harness.engines.start.request import EngineRequest
from harness.engines.start.smoke_test import check_alike, first_name, hello, named_hello, prepare
from harness.engines.start.started import EngineFacts, ProcessHandle
from harness.errors import SetupError, SpecError, StorageError
from harness.host.access import Access
from harness.model.numbers import about_equal
from harness.spec.backend import Backend, BackendRef
from harness.spec.models import Model

_OPEN = Access()


class EngineSession(Server):
    """A ready engine. `facts` is what is recorded about it: plain JSON, nothing secret.

    Of several replicas it is the first: what is the same for all of them (tokens, settings, the conformance
    probe) is asked of it alone.
    """

    def __init__(
        self,
        definition: Backend,
        base_url: str,
        served_name: str,
        access: Access = _OPEN,
        life: ProcessHandle | None = None,
        log: Log | None = None,
        others: Sequence[Server] = (),
        metrics: Sequence[Server] = (),
        roles: Sequence[str] = (),
    ) -> None:
        super().__init__(definition, base_url, served_name, access)
        self.facts: EngineFacts = {}
        self._named = bool(served_name)  # else the name is the first that the server lists
        self.shim_us_per_token: float | None = None  # of a library, behind the shim that bench starts
        self.started_here = life is not None
        self.fresh = self.started_here  # nothing measured on it yet
        self.away_s = 0.0  # for which a running server that served before was waited for
        self._log = log
        self._log_in_use: Log | None = None  # what was logged since it first answered
        self.replicas: tuple[Server, ...] = (self, *others)
        self.counter_sources = tuple(metrics) or self.replicas  # whose counters add up to the engine's
        self.roles = tuple(roles)  # of these, where they share the work on each request; then they do not
        self.liveness = Liveness(self.replicas, self.counters, life)

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(server.base_url for server in self.replicas)

    @property
    def api_urls(self) -> tuple[str, ...]:
        return tuple(server.api_url for server in self.replicas)

    def close(self) -> None:
        super().close()
        for server in {*self.replicas, *self.counter_sources} - {self}:
            server.close()

    def counters(self) -> dict[str, float] | None:
        """Returns the metrics; where they are read elsewhere, those of the engines behind it."""
        if self in self.counter_sources:
            return super().counters()
        return summed([source.counters() for source in self.counter_sources])

    def reset_prefix_cache(self) -> ResetResult:
        """Resets the cache of every replica; the first that refuses is reported."""
        result = super().reset_prefix_cache()
        for server in self.replicas[1:]:
            if not result.done:
                break
            other = server.reset_prefix_cache()
            result = result if other.done else ResetResult(False, f"{server.base_url}: {other.how}")
        return result

    def reported(self) -> EngineFacts:
        """Version and settings that the server reports; where replicas differ, those of each: `1.0 + 2.0`."""
        infos = [server.info() for server in self.replicas]
        keys = dict.fromkeys(key for info in infos for key in info)
        return {
            "server_version": _of_all([server.version() for server in self.replicas]),
            "info": {key: _of_all([info.get(key) for info in infos]) for key in keys},
        }

    def look_again(self) -> None:
        """Reads again what running servers report of themselves: others may have taken their places.

        Requests go on with the name of the model that they began with.
        """
        if self.started_here:
            return
        with suppress(SetupError):  # one that does not answer fails its requests, which says more
            self.facts = {**self.facts, **self.reported()}
            if not self._named:
                listed = [server.model_names() for server in self.replicas]
                name = self.served_name
                models = [name if name in names else names[0] for names in listed if names]
                self.facts["served_name"] = _of_all(models or [name])

    @contextmanager
    def end_as_error(self, label: str) -> Iterator[None]:
        """Raises SetupError with the engine's end and its log in place of whatever a question to it says; of
        one that has not ended, what that says and where its log is.
        """
        try:
            yield
        except StorageError:
            raise
        except SetupError as error:
            ended = self.liveness.look(suspected=True)
            if ended is None:
                if self._log is not None and not error.hint:
                    error.hint = f"its log: {self._log.path}"
                raise
            raise self.failure(ended.sentence(" after it was ready"), label) from error

    def begin_use(self) -> None:
        """What it logged so far, such as an exception that its start survived, is no cause of its end."""
        assert self._log is not None
        self._log_in_use = Log.continued(self._log.path)

    def failure(self, what: str, label: str) -> SetupError:
        """The error with the end of its log and the cause, where bench started it."""
        log, ended = self._log_in_use or self._log, self.liveness.look()
        hint = "read the log" if log else "see the server's own log"
        hint = ended.hint(hint) if ended else hint
        if log is None:
            return SetupError(what, where=label, hint=hint)
        return failure(what, label, log, self.definition.server.failures, hint)

    def kv_tokens(self) -> int | None:
        """The size of its KV cache in tokens, as it reports; None if it does not."""
        return reported_tokens(self.definition, self.facts.get("info", {}))

    def log_tail(self, lines: int) -> str:
        """Empty for a server that is not ours."""
        return self._log.tail(lines) if self._log else ""


def open_engine(request: EngineRequest, say: Say) -> AbstractContextManager[EngineSession]:
    """The engine, once it has generated text; stopped, if it is ours, however the block is left.

    Raises SpecError or SetupError.
    """
    return (_attach if request.choice.mode == "attach" else _start)(request, say)


@contextmanager
def _attach(request: EngineRequest, say: Say) -> Iterator[EngineSession]:
    ref = request.ref
    if not ref.urls:
        raise SpecError(f"backend '{ref.label}' has no URL to attach to")
    say(f"{ref.label}: attaching to {ref.url}")
    access, name = access_of(ref.reach), ref.reach.served_name or ""
    others = [Server(ref.definition, url, name, access) for url in ref.urls[1:]]
    metrics = [
        _metrics_of(ref.definition, url, access_behind(url, ref.urls, ref.reach)) for url in ref.metrics_urls
    ]
    session = EngineSession(
        ref.definition, ref.urls[0], name, access, others=others, metrics=metrics, roles=ref.metrics_roles
    )

    def greet() -> None:
        for server in session.replicas:
            server.check_reachable(is_behind=bool(metrics))
        if not name:
            session.served_name = first_name(session, request.named_before)
        if others:
            check_alike(session, others)
        for server in session.replicas:  # one that is up and cannot generate is found before the first cell
            server.served_name = session.served_name
            hello(server, request.answer_s)
        session.facts = _facts(ref, request.choice, session)

    with closing(session):
        if request.served_before:
            limit_of = partial(restart_limit_s, ref.definition)
            session.away_s = _waited_for(greet, limit_of, say, f"{ref.label}: waiting for {ref.url}")
        else:
            greet()
        yield session


def _waited_for(
    greet: Callable[[], None], limit_of: Callable[[SetupError], float], say: Say, label: str
) -> float:
    """Greets a server until it answers, for as long as its failure allows; the seconds that took, 0 if it did
    at once.
    """
    most_s, away_s, why = 0.0, 0.0, ""
    reporter = Reporter(say, label, lambda: f"for up to {most_s:.0f} s; {why}")
    while True:
        try:
            greet()
            return away_s and reporter.elapsed_s
        except (NoAnswerError, StatusError) as error:
            most_s, away_s, why = limit_of(error), reporter.elapsed_s, error.what
            if away_s >= most_s:
                what = f"{error.what}; asked again for {away_s:.0f} s"
                raise SetupError(what, where=error.where, hint=error.hint) from error
        reporter.tick()
        time.sleep(ASKED_AGAIN_S)


def _metrics_of(definition: Backend, url: str, access: Access = _OPEN) -> Server:
    """The server whose metrics are at `url`: without a path, at the path that the engine usually has."""
    parts, metrics = urlsplit(url), definition.metrics
    assert metrics is not None
    path = parts.path or metrics.path
    source = dataclasses.replace(definition, metrics=dataclasses.replace(metrics, path=path))
    return Server(source, f"{parts.scheme}://{parts.netloc}", "", access)


@contextmanager
def _start(request: EngineRequest, say: Say) -> Iterator[EngineSession]:
    ref, choice = request.ref, request.choice
    model_name, model = request.model_name, request.model
    serves_weights = ref.definition.backend.weights != "none"
    definition = configured(ref.definition, model if serves_weights else None, request.values, choice)
    remarks = orphans.clear(say)
    port = _port(definition, request.host)
    shim_us = _shim_us_per_token(definition, say, ref.label)
    log = Log.continued(request.log_path)

    def weights_for(env: EngineEnv | None) -> Weights | None:
        track = track_of(ref, choice, model_name, model)
        return ensure_weights(model_name, model, track, env, say) if track else None

    start = start_container if choice.mode == "compose" else start_process
    starting = start(request, definition, weights_for, port, say)
    asked = time.monotonic()
    with starting as started:
        metrics = [_metrics_of(definition, started.metrics_url)] if started.metrics_url else []
        session = EngineSession(
            definition, started.base_url, SERVED_NAME, life=started.life, log=log, metrics=metrics
        )
        session.shim_us_per_token = shim_us
        with closing(session):
            generates = partial(named_hello, session, started.weights)
            by_text = definition.server.ready == "generates"
            wait_ready(started, definition.server, log, say, ref.label, generates if by_text else None)
            ready = time.monotonic()
            with session.end_as_error(ref.label):
                try:
                    prepare(session, started.weights, say, ref.label, request.answer_s)
                except SetupError as error:
                    raise session.failure(f"ready, but cannot generate: {error}", ref.label) from error
                answered = time.monotonic()
                startup_s = round(answered - started.began_s, 2)
                say(f"{ref.label}: ready after {startup_s:.1f} s")
                own = started.facts()
                session.facts = {
                    **_facts(ref, choice, session),
                    "values": values_in_use(definition, choice),
                    "port": port,
                    "startup_s": startup_s,
                    # Image or environment and weights, as far as they were missing; process to readiness.
                    "start": {
                        "provide_s": round(started.began_s - asked - started.waited_s, 3),
                        "load_s": round(ready - started.began_s, 3),
                        "first_answer_s": round(answered - ready, 3),
                    },
                    "log": str(log.path),
                    "model": _about_model(model_name, model) if started.weights else None,
                    "weights": dataclasses.asdict(started.weights) if started.weights else None,
                    **own,
                    "remarks": list(dict.fromkeys([*remarks, *own.get("remarks", [])])),
                }
                session.begin_use()
                yield session


def _facts(ref: BackendRef, choice: LaunchChoice, session: EngineSession) -> EngineFacts:
    """Returns what holds however the engine came to run."""
    return {
        "backend": ref.definition.name,
        "variant": ref.variant,
        "about": dataclasses.asdict(ref.definition.backend),
        "known": known(ref.definition, session.shim_us_per_token, launch=choice),
        "simulated": any(server.simulated for server in session.replicas),
        "launch": dataclasses.asdict(choice),
        "base_url": session.base_url,
        "served_name": session.served_name,
        **session.reported(),
        "prefix_cache": dataclasses.asdict(ref.definition.prefix_cache),
    }


def _of_all(facts: Sequence[Any]) -> Any:
    """The fact that every replica reports, numbers about the same; else what each reports. One that does not
    report it, which may be for this moment alone, is of no other version.
    """
    reported = [fact for fact in facts if fact is not None]
    first, *others = reported or [None]
    if all(fact == first or _about(fact, first) for fact in others):
        return first
    return " + ".join(map(str, reported))


def _about(first: Any, second: Any) -> bool:
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    return numbers and about_equal(first, second)


def _shim_us_per_token(definition: Backend, say: Say, label: str) -> float | None:
    header = definition.backend
    if header.kind != "library" or header.simulated or not definition.dialect.chat_path:
        return None
    say(f"{label}: measuring what bench's shim adds, against bench truth")
    return shim_us_per_token()


def _about_model(name: str, model: Model) -> dict[str, object]:
    return {
        "name": name,
        "title": model.title,
        "licence": model.licence,
        "context_tokens": model.context_tokens,
        "parameters_millions": model.parameters_millions,
    }


def _port(definition: Backend, host: str) -> int:
    asked = definition.engine.values.get("port")
    if asked is None:
        return free_port(host)
    check_port(host, int(asked))
    return int(asked)
