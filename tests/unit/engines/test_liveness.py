"""How an engine came through a load: asked of its process, its counter, and by a short request."""

import json
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.client.answer import Answer, NoAnswer, NoAnswerError, StatusError
from harness.engines import liveness
from harness.engines.liveness import Liveness, Silence
from harness.engines.provide import logged
from harness.engines.speak.server import Server
from harness.errors import SetupError
from harness.model import Ending
from harness.spec.backend_refs import load_backend
from harness.spec.dialect import with_api

CLOSED = Silence("3 requests in a row had no answer within 9 s", 9, closed=True)
OPEN = Silence("its last 3 requests had no answer within 9 s", 9, closed=False)
LATE = NoAnswerError(NoAnswer.LATE, "not whole after 9 s", where="http://h:1")
LOST = NoAnswerError(NoAnswer.LOST, "no answer to POST /v1/chat/completions: Connection refused", where="h")
BUSY = StatusError(429, "the server answers 429: slow down", where="http://h:1")
URLS = ("http://h:1", "http://h:2")
NEVER = threading.Event()


def server(url):
    return Server(load_backend("vllm"), url, "m")


def quiet(text):
    """Shows nothing."""


def alive(replicas=URLS[:1], counts=(), life=None):
    """An engine that shows these counts of tokens, the last one from then on."""
    left = list(counts)

    def counters():
        tokens = left.pop(0) if len(left) > 1 else left[0] if left else None
        if tokens is SetupError:
            raise SetupError("no answer")
        return None if tokens is None else {"output_tokens": tokens}

    return Liveness([server(url) for url in replicas], counters, life)


@pytest.fixture
def answers(monkeypatch):
    """Gives short requests these answers, the last one from then on; None: a text. What was asked."""

    def set_to(*given):
        left, asked = list(given), []

        def ask(new, limit_s):
            asked.append((new.base_url, limit_s))
            answer = left.pop(0) if len(left) > 1 else left[0]
            if answer is not None:
                raise answer

        monkeypatch.setattr(liveness, "_ask_shortly", ask)
        monkeypatch.setattr(liveness, "ASKED_AGAIN_S", 0)
        monkeypatch.setattr(liveness, "_DYING_S", 0)
        return asked

    return set_to


def ended(engine, silence=CLOSED, stop=NEVER, say=quiet):
    return engine.after_load(silence, stop, say, suspected=False)


@pytest.mark.parametrize(
    ("silence", "more"), [(CLOSED, "; once the load was gone it answered"), (OPEN, None)]
)
def test_an_engine_that_answers_once_its_load_is_gone_was_slow_and_goes_on(answers, silence, more):
    """After a load that ran to its end, its failed requests say that."""
    answers(None)
    engine = alive()
    assert ended(engine, silence) == (more and Ending("slow", silence.why + more))
    assert engine.look() is None
    assert ended(engine, None) is None


def test_an_engine_hangs_while_one_of_its_replicas_answers_nothing(answers):
    asked = answers(None, LATE)
    engine = alive(URLS, counts=[10.0])
    assert ended(engine) == engine.look() == Ending("hung", CLOSED.why)
    assert asked == [(URLS[0], 9), (URLS[1], 9)]


@pytest.mark.parametrize("counts", [[10.0, 36.0, 80.0], [None]])
def test_an_engine_that_generates_or_has_no_counter_is_asked_until_its_queue_is_empty(answers, counts):
    """Requests whose clients left may be before ours: a search lost all further loads."""
    answers(LATE, LATE, None)
    assert ended(alive(counts=counts)).kind == "slow"


@pytest.mark.parametrize(
    ("alive_s", "counts", "kind", "more"),
    [
        (-1, [10.0, 36.0], "overloaded", "; it generated 26 tokens then, and answered no short request"),
        (60, [10.0, 10.0], "hung", ""),
        (60, [10.0, 36.0, 36.0], "hung", ""),
        (60, [10.0, None], "hung", ""),
        (60, [10.0, SetupError], "hung", ""),
        (60, [SetupError, 10.0], "hung", ""),
        (-1, [None, None], "hung", ""),
    ],
)
def test_an_engine_that_generates_on_while_it_answers_nobody_is_overloaded(
    monkeypatch, answers, alive_s, counts, kind, more
):
    """As one that does not notice that clients leave."""
    monkeypatch.setattr(liveness, "ALIVE_S", alive_s)
    answers(LATE)
    for silence in (CLOSED, OPEN):
        assert ended(alive(counts=counts), silence) == Ending(kind, silence.why + more)


@pytest.mark.parametrize(
    ("counts", "kind", "more"),
    [
        (
            [None],
            "refused",
            "; for 0 s after that a short one was refused: the server answers 429: slow down",
        ),
        (
            [10.0],
            "refused",
            "; for 0 s after that a short one was refused: the server answers 429: slow down",
        ),
        (
            [10.0, 36.0],
            "overloaded",
            "; it generated 26 tokens then, and refused a short request: the server answers 429: slow down",
        ),
    ],
)
def test_a_server_that_refuses_the_short_request_is_not_called_hung(monkeypatch, answers, counts, kind, more):
    """As a gateway without counters does, which answers other clients."""
    monkeypatch.setattr(liveness, "ALIVE_S", -1)
    answers(BUSY)
    assert ended(alive(counts=counts)) == Ending(kind, CLOSED.why + more)


def test_a_server_that_refuses_for_a_while_was_slow(answers):
    """Its counter rests meanwhile: it has nothing to do."""
    answers(BUSY, BUSY, None)
    assert ended(alive(counts=[10.0])).kind == "slow"


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([10.0, SetupError], Ending("died", f"{CLOSED.why}; then {LOST.what}")),
        ([None], Ending("died", f"{CLOSED.why}; then {LOST.what}")),
        ([10.0], Ending("hung", f"{CLOSED.why}; then {LOST.what}")),
    ],
)
def test_a_running_server_that_takes_no_connection_any_more_did_not_hang(monkeypatch, answers, counts, found):
    """Unless its counters still answer."""
    monkeypatch.setattr(liveness, "ALIVE_S", -1)
    answers(LOST)
    assert ended(alive(counts=counts)) == found


@pytest.mark.parametrize("looks", [0, 1])
def test_an_engine_that_dies_while_it_is_asked_did_not_hang(answers, looks):
    """Its requests may have timed out before, and no connection broke."""
    exits = iter([None] * looks)
    engine = alive(counts=[10.0], life=SimpleNamespace(exited=lambda: next(exits, "exit code 7")))
    answers(LATE)
    assert ended(engine) == Ending("died", "exit code 7")


def test_a_process_that_lives_on_and_takes_no_connection_hangs(monkeypatch, answers):
    monkeypatch.setattr(liveness, "ALIVE_S", -1)
    answers(LOST)
    lives = SimpleNamespace(exited=lambda: None)
    assert ended(alive(counts=[10.0], life=lives)).kind == "hung"


def test_an_engine_that_takes_its_time_to_die_is_waited_for(answers):
    """Its port is closed, and its counters are gone with it."""
    exits = iter([None] * 5)
    engine = alive(
        counts=[10.0, SetupError], life=SimpleNamespace(exited=lambda: next(exits, "killed by SIGABRT"))
    )
    answers(LOST)
    assert ended(engine) == Ending("died", "killed by SIGABRT")


@pytest.mark.parametrize(("silence", "found"), [(CLOSED, Ending("stopped", CLOSED.why)), (OPEN, None)])
@pytest.mark.parametrize("when", ["before", "while its counter hangs", "while it waits", "after an answer"])
def test_nothing_is_concluded_of_an_engine_once_the_run_is_stopped(
    monkeypatch, answers, silence, found, when
):
    asked, stop, never = answers(LATE), threading.Event(), threading.Event()
    engine = alive()
    if when == "before":
        stop.set()
    elif when == "after an answer":
        engine._counters = lambda: stop.set()
    else:
        monkeypatch.setattr(logged, "_REPORT_EVERY_S", 0)
        monkeypatch.setattr(liveness, "_LOOK_S", 0)
        monkeypatch.setattr(liveness, "_ask_shortly", lambda *_: never.wait(30))
        if when == "while its counter hangs":
            engine._counters = lambda: never.wait(30)
    assert ended(engine, silence, stop, lambda _: stop.set()) == found
    assert engine.look() is None
    assert when != "before" or asked == []
    never.set()


def test_a_counter_that_gave_no_answer_after_the_load_is_not_waited_for_again(answers):
    """A frozen server took 20 s for each question to its counter, and nothing was shown meanwhile."""
    asked, engine = answers(LATE), alive()
    engine._counters = lambda: pytest.fail("its counter was asked")
    assert ended(engine, CLOSED._replace(deaf=True)) == Ending("hung", CLOSED.why)
    assert len(asked) == 1


def test_a_server_whose_counter_answers_again_did_not_die(monkeypatch, answers):
    monkeypatch.setattr(liveness, "ALIVE_S", -1)
    answers(LOST)
    for counts, kind in (([10.0], "hung"), ([SetupError], "died")):
        assert ended(alive(counts=counts), CLOSED._replace(deaf=True)).kind == kind


class TestBeforeALoad:
    DOWN = NoAnswerError(NoAnswer.LOST, "no answer to GET /health: Connection refused", where="h")
    LOADING = StatusError(503, "the server answers 503: Loading model", where="h")

    @pytest.fixture
    def readiness(self, monkeypatch):
        """Lets the readiness path raise this, or answer."""

        def set_to(error):
            def check(server):
                if error is not None:
                    raise error

            monkeypatch.setattr(Server, "check_reachable", check)

        return set_to

    @pytest.mark.parametrize("error", [None, SetupError("no such path on this server")])
    def test_a_server_that_is_ready_or_hides_its_readiness_is_asked_nothing(self, answers, readiness, error):
        readiness(error)
        asked = answers(None)
        assert alive().before_load(9, quiet) is None
        assert asked == []

    @pytest.mark.parametrize("error", [DOWN, LOADING])
    def test_one_that_restarts_is_waited_for(self, answers, readiness, error):
        """It may have gone down after the last load, none of whose requests says so."""
        readiness(error)
        asked = answers(LOST, BUSY, None)
        assert alive().before_load(9, quiet).kind == "slow"
        assert len(asked) == 3

    def test_one_that_stays_away_died_and_is_not_waited_for_again(self, monkeypatch, answers, readiness):
        monkeypatch.setattr(liveness, "restart_limit_s", lambda *_: -1)
        readiness(self.DOWN)
        asked = answers(LOST)
        engine = alive()
        died = Ending("died", f"{self.DOWN.what} before a load; then {LOST.what}")
        assert engine.before_load(9, quiet) == died
        assert engine.look() == died
        assert len(asked) == 1
        assert engine.before_load(9, quiet) == died
        assert len(asked) == 1

    @pytest.mark.parametrize(
        ("backend", "failure", "limit_s"),
        [
            ("vllm", LOST, 900),  # as [server] startup_timeout_s has it
            ("vllm", LOADING, 900),
            ("vllm", BUSY, 60),  # it answers, and no start changes what
            ("openai", LOST, 60),
        ],
    )
    def test_one_that_restarts_has_the_time_of_its_start(self, backend, failure, limit_s):
        """A model of 70 billion parameters is not loaded within a minute."""
        assert liveness.restart_limit_s(load_backend(backend), failure) == limit_s

    def test_an_interruption_ends_the_wait(self, monkeypatch, answers, readiness):
        readiness(self.DOWN)
        answers(LOST)
        monkeypatch.setattr(logged, "_REPORT_EVERY_S", 0)

        def interrupted(_text):
            raise KeyboardInterrupt

        engine = alive()
        with pytest.raises(KeyboardInterrupt):
            engine.before_load(9, interrupted)
        assert engine.look() is None

    def test_an_engine_of_ours_is_known_by_its_process(self, answers, readiness):
        readiness(self.DOWN)
        asked = answers(LOST)
        ours = alive(life=SimpleNamespace(exited=lambda: None))
        assert ours.before_load(9, quiet) is None
        assert asked == []


def test_what_is_waited_for_is_shown_and_for_how_long(monkeypatch, answers):
    answers(None)
    shown, seen = [], threading.Event()

    def say(text):
        shown.append(text)
        seen.set()

    monkeypatch.setattr(logged, "_REPORT_EVERY_S", 0)
    monkeypatch.setattr(liveness, "_LOOK_S", 0)
    monkeypatch.setattr(liveness, "_ask_shortly", lambda *_: seen.wait(30))
    assert ended(alive(), say=say).kind == "slow"
    assert shown[0].startswith("waiting for a short answer (0 s): for up to 60 s; ")
    assert shown[0].endswith(CLOSED.why)


@pytest.mark.parametrize(
    ("api", "path", "stream"),
    [
        ("chat", "/v1/chat/completions", True),
        ("completions", "/v1/completions", True),
        ("rerank", None, None),
    ],
)
def test_a_short_answer_is_asked_for_as_the_load_asks(monkeypatch, api, path, stream):
    """A server may answer whole, and never stream."""
    asked, whole = [], []
    monkeypatch.setattr(liveness, "hello", lambda *_: whole.append(api))

    def put(_self, _method, path, *, content, **_limits):
        asked.append((path, json.loads(content)["stream"]))
        return Answer("http://h:1", 200, {}, b"data: [DONE]", ())

    monkeypatch.setattr(Server, "_ask", put)
    definition = load_backend("vllm")
    alone = Server(replace(definition, dialect=with_api(definition.dialect, api)), "http://h:1", "m")
    Liveness([alone], lambda: None, None).after_load(CLOSED, NEVER, quiet, suspected=False)
    assert (asked, whole) == (([(path, stream)], []) if path else ([], [api]))


def test_what_nobody_foresaw_is_raised(answers):
    answers(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        ended(alive())


@pytest.mark.parametrize("suspected", [True, False])
def test_a_suspected_engine_is_given_a_moment_to_be_seen_dead(monkeypatch, suspected):
    exits = iter([None, None, "killed by SIGKILL"])
    monkeypatch.setattr(liveness, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: None))
    engine = alive(life=SimpleNamespace(exited=lambda: next(exits)))
    found = engine.after_load(None, NEVER, quiet, suspected=suspected)
    assert found == (Ending("died", "killed by SIGKILL") if suspected else None)


@pytest.mark.parametrize(
    ("kind", "sentence", "hint"),
    [
        ("died", "the engine died in c: why", "see x.log"),
        (
            "hung",
            "the engine hung in c: why",
            "see x.log; in another run, `py-spy dump --pid PID` of it shows where it stands; "
            "try a lower load too",
        ),
        (
            "overloaded",
            "the engine was overloaded in c: why",
            "see x.log; lower the load; does it, or a proxy before it, notice that a client leaves?",
        ),
        (
            "refused",
            "the engine refused requests in c: why",
            "see x.log; where a load was too much, lower it, or raise the limits of a gateway before it",
        ),
    ],
)
def test_sentence_and_hint_follow_from_the_kind(kind, sentence, hint):
    ending = Ending(kind, "why")
    assert (ending.sentence(" in c"), ending.hint("see x.log")) == (sentence, hint)
