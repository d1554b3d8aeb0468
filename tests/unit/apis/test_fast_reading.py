"""The fast reading of events of one form says what the slow one says, and parses next to none of them."""

import json
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apis import COMPLETIONS, MESSAGES, RESPONSES, Api
from harness.load import sse
from harness.load.sse import Parsed, parse_events
from tests.factories.answers import DONE, FINISH, USAGE, delta, event
from tests.factories.api_streams import (
    completions,
    llamacpp_messages,
    named,
    sglang_responses,
    vllm_messages,
    vllm_responses,
)

Stream = Callable[[Sequence[str]], bytes]
STREAMS: dict[str, tuple[Api, Stream]] = {
    "completions": (COMPLETIONS, completions),
    "responses of vLLM": (RESPONSES, vllm_responses),
    "responses of SGLang": (RESPONSES, sglang_responses),
    "messages of vLLM": (MESSAGES, vllm_messages),
    "messages of llama.cpp": (MESSAGES, llamacpp_messages),
}
MOST_OTHERS = 12  # events of a stream that are no text, each parsed


def slow(body: bytes, api: Api, *, ended: bool) -> Parsed:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sse, "find_form", lambda *_: None)
        return parse_events(body, api, ended=ended)


def same(body: bytes, api: Api, *, ended: bool = True) -> None:
    found, expected = parse_events(body, api, ended=ended), slow(body, api, ended=ended)
    assert "".join(found.texts) == "".join(expected.texts)
    for name in (
        "kinds",
        "chars",
        "sizes",
        "finish_reason",
        "prompt_tokens",
        "output_tokens",
        "error",
        "done",
    ):
        assert getattr(found, name) == getattr(expected, name), name


@pytest.mark.parametrize(("api", "stream"), STREAMS.values(), ids=STREAMS)
def test_equal_events_are_read_without_parsing_each(
    api: Api, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f" w{number}" for number in range(500)]
    body = stream(texts)
    calls = []
    monkeypatch.setattr(
        "harness.apis.payload.msgspec.json.decode",
        lambda data, decode=msgspec.json.decode: calls.append(1) or decode(data),
    )
    parsed = parse_events(body, api, ended=True)
    assert parsed.text() == "".join(texts)
    assert len(calls) <= MOST_OTHERS


def test_the_only_token_of_an_answer_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No event of its form follows, so none needs a form."""
    documents = [delta("", role="assistant"), delta("so"), FINISH, USAGE]
    calls = []
    monkeypatch.setattr(
        "harness.apis.payload.msgspec.json.decode",
        lambda data, decode=msgspec.json.decode: calls.append(data) or decode(data),
    )
    parse_events(b"".join(map(event, [*documents, DONE])), ended=True)
    assert calls == documents


_texts = st.lists(
    st.one_of(
        st.sampled_from(["", " a", '"', "\\", "\n", "é", "😀", '","sequence_number":7', "\x00"]), st.text()
    ),
    max_size=12,
)


@pytest.mark.parametrize(("api", "stream"), STREAMS.values(), ids=STREAMS)
@given(texts=_texts, data=st.data())
def test_any_texts_are_read_alike(api: Api, stream: Stream, texts: list[str], data: st.DataObject) -> None:
    body = stream(texts)
    same(body, api)
    same(body[: data.draw(st.integers(0, len(body)))], api, ended=False)


def _delta(number: object, **more: object) -> bytes:
    return named({"delta": "a", **more, "sequence_number": number, "type": "response.output_text.delta"})


@pytest.mark.parametrize(
    "odd",
    [
        _delta(-1),
        _delta(1.5),
        _delta("7"),
        _delta(None),
        _delta(10**30),
        _delta(3, delta="b"),
        _delta(3, index=2),
        _delta(3).replace(b'"sequence_number": 3', b'"sequence_number": 03'),
        _delta(3).replace(b'"a"', b'"\\q"'),
        _delta(3).replace(b'"a"', b'"\xff"'),
        _delta(3).replace(b"\n\n", b"\r\n\r\n"),
        named({"type": "response.reasoning_text.delta", "delta": "a", "sequence_number": 3}),
        named({"type": "error", "message": "x", "sequence_number": 3}),
    ],
)
def test_an_event_that_is_not_quite_of_the_form_is_parsed(odd: bytes) -> None:
    usual = [_delta(number) for number in range(8)]
    same(b"".join([*usual, odd, *usual]), RESPONSES)


def test_numbers_elsewhere_keep_their_meaning() -> None:
    """A token count that grows is no running number of the API."""
    events = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": json.dumps(number)},
        }
        for number in range(5)
    ]
    body = b"".join(map(named, events))
    same(body.replace(b'"index": 0', b'"index": 1', 1), MESSAGES)
