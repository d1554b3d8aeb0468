import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.mockserver.ask import (
    BadAskError,
    chat_text,
    load_object,
    parse_ask,
    parse_values,
    prompt_tokens,
    token_id,
    tokenize,
)
from harness.mockserver.declared import declared_dialect
from harness.mockserver.values import VectorStyle

MESSAGES = [{"role": "user", "content": "hello"}]

TRUTH = declared_dialect("truth")


def ask_of(chat: bool = True, **fields: Any) -> Any:
    body = {"messages": MESSAGES} if chat else {"prompt": "hello"}
    return parse_ask(json.dumps(body | fields).encode(), TRUTH, chat=chat, chars_per_token=4)


@given(st.text(), st.integers(1, 9))
def test_tokens_are_the_text_and_their_number_is_known(text: str, chars_per_token: int) -> None:
    tokens = tokenize(text, chars_per_token)
    assert "".join(tokens) == text
    assert len(tokens) == -(-len(text) // chars_per_token)


@given(st.text(), st.text(), st.integers(1, 9))
def test_a_common_beginning_gives_common_tokens(text: str, continuation: str, chars_per_token: int) -> None:
    whole = len(text) // chars_per_token
    longer = tokenize(text + continuation, chars_per_token)
    assert longer[:whole] == tokenize(text, chars_per_token)[:whole]


def test_the_template_of_a_longer_chat_begins_with_the_shorter_one() -> None:
    system = {"role": "system", "content": "Be brief."}
    parts = {"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}
    assert chat_text([system, parts]) == "<|system|>\nBe brief.\n<|user|>\nhello\n<|assistant|>\n"
    answered = [system, parts, {"role": "assistant", "content": "Hi."}]
    assert chat_text(answered).startswith(chat_text([system, parts]))


def test_images_and_missing_content_have_no_text() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
    assert chat_text([image, {"role": "tool", "content": None}]) == "<|user|>\n\n<|tool|>\n\n<|assistant|>\n"


def test_prompts_of_all_routes() -> None:
    assert prompt_tokens({"prompt": "abcdef"}, 4) == ["abcd", "ef"]
    assert prompt_tokens({"content": "abcdef"}, 4) == ["abcd", "ef"]
    assert prompt_tokens({"prompt": [7, 8]}, 4) == [7, 8]
    assert [token_id(token) for token in (7, "abcd")] == [7, token_id("abcd")]
    assert 0 <= token_id("abcd") < 2**31


def test_fields() -> None:
    plain = ask_of()
    assert (plain.stream, plain.max_tokens, plain.ignore_eos, plain.include_usage) == (
        False,
        None,
        False,
        False,
    )
    usage = {"include_usage": True, "continuous_usage_stats": True}
    full = ask_of(stream=True, max_tokens=5, min_tokens=2, ignore_eos=True, stream_options=usage, unknown=1)
    assert (full.stream, full.max_tokens, full.min_tokens, full.ignore_eos) == (True, 5, 2, True)
    assert full.include_usage
    assert full.continuous_usage
    assert ask_of(max_tokens=5, max_completion_tokens=3).max_tokens == 3
    assert not ask_of(chat=False, stream_options=None, n=1).chat


@pytest.mark.parametrize(
    ("body", "chat"),
    [
        ("{", True),
        ("[]", True),
        ("{}", True),
        ("{}", False),
        ('{"prompt": "x"}', True),
        ('{"messages": [{"role": "user"}]}', False),
        ('{"messages": []}', True),
        ('{"messages": ["hello"]}', True),
        ('{"messages": [{"content": "no role"}]}', True),
        ('{"messages": [{"role": "user", "content": 5}]}', True),
        ('{"prompt": ["two", "prompts"]}', False),
        ('{"prompt": [true]}', False),
        ('{"prompt": "x", "n": 2}', False),
        ('{"prompt": "x", "max_tokens": 0}', False),
        ('{"prompt": "x", "max_tokens": "9"}', False),
        ('{"prompt": "x", "min_tokens": -1}', False),
        ('{"prompt": "x", "max_tokens": 1000000000000000000000}', False),
        ('{"prompt": "x", "min_tokens": 10000001}', False),
        pytest.param('{"prompt": "\\ud83d", "max_tokens": 1}', False, id="half of a surrogate pair"),
        ('{"prompt": "x", "stream_options": "usage"}', False),
        pytest.param("[" * 100_000, True, id="deep"),
    ],
)
def test_what_is_refused(body: str, chat: bool) -> None:
    with pytest.raises(BadAskError):
        parse_ask(body.encode(), TRUTH, chat=chat, chars_per_token=4)


def test_a_half_of_a_surrogate_pair_is_refused_in_bytes_too_and_a_whole_one_is_text() -> None:
    with pytest.raises(BadAskError, match="not JSON"):
        load_object(b'{"prompt": "\xed\xa0\xbd"}')
    assert load_object(b'{"prompt": "\\ud83d\\ude00 \xed\x95\x9c"}') == {"prompt": "\N{GRINNING FACE} \ud55c"}


@pytest.mark.parametrize(
    "asked",
    [
        {"regex": "[^\\s\\S]"},
        {"grammar": 'root ::= "\\x41"'},
        {"json": {"allOf": [True]}},
        {"json": {"type": "integer", "multipleOf": 0}},
        {"json": {"properties": ["a"]}},
    ],
)
def test_a_constraint_that_is_not_simulated_is_refused_whatever_it_holds(asked: dict[str, Any]) -> None:
    with pytest.raises(BadAskError):
        ask_of(structured_outputs=asked)


@pytest.mark.parametrize("dimensions", [-1, 0, 385])
def test_a_vector_of_a_size_that_the_model_has_not_is_refused(dimensions: int) -> None:
    body = json.dumps({"input": "hello", "dimensions": dimensions}).encode()
    with pytest.raises(BadAskError, match="dimensions must be 1 to 384"):
        parse_values(body, VectorStyle(shortens="yes"), 4)
