"""Asks backends for vectors or scores of the same texts, alone and in a batch, to compare them."""

from collections.abc import Sequence

from harness.agreement import Question
from harness.apis import APIS, Message
from harness.engines.provide.install import install_engine, needs_install
from harness.engines.provide.reference import reference_of
from harness.engines.provide.shared_folders import Say
from harness.engines.session import EngineSession
from harness.engines.speak.dialect import common_fields
from harness.errors import SetupError
from harness.model import UNSET, AskedBackend, AskedCondition, StoredValues, TooLong, UnsetType
from harness.run.setup.prepare import Prepared

_QUERIES = 6  # of a rerank API, each with the other texts as its documents


def ask_values(prepared: Prepared, engine: EngineSession, questions: Sequence[Question]) -> AskedBackend:
    """Asks one engine for the vectors or scores of the texts. Raises SetupError if an answer has none."""
    definition = engine.definition
    texts = _texts(questions)
    fields = common_fields(definition, prepared.scenario.request, 0)
    ask = _vectors if APIS[definition.dialect.api].gives == "vectors" else _scores
    return _asked(ask(engine, texts, fields))


def reference_values(prepared: Prepared, questions: Sequence[Question], say: Say) -> dict[str, AskedBackend]:
    """Values that the model's own library computes for the same texts, by its name; {} if it is not here."""
    mine = [
        backend.ref.definition
        for backend in prepared.backends
        if backend.track and backend.launch.mode == "process" and needs_install(backend.ref.definition)
    ]
    texts, gives = _texts(questions), prepared.model.gives
    if not mine or gives == "text" or gives == "transcripts":  # as mypy reads it
        return {}
    queries, documents = _ranked(texts)
    pairs = [(query, document) for query in queries.values() for document in documents]
    environments = (install_engine(definition, say) for definition in mine)
    asked = list(texts.values()) if gives == "vectors" else pairs
    computed = reference_of(prepared.model_name, prepared.model, environments, asked, say)
    if computed is None:
        return {}
    library, values = computed
    if gives == "scores":
        values = [values[at : at + len(documents)] for at in range(0, len(pairs), len(documents))]
    named = zip(texts if gives == "vectors" else queries, values, strict=True)
    alone = {name: tuple(map(float, item)) for name, item in named}
    return {library: _asked(StoredValues(gives=gives, alone=alone, together={}, library=library))}


def _texts(questions: Sequence[Question]) -> dict[str, str]:
    return {question.id: question.ask for question in questions if not question.haystack}


def _ranked(texts: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """The first texts as queries by name, and the other texts as the documents of each query."""
    named = list(texts.items())
    return dict(named[:_QUERIES]), [text for _, text in named[_QUERIES:]]


def _asked(values: StoredValues) -> AskedBackend:
    nothing = AskedCondition(concurrency=1, answers={})
    return AskedBackend(unloaded=nothing, saturated=nothing, values=values)


def _vectors(engine: EngineSession, texts: dict[str, str], fields: dict[str, object]) -> StoredValues:
    alone = {
        name: tuple(engine.values([_user(text)], fields).values[0].tolist()) for name, text in texts.items()
    }
    batch = engine.values([_user(text) for text in texts.values()], fields).values
    together = {name: tuple(vector.tolist()) for name, vector in zip(texts, batch, strict=False)}
    longer = _too_long(engine, fields)
    return StoredValues(gives="vectors", alone=alone, together=together, too_long=longer)


def _too_long(engine: EngineSession, fields: dict[str, object]) -> TooLong | UnsetType:
    """Asks for two texts that differ only beyond the context: if their vectors are equal, they were cut."""
    context = engine.definition.engine.values.get("context_tokens")
    if engine.facts.get("simulated") or context is None:
        return UNSET
    text = "day " * 2 * int(context)
    try:
        whole = engine.values([_user(text + "night " * 20)], fields).values[0]
        other = engine.values([_user(text + "sea " * 20)], fields).values[0]
    except SetupError:
        return "refused"
    return "cut" if whole == other else "read whole"


def _scores(engine: EngineSession, texts: dict[str, str], fields: dict[str, object]) -> StoredValues:
    """Scores of the documents for each query: `together` has them from a request in reverse order."""
    queries, ranked = _ranked(texts)
    documents = list(map(_user, ranked))
    alone, together = {}, {}
    for name, query in queries.items():
        alone[name] = tuple(engine.values([_user(query), *documents], fields).values[0].tolist())
        again = engine.values([_user(query), *reversed(documents)], fields).values[0].tolist()
        together[name] = tuple(reversed(again))
    return StoredValues(gives="scores", alone=alone, together=together)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}
