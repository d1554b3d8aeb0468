"""Vectors and scores for the agreement of backends: the same texts for each, alone and in a batch."""

from collections.abc import Sequence

from harness.agreement import Question
from harness.apis import APIS, Message
from harness.engines.dialect import common_fields
from harness.engines.session import EngineSession
from harness.model import AskedBackend, AskedCondition, StoredValues
from harness.run.prepare import Prepared

_QUERIES = 6  # of a rerank API, each with the other texts as its documents


def ask_values(prepared: Prepared, engine: EngineSession, questions: Sequence[Question]) -> AskedBackend:
    """Raises SetupError where an answer has none."""
    definition = engine.definition
    texts = {question.id: question.ask for question in questions if not question.haystack}
    fields = common_fields(definition, prepared.scenario.request, 0)
    ask = _vectors if APIS[definition.dialect.api].gives == "vectors" else _scores
    nothing = AskedCondition(concurrency=1, answers={})
    return AskedBackend(unloaded=nothing, saturated=nothing, values=ask(engine, texts, fields))


def _vectors(engine: EngineSession, texts: dict[str, str], fields: dict[str, object]) -> StoredValues:
    alone = {
        name: tuple(engine.values([_user(text)], fields).values[0].tolist()) for name, text in texts.items()
    }
    batch = engine.values([_user(text) for text in texts.values()], fields).values
    together = {name: tuple(one.tolist()) for name, one in zip(texts, batch, strict=False)}
    return StoredValues(gives="vectors", alone=alone, together=together)


def _scores(engine: EngineSession, texts: dict[str, str], fields: dict[str, object]) -> StoredValues:
    """The second time with the documents in reverse order."""
    queries = dict(list(texts.items())[:_QUERIES])
    documents = [_user(text) for name, text in texts.items() if name not in queries]
    alone, together = {}, {}
    for name, query in queries.items():
        alone[name] = tuple(engine.values([_user(query), *documents], fields).values[0].tolist())
        again = engine.values([_user(query), *reversed(documents)], fields).values[0].tolist()
        together[name] = tuple(reversed(again))
    return StoredValues(gives="scores", alone=alone, together=together)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}
