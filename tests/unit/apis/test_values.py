"""Vectors and scores: read in each form that engines have, and refused where no model can have meant them."""

import json
from base64 import b64encode
from struct import pack

import pytest

from harness.apis import APIS, EMBEDDINGS, RERANK, Api
from harness.apis.payload import read_json
from harness.engines.speak.dialect import Chat, render_body
from harness.engines.start.launch_choice import as_launched, resolve_launch
from harness.errors import SpecError
from harness.load.sse import parse_document
from harness.model import WITHOUT_TEXT
from harness.records.event_kind import UNKNOWN, EventKind
from harness.spec.backend_refs import parse_backend_list
from harness.spec.scenario import Request, load_scenario


def vectors(*given: object, usage: object = None) -> bytes:
    data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(given)]
    return json.dumps({"object": "list", "data": data, "usage": usage}).encode()


def scores(*given: object) -> bytes:
    results = [{"index": place, "relevance_score": one} for place, one in reversed(list(enumerate(given)))]
    return json.dumps({"results": results, "usage": {"total_tokens": 9}}).encode()


def test_numbers_and_base64_are_the_same_vectors() -> None:
    plain = read_json(vectors([0.5, -0.25], [1.0, 2.0], usage={"prompt_tokens": 7}), EMBEDDINGS.read)
    coded = [b64encode(pack("<2f", *pair)).decode() for pair in ((0.5, -0.25), (1.0, 2.0))]
    assert [list(one) for one in plain.values] == [[0.5, -0.25], [1.0, 2.0]]
    assert read_json(vectors(*coded), EMBEDDINGS.read).values == plain.values
    assert (plain.kind, plain.prompt_tokens) == (EventKind.VALUES, 7)


def test_scores_are_in_the_order_of_the_documents() -> None:
    payload = read_json(scores(0.1, 0.9, -3), RERANK.read)
    assert [list(one) for one in payload.values] == [[0.1, 0.9, -3.0]]
    assert payload.prompt_tokens == 9


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"total_tokens": 7}, 7),  # Voyage
        ({"prompt_tokens": 0, "total_tokens": 7}, 7),
        ({"prompt_tokens": 0, "total_tokens": 0}, UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_prompts_are_the_total_of_an_answer_without_output(usage: object, tokens: int) -> None:
    ranked = {"results": [{"index": 0, "score": 1}], "usage": usage}
    assert read_json(vectors([1.0], usage=usage), EMBEDDINGS.read).prompt_tokens == tokens
    assert read_json(json.dumps(ranked).encode(), RERANK.read).prompt_tokens == tokens


def test_cohere_counts_the_prompts_of_a_ranking_elsewhere() -> None:
    ranked = {"results": [{"index": 0, "relevance_score": 1}], "meta": {"tokens": {"input_tokens": 7}}}
    assert read_json(json.dumps(ranked).encode(), RERANK.read).prompt_tokens == 7


def test_scores_may_come_as_a_bare_list() -> None:
    body = b'[{"score": 2.5, "document": "b", "index": 1}, {"score": -1, "document": "a", "index": 0}]'
    parsed = parse_document(body, RERANK)
    assert [list(one) for one in parsed.values] == [[-1.0, 2.5]]
    assert parse_document(body, EMBEDDINGS).malformed == "JSON that is not an object"


@pytest.mark.parametrize(
    ("api", "body", "said"),
    [
        (EMBEDDINGS, vectors(), "no vector"),
        (EMBEDDINGS, vectors([1.0, float("nan")]), "not finite"),
        (EMBEDDINGS, vectors([1.0, float("inf")]), "not finite"),
        (EMBEDDINGS, vectors([1.0, None]), "not embeddings"),
        (EMBEDDINGS, vectors([1.0, 2.0], [1.0]), "different lengths"),
        (EMBEDDINGS, vectors([1.0, 2.0], [1.0, 2.0]), "all 2 vectors are equal"),
        (EMBEDDINGS, vectors([0.0, 0.0]), "all zero"),
        (EMBEDDINGS, vectors([]), "empty"),
        (EMBEDDINGS, vectors("no base64!"), "not embeddings"),
        (EMBEDDINGS, vectors({"a": 1}), "neither a list of numbers nor base64"),
        (EMBEDDINGS, b'{"data": [{"embedding": [1.0]}]}', "each once"),
        (EMBEDDINGS, b'{"data": [{"index": 1, "embedding": [1.0]}]}', "0, 1, 2"),
        (EMBEDDINGS, b'{"choices": []}', "no vector"),
        (RERANK, scores(), "no score"),
        (RERANK, scores(1.0, float("nan")), "not finite"),
        (RERANK, scores(1.0, "high"), "not a number"),
        (RERANK, scores(1.0, 1.0), "all 2 scores are equal"),
        (RERANK, b'{"results": [{"index": 0, "score": 1}, {"index": 0, "score": 2}]}', "each once"),
        (RERANK, b'{"results": [{"index": [], "score": 1}]}', "not a ranking"),
    ],
)  # fmt: skip
def test_garbage_is_no_answer(api: Api, body: bytes, said: str) -> None:
    parsed = parse_document(body, api)
    assert said in parsed.malformed
    assert parsed.values == ()


def test_an_error_object_is_an_error() -> None:
    assert read_json(b'{"error": {"message": "too long", "code": 500}}', EMBEDDINGS.read).error == "too long"


def test_requests_carry_no_sampling_and_no_stream() -> None:
    (ref,) = parse_backend_list("vllm@embeddings")
    chat = Chat([{"role": "user", "content": text} for text in ("a", "b")], 1)
    request = Request(encoding_format="base64", dimensions=128)
    assert json.loads(render_body(ref.definition, "m", chat, request)) == {
        "model": "m", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 128,
    }  # fmt: skip
    (ref,) = parse_backend_list("vllm@rerank")
    assert json.loads(render_body(ref.definition, "m", chat, Request())) == {
        "model": "m", "query": "a", "documents": ["b"],
    }  # fmt: skip


def test_an_engine_is_started_for_its_api() -> None:
    for entry, started in (("llamacpp@embeddings", True), ("llamacpp", False)):
        (ref,) = parse_backend_list(entry)
        launched = as_launched(ref, resolve_launch(ref, "process", "cpu"))
        assert (launched.definition.engine.args[-3:] == ("--embeddings", "--pooling", "mean")) is started


def test_the_model_of_metrics_knows_the_apis_without_text() -> None:
    assert tuple(name for name, api in APIS.items() if api.gives != "text") == WITHOUT_TEXT


@pytest.mark.parametrize(
    ("scenario", "override", "said"),
    [
        ("fixed-length", {"request.api": "embeddings"}, "are not for the Embeddings API"),
        ("embed-documents", {"request.api": "chat"}, "are not for the Chat Completions API"),
        ("embed-queries", {"verdict.primary": "ttft_ms.p50"}, "is of generated text"),
        ("rerank-top-100", {"request.api": "embeddings"}, "are not for the Embeddings API"),
    ],
)
def test_prompts_and_apis_that_do_not_fit_are_one_error(
    scenario: str, override: dict[str, object], said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        load_scenario(scenario, override)
