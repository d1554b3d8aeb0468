"""Whether an engine serves: by its process, its counter, and a short request after an unanswered load."""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar

from harness.apis import APIS
from harness.client.answer import NoAnswer, NoAnswerError, StatusError
from harness.engines.provide.logged import Reporter
from harness.engines.provide.shared_folders import Say
from harness.engines.speak.dialect import Chat, render_body
from harness.engines.speak.server import Server
from harness.engines.start.smoke_test import HELLO, hello
from harness.engines.start.started import ProcessHandle
from harness.errors import SetupError
from harness.model.ending import LATER_LOADS, Ending
from harness.spec.backend import Backend
from harness.spec.scenario import Request

T = TypeVar("T")
_UNREAD: float | None = math.nan  # of a counter that did not answer
ALIVE_S = 60.0  # within which one that was only too slow answers once its load is gone
ASKED_AGAIN_S = 0.5
_DYING_S = 2.0  # one that no longer answers may take so long to be gone
_LOOK_S = 0.2


class Silence(NamedTuple):
    """Requests without a token within `limit_s`, with which a load ended: `why` says it in a sentence."""

    why: str
    limit_s: float
    closed: bool  # the load was closed for them; else it ran to its end
    deaf: bool = False  # its metrics, read before the load, gave no answer after it


class Liveness:
    """Whether one engine lives and answers. Once it is found not to, that stays.

    `life` is that of its process or container; None: it is not ours.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        counters: Callable[[], Mapping[str, float] | None],
        life: ProcessHandle | None,
    ) -> None:
        self._servers, self._counters, self._life = servers, counters, life
        self._ending: Ending | None = None

    def look(self, *, suspected: bool = False) -> Ending | None:
        """Returns its end; None: none is known. A suspected one gets a moment to be seen dead."""
        deadline = time.monotonic() + (_DYING_S if suspected else 0)
        while self._ending is None and self._life is not None:
            if why := self._life.exited():
                self._ending = Ending("died", why)
            elif time.monotonic() < deadline:
                time.sleep(0.05)
            else:
                break
        return self._ending

    def before_load(self, limit_s: float, say: Say) -> Ending | None:
        """Waits `restart_limit_s` for a running server that is not ready, and returns how that ended; `slow`:
        it became ready. None: it was.
        """
        found = self._ending
        if self._life is None and found is None and (why := self._unready()):
            silence = Silence(f"{why} before a load", limit_s, closed=False)
            limit_of = partial(restart_limit_s, self._servers[0].definition)
            found = self._asked(silence, threading.Event(), say, limit_of)
            self._keep(found)
        return found

    def after_load(
        self, silence: Silence | None, stop: threading.Event, say: Say, *, suspected: bool
    ) -> Ending | None:
        """How it came through a load; None: nothing was wrong, or its failed requests say what.

        After a silence it is asked for a short answer, unless `stop` is set, which also ends the question.
        """
        found = self._asked(silence, stop, say) if silence else None
        self._keep(found)
        return self.look(suspected=suspected) or (found if silence and silence.closed else None)

    def _keep(self, found: Ending | None) -> None:
        if found is not None and found.kind not in LATER_LOADS:
            self._ending = found

    def _unready(self) -> str:
        """What the readiness path of a server answers, or why nothing does; "": all are ready, or lack it."""
        try:
            for server in self._servers:
                server.check_reachable()
        except (NoAnswerError, StatusError) as error:
            return error.what
        except SetupError:  # a gateway hides the path
            pass
        return ""

    def _asked(
        self,
        silence: Silence,
        stop: threading.Event,
        say: Say,
        limit_of: Callable[[SetupError], float] = lambda _failure: ALIVE_S,
    ) -> Ending:
        """Asks each server for a short answer, again while one may come, for as long as its failure allows.

        Such a request may wait behind others whose clients left. It is repeated while the counter shows that
        the engine generates, where there is no counter, where it is refused, and where no connection is to be
        had: an engine may take its time to die, and another may be started in its place.
        """
        if stop.is_set():
            return Ending("stopped", silence.why)
        began_s, limit_s, generated = time.monotonic(), min(silence.limit_s, ALIVE_S), 0.0
        most_s, why = ALIVE_S, silence.why
        reporter = Reporter(say, "waiting for a short answer", lambda: f"for up to {most_s:.0f} s; {why}")
        fail = partial(self._failure, limit_s)
        given_up: SetupError | None = SetupError("no answer was waited for")
        tokens = _UNREAD if silence.deaf else self._unless_over(self._generated, _UNREAD, stop, reporter)
        while failure := self._unless_over(fail, given_up, stop, reporter):
            refused = not isinstance(failure, NoAnswerError)
            lost = isinstance(failure, NoAnswerError) and failure.kind is NoAnswer.LOST
            before = tokens
            if refused or lost or not _unread(before):  # else nothing of it answers: it hangs
                tokens = self._unless_over(self._generated, _UNREAD, stop, reporter)
            more = 0.0 if before is None or tokens is None else tokens - before
            generated += max(0.0, more)  # not a number counts as 0
            asked_s, most_s, why = time.monotonic() - began_s, limit_of(failure), failure.what
            may_come = more > 0 or refused or lost or before is None
            reporter.tick()
            if self.look() or not may_come or asked_s > most_s or stop.wait(ASKED_AGAIN_S):
                break
        else:
            return Ending("slow", f"{silence.why}; once the load was gone it answered")
        if stop.is_set():
            return Ending("stopped", silence.why)
        if ended := self.look(suspected=True):
            return ended
        if more > 0:
            then = f"refused a short request: {failure.what}" if refused else "answered no short request"
            return Ending(
                "overloaded", f"{silence.why}; it generated {generated:.0f} tokens then, and {then}"
            )
        if refused:
            then = f"for {asked_s:.0f} s after that a short one was refused: {failure.what}"
            return Ending("refused", f"{silence.why}; {then}")
        if self._life is None and lost and (tokens is None or _unread(tokens)):
            return Ending("died", f"{silence.why}; then {failure.what}")
        return Ending("hung", f"{silence.why}; then {failure.what}" if lost else silence.why)

    def _unless_over(
        self, call: Callable[[], T], otherwise: T, stop: threading.Event, reporter: Reporter
    ) -> T:
        """What the call returns; `otherwise` once the run is stopped or the engine is dead."""
        question = Question(call)
        while question.waits(_LOOK_S):
            if stop.is_set() or self.look():
                return otherwise
            reporter.tick()
        return question.answer()

    def _failure(self, limit_s: float) -> SetupError | None:
        """The reason why a short request got no answer; None: each server gave one."""
        try:
            for server in self._servers:  # their open connections may be answered where new ones are not
                new = Server(server.definition, server.base_url, server.served_name, server.access)
                with closing(new):
                    _ask_shortly(new, limit_s)
        except SetupError as error:
            return error
        return None

    def _generated(self) -> float | None:
        """Output tokens by its counter; None if it has none, not a number if it does not answer."""
        try:
            return (self._counters() or {}).get("output_tokens")
        except SetupError:
            return _UNREAD


def restart_limit_s(definition: Backend, failure: SetupError) -> float:
    """How long a running server that fails so between loads is asked again: where it gives no answer, or says
    that the fault is its own, as long as its start may take.
    """
    restarts = isinstance(failure, NoAnswerError) or (
        isinstance(failure, StatusError) and failure.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )
    return max(ALIVE_S, definition.server.startup_timeout_s) if restarts else ALIVE_S


class Question(Generic[T]):
    """A call in a thread that nobody has to wait for: `answer` may be asked for once it no longer waits."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._answers: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def waits(self, seconds: float) -> bool:
        """Whether it still has no answer after so many seconds more."""
        self._thread.join(seconds)
        return self._thread.is_alive()

    def answer(self) -> T:
        if self._error is not None:
            raise self._error
        return self._answers[0]

    def _ask(self) -> None:
        try:
            self._answers.append(self._call())
        except BaseException as error:  # raised again where the answer is waited for
            self._error = error


def _unread(tokens: float | None) -> bool:
    """Whether there is a counter that did not answer."""
    return tokens is not None and math.isnan(tokens)


def _ask_shortly(server: Server, limit_s: float) -> None:
    """Asks for a stream where the load does: a server may answer whole, and never stream."""
    if APIS[server.definition.dialect.api].gives != "text":
        hello(server, limit_s)
        return
    chat, request = Chat(HELLO, 4), Request(exact_output=False)
    server.check_answers(render_body(server.definition, server.served_name, chat, request), limit_s)
