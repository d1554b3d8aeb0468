"""Puts the agreement questions to one running engine: one at a time, then under load."""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from msgspec import structs

from harness.agreement import (
    CONDITIONS,
    LEVEL,
    Question,
    decided,
    interleaved,
    load_questions,
    look_ends,
    made_questions,
    messages_of,
)
from harness.apis import APIS
from harness.engines.session import EngineSession
from harness.engines.speak.dialect import Chat, render_body
from harness.errors import SetupError
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, Progress
from harness.metrics.in_flight import steps
from harness.model import UNSET, AskedBackend, AskedCondition, StoredAnswer
from harness.records.layout import UNKNOWN, Outcome, Records, content
from harness.run.measure.agreement_load import UnderLoad
from harness.run.measure.job import promised
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import Prepared
from harness.spec.backend import Backend
from harness.spec.scenario import Request

LIMIT_S = 300.0  # of each condition
ACCURACY_LIMIT_S = 1800.0  # the same for the many questions of an accuracy

# Greedy, and until the model ends by itself: an answer of forced length is cut or padded.
_GREEDY = Request(temperature=0.0, exact_output=False)


def agreement_wanted(prepared: Prepared) -> bool:
    """Whether to ask: as the options say, else if two or more backends run and none is simulated."""
    if APIS[prepared.scenario.request.api].gives == "transcripts":
        return False  # what recordings say is not known
    if prepared.options.agreement is not None:
        return prepared.options.agreement
    if prepared.options.accuracy:
        return True
    made_up = any(backend.ref.definition.backend.simulated for backend in prepared.backends)
    return len(prepared.backends) > 1 and not made_up


def questions_of(options: RunOptions) -> tuple[Question, ...]:
    """The fixed questions and those made for an accuracy, in the order of asking."""
    return tuple(interleaved((*load_questions(), *made_questions(options.accuracy))))


@dataclass(frozen=True, slots=True)
class Asking:
    """How one engine is asked. With the answers of `others` before it, an accuracy may be decided early."""

    limit_s: float = LIMIT_S
    load: UnderLoad | None = None  # None: under load is all questions at once
    others: Sequence[AskedBackend] = ()
    backends: int = 1  # of the run


def ask_all(
    definition: Backend,
    engine: EngineSession,
    questions: Sequence[Question],
    say: Callable[[str], None],
    stop: threading.Event,
    asking: Asking = Asking(),  # frozen
) -> AskedBackend | None:
    """Returns answers by condition and question; None if interrupted. SetupError: a load worker died.

    Each condition begins with an empty cache. A condition ends after `limit_s` seconds, and under load an
    engine too slow for it is asked only what it answered before. Once a look has decided the accuracy, no
    more is asked either.
    """
    asked: list[AskedCondition] = []
    wanted: Collection[str] = {question.id for question in questions}
    for condition in CONDITIONS:
        load = asking.load if condition == "saturated" else None
        engine.reset_prefix_cache()
        until_s, done, enough = time.monotonic() + asking.limit_s, 0, False
        asked_condition = AskedCondition(concurrency=0, load=load.point if load else UNSET, answers={})
        for end in look_ends(len(questions)) if asking.others else (len(questions),):
            part, done = [question for question in questions[done:end] if question.id in wanted], end
            left_s = until_s - time.monotonic()
            if not part or left_s <= 0 or enough:
                break
            at_once = 1 if condition == "unloaded" else len(part)
            job, places = _job(definition, engine, part, load, at_once)
            job = replace(job, duration_s=left_s)
            how = load.point.label if load else f"{at_once} at a time"
            ahead, total = len(asked_condition.answers), len(wanted)
            result = run_load(job, partial(_show_progress, say, how, ahead, places, total), stop)
            if result.interrupted:
                return None
            if result.client.lost_workers:
                raise SetupError("a load worker died", hint="its questions are lost: run again")
            held = int(steps(result.records.requests).counts.max(initial=1)) if load else at_once
            answers = _answers(dict(zip(places, part, strict=True)), result.records)
            asked_condition = structs.replace(
                asked_condition,
                concurrency=max(asked_condition.concurrency, held),
                answers=asked_condition.answers | answers,
            )
            enough = _enough(questions, asked_condition, asked, asking)
        if time.monotonic() >= until_s:
            wanted = asked_condition.answers.keys()
        asked.append(asked_condition)
    return AskedBackend(unloaded=asked[0], saturated=asked[1])


def _enough(
    questions: Sequence[Question], condition: AskedCondition, before: Sequence[AskedCondition], asking: Asking
) -> bool:
    """Whether every accuracy verdict that needs these answers is decided, or has all it can compare."""
    if not asking.others:
        return False
    pairs = asking.backends * (asking.backends - 1) // 2
    others = [other.saturated if before else other.unloaded for other in asking.others]
    against = [
        *((other, LEVEL / max(pairs, 1)) for other in others),
        *((earlier, LEVEL / asking.backends) for earlier in before),
    ]
    return all(
        decided(questions, earlier, condition, level) or earlier.answers.keys() <= condition.answers.keys()
        for earlier, level in against
    )


def _job(
    definition: Backend,
    engine: EngineSession,
    questions: Sequence[Question],
    load: UnderLoad | None,
    at_once: int,
) -> tuple[LoadJob, Sequence[int]]:
    """The load job, and the position of each question in it."""
    bodies: Sequence[bytes] = [_body(definition, engine, question) for question in questions]
    places: Sequence[int] = range(len(bodies))
    if load is not None:
        bodies, places = load.between(bodies)
    job = LoadJob(
        url=engine.api_url,
        access=engine.access,
        bodies=bodies,
        schedule=load.schedule(len(bodies)) if load else ClosedLoop(at_once),
        request_timeout_s=_GREEDY.timeout_s,
        drain_timeout_s=_GREEDY.timeout_s,
        promised=promised(engine),
        api=engine.definition.dialect.api,
    )
    return job, places


def _show_progress(
    say: Callable[[str], None], how: str, ahead: int, places: Sequence[int], total: int, now: Progress
) -> None:
    """Shows how many of all questions are answered: `ahead` before this job, in it those at `places`."""
    say(f"agreement questions, {how} ({ahead + bisect_left(places, now.done)} of {total})")


def _body(definition: Backend, engine: EngineSession, question: Question) -> bytes:
    messages = [{"role": role, "content": content} for role, content in messages_of(question)]
    return render_body(definition, engine.served_name, Chat(messages, question.max_tokens), _GREEDY)


def _answers(questions: Mapping[int, Question], records: Records) -> dict[str, StoredAnswer]:
    """Answers by question, without reasoning. `questions` are by their positions in the job.

    A question that the load generator had no socket for was not asked.
    """
    events, seqs = records.events, records.requests["seq"]
    bounds = np.searchsorted(events["seq"], [seqs, seqs + 1]).T.tolist()
    return {
        questions[int(row["seq"])].id: StoredAnswer(
            text=content(events[slice(*span)], text),
            finish_reason=reason or None,
            outcome=Outcome(row["outcome"]).name.lower(),
            error=error or None,
            prompt_tokens=_known(row["prompt_tokens"]),
            output_tokens=_known(row["output_tokens"]),
        )
        for row, span, text, reason, error in zip(
            records.requests, bounds, records.texts, records.finish_reasons, records.errors, strict=True
        )
        if int(row["seq"]) in questions and row["outcome"] != Outcome.NO_SOCKET
    }


def _known(count: Any) -> int | None:
    return None if count == UNKNOWN else int(count)
