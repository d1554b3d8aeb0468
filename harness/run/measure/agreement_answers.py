"""The questions of the agreement test, put to one running engine: one at a time, then under load."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, Progress
from harness.metrics.in_flight import steps
from harness.model import UNSET, AskedBackend, AskedCondition, StoredAnswer
from harness.records.layout import UNKNOWN, Outcome, Records
from harness.run.measure.agreement_load import UnderLoad
from harness.run.measure.job import promised
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import Prepared
from harness.spec.backend import Backend
from harness.spec.scenario import Request

LIMIT_S = 300.0
ACCURACY_LIMIT_S = 1800.0  # where many questions were asked for

# Greedy, and to where the model ends by itself: a forced length would be compared, not an answer.
_GREEDY = Request(temperature=0.0, exact_output=False)


def agreement_wanted(prepared: Prepared) -> bool:
    """Asked for; else with two backends or more, unless one of them is not an inference engine."""
    if APIS[prepared.scenario.request.api].gives == "transcripts":
        return False  # what recordings say is not known
    if prepared.options.agreement is not None:
        return prepared.options.agreement
    if prepared.options.accuracy:
        return True
    made_up = any(backend.ref.definition.backend.simulated for backend in prepared.backends)
    return len(prepared.backends) > 1 and not made_up


def questions_of(options: RunOptions) -> tuple[Question, ...]:
    """Returns the questions in the order of asking."""
    return tuple(interleaved((*load_questions(), *made_questions(options.accuracy))))


@dataclass(frozen=True, slots=True)
class Asking:
    """Holds how one engine is asked.

    `others`: answers of engines before it, in whose light enough may be known.
    """

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
    """Answers by condition and question; None when it was interrupted. The cache is emptied before each.

    A slow engine is asked no more after `limit_s`, and under load only what it was asked before. Where it is
    known after a look what became of the accuracy, no more is asked either.
    """
    asked: list[AskedCondition] = []
    for condition in CONDITIONS:
        load = asking.load if condition == "saturated" else None
        engine.reset_prefix_cache()
        until_s, done, enough = time.monotonic() + asking.limit_s, 0, False
        asked_condition = AskedCondition(concurrency=0, load=load.point if load else UNSET, answers={})
        for end in look_ends(len(questions)) if asking.others else (len(questions),):
            part, done = questions[done:end], end
            left_s = until_s - time.monotonic()
            if not part or left_s <= 0 or enough:
                break
            at_once = 1 if condition == "unloaded" else len(part)
            job, places = _job(definition, engine, part, load, at_once)
            job = replace(job, duration_s=left_s)
            result = run_load(
                job, partial(_tell, say, load.point.label if load else f"{at_once} at a time"), stop
            )
            if result.interrupted:
                return None
            held = int(steps(result.records.requests).counts.max(initial=1)) if load else at_once
            answers = _answers(dict(zip(places, part, strict=True)), result.records)
            asked_condition = structs.replace(
                asked_condition,
                concurrency=max(asked_condition.concurrency, held),
                answers=asked_condition.answers | answers,
            )
            enough = _enough(questions, asked_condition, asked, asking)
        if not enough:
            questions = [question for question in questions if question.id in asked_condition.answers]
        asked.append(asked_condition)
    return AskedBackend(unloaded=asked[0], saturated=asked[1])


def _enough(
    questions: Sequence[Question], condition: AskedCondition, before: Sequence[AskedCondition], asking: Asking
) -> bool:
    """Returns whether every verdict that these answers are for is reached."""
    if not asking.others:
        return False
    first = asking.others[0].saturated if before else asking.others[0].unloaded
    pairs = asking.backends * (asking.backends - 1) // 2
    against = [(first, LEVEL / max(pairs, 1)), *((earlier, LEVEL / asking.backends) for earlier in before)]
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
    """Builds the job and where each question stands in it."""
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


def _tell(say: Callable[[str], None], how: str, now: Progress) -> None:
    say(f"agreement questions, {how} ({now.done} of {now.planned})")


def _body(definition: Backend, engine: EngineSession, question: Question) -> bytes:
    messages = [{"role": role, "content": content} for role, content in messages_of(question)]
    return render_body(definition, engine.served_name, Chat(messages, question.max_tokens), _GREEDY)


def _answers(questions: Mapping[int, Question], records: Records) -> dict[str, StoredAnswer]:
    """`questions` by their places in the job."""
    return {
        questions[int(row["seq"])].id: StoredAnswer(
            text=text,
            finish_reason=reason or None,
            outcome=Outcome(row["outcome"]).name.lower(),
            error=error or None,
            prompt_tokens=_known(row["prompt_tokens"]),
            output_tokens=_known(row["output_tokens"]),
        )
        for row, text, reason, error in zip(
            records.requests, records.texts, records.finish_reasons, records.errors, strict=True
        )
        if int(row["seq"]) in questions
    }


def _known(count: Any) -> int | None:
    return None if count == UNKNOWN else int(count)
