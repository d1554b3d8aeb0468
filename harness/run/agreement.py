"""The questions of the agreement test, put to one running engine: one at a time, then all at once."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from harness.agreement import CONDITIONS, Question, interleaved, messages_of
from harness.engines.dialect import Chat, render_body
from harness.engines.session import EngineSession
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, Progress
from harness.model import AskedBackend, AskedCondition, StoredAnswer
from harness.records.layout import UNKNOWN, Outcome, Records
from harness.run.job import promised
from harness.run.prepare import Prepared
from harness.spec.backend import Backend
from harness.spec.scenario import Request

LIMIT_S = 300.0

# Greedy, and to where the model ends by itself: a forced length would be compared, not an answer.
_GREEDY = Request(temperature=0.0, exact_output=False)


def agreement_wanted(prepared: Prepared) -> bool:
    """Asked for; else with two backends or more, unless one of them is not an inference engine."""
    if prepared.options.agreement is not None:
        return prepared.options.agreement
    made_up = any(one.ref.definition.backend.simulated for one in prepared.backends)
    return len(prepared.backends) > 1 and not made_up


def ask_all(
    definition: Backend,
    engine: EngineSession,
    questions: Sequence[Question],
    say: Callable[[str], None],
    stop: threading.Event,
    limit_s: float = LIMIT_S,
) -> AskedBackend | None:
    """Answers by condition and question; None when it was interrupted. The cache is emptied before each.

    A slow engine is asked no more after `limit_s`, and under load only what it was asked before.
    """
    asked: list[AskedCondition] = []
    questions = interleaved(questions)
    for condition in CONDITIONS:
        if asked:
            questions = [question for question in questions if question.id in asked[0].answers]
        concurrency = 1 if condition == "unloaded" else max(len(questions), 1)
        engine.reset_prefix_cache()
        job = LoadJob(
            url=engine.api_url,
            access=engine.access,
            bodies=[_body(definition, engine, question) for question in questions],
            schedule=ClosedLoop(concurrency),
            duration_s=limit_s,
            request_timeout_s=_GREEDY.timeout_s,
            drain_timeout_s=_GREEDY.timeout_s,
            promised=promised(engine),
            api=engine.definition.dialect.api,
        )
        result = run_load(job, partial(_tell, say, concurrency), stop)
        if result.interrupted:
            return None
        answers = _answers(questions, result.records)
        asked.append(AskedCondition(concurrency=concurrency, answers=answers))
    return AskedBackend(unloaded=asked[0], saturated=asked[1])


def _tell(say: Callable[[str], None], concurrency: int, now: Progress) -> None:
    say(f"agreement questions, {concurrency} at a time ({now.done} of {now.planned})")


def _body(definition: Backend, engine: EngineSession, question: Question) -> bytes:
    messages = [{"role": role, "content": content} for role, content in messages_of(question)]
    return render_body(definition, engine.served_name, Chat(messages, question.max_tokens), _GREEDY)


def _answers(questions: Sequence[Question], records: Records) -> dict[str, StoredAnswer]:
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
    }


def _known(count: Any) -> int | None:
    return None if count == UNKNOWN else int(count)
