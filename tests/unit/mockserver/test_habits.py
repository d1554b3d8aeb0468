import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.mockserver.answer import Answer
from harness.mockserver.ask import Ask
from harness.mockserver.habits import Habits, framed, streamed
from harness.mockserver.script import NS_PER_MS, Script, Then, Write, text

TTFT_MS, GAP_MS = 100, 50


def writes_of(
    habits: Habits,
    *,
    tokens: int = 6,
    chat: bool = True,
    stream: bool = True,
    gzip: bool = False,
    close: bool = False,
    wrong_usage: bool = False,
    **asked: Any,
) -> list[Write]:
    dues = iter([(TTFT_MS + GAP_MS * index) * NS_PER_MS for index in range(tokens)])
    answer = Answer(
        ask=Ask(chat, prompt=["hell", "o"], stream=stream, **asked),
        script=Script(tokens, "length", prompt_tokens=2, cached_tokens=1, dues_ns=dues),
        habits=habits,
        answer_id="id-0",
        created=1,
        model="simulated",
        wrong_usage=wrong_usage,
    )
    body = answer.body()
    if stream:
        body = streamed(body, habits)
    return list(framed(body, habits, stream=stream, gzip=gzip, close=close))


def split(writes: list[Write]) -> tuple[str, bytes]:
    """Head and decoded body, checked against the framing that the head declares."""
    head, _, body = b"".join(write.data for write in writes).partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 103"):
        head, _, body = body.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    if fields.get("transfer-encoding") == "chunked":
        body = dechunked(body)
    elif "content-length" in fields:
        assert int(fields["content-length"]) == len(body)
    if fields.get("content-encoding") == "gzip":
        body = zlib.decompress(body, wbits=31)
    return head.decode(), body


def dechunked(data: bytes) -> bytes:
    body = b""
    while True:
        size, _, rest = data.partition(b"\r\n")
        length = int(size, 16)
        body += rest[:length]
        assert rest[length : length + 2] == b"\r\n"
        data = rest[length + 2 :]
        if not length:
            assert not data
            return body


def events_of(writes: list[Write]) -> list[Any]:
    _, body = split(writes)
    lines = [line.rstrip("\r") for line in body.decode().split("\n")]
    data = [line.removeprefix("data: ") for line in lines if line and not line.startswith(":")]
    return [line if line == "[DONE]" else json.loads(line) for line in data]


def deltas_of(writes: list[Write]) -> list[dict[str, str]]:
    return [
        event["choices"][0]["delta"] for event in events_of(writes) if event != "[DONE]" and event["choices"]
    ]


def dues_ms(writes: list[Write]) -> list[int]:
    return [write.due_ns // NS_PER_MS for write in writes]


all_habits = st.builds(
    Habits,
    role=st.sampled_from(["none", "early", "first"]),
    empty_delta_every=st.integers(0, 3),
    reasoning_tokens=st.integers(0, 4),
    reasoning_field=st.sampled_from(["reasoning", "reasoning_content"]),
    first_event_tokens=st.integers(1, 4),
    tokens_per_event=st.integers(1, 4),
    events_per_write=st.integers(1, 4),
    keepalive_ms=st.sampled_from([0.0, 30.0]),
    crlf=st.booleans(),
    no_done=st.booleans(),
    usage=st.sampled_from(["asked", "final", "each", "never"]),
    framing=st.sampled_from(["chunked", "content-length", "close"]),
    gzip=st.booleans(),
    late_headers=st.booleans(),
    early_hints=st.booleans(),
    vocabulary=st.sampled_from(["ascii", "unicode"]),
)


@given(all_habits, st.integers(1, 12), st.booleans(), st.booleans(), st.booleans())
def test_no_habit_changes_the_text_or_the_time_of_a_token(
    habits: Habits, tokens: int, chat: bool, stream: bool, include_usage: bool
) -> None:
    writes = writes_of(
        habits, tokens=tokens, chat=chat, stream=stream, gzip=habits.gzip, include_usage=include_usage
    )
    said = ""
    for event in events_of(writes) if stream else [json.loads(split(writes)[1])]:
        if event == "[DONE]":
            continue
        for choice in event["choices"]:
            part = choice.get("delta") or choice.get("message") or choice
            said += part.get(habits.reasoning_field) or ""
            said += part.get("content") or part.get("text") or ""
    assert said == text(habits.vocabulary, 0, tokens)
    assert sum(write.tokens for write in writes) == tokens
    assert writes[-1].then is Then.END
    assert all(write.then is Then.MORE for write in writes[:-1])
    dues = dues_ms(writes)
    assert dues == sorted(dues)
    assert dues[-1] == TTFT_MS + GAP_MS * (tokens - 1)
    first = next(write for write in writes if write.tokens)
    if stream:
        thoughts = min(habits.reasoning_tokens, tokens) if chat else 0
        size = min(habits.first_event_tokens, thoughts or tokens)
        assert (first.due_ns, first.tokens) == ((TTFT_MS + GAP_MS * (size - 1)) * NS_PER_MS, size)


def test_by_default_one_write_per_token_on_its_schedule() -> None:
    writes = writes_of(Habits(role="none"))
    assert dues_ms(writes) == [0, 100, 150, 200, 250, 300, 350]
    assert [write.tokens for write in writes] == [0, 1, 1, 1, 1, 1, 1]
    assert events_of(writes)[-1] == "[DONE]"


@pytest.mark.parametrize(("role", "place_of_role_ms"), [("none", None), ("early", 0), ("first", TTFT_MS)])
def test_role_chunk(role: Any, place_of_role_ms: int | None) -> None:
    writes = writes_of(Habits(role=role))
    places = [write.due_ns // NS_PER_MS for write in writes if b'"role"' in write.data]
    assert places == ([] if place_of_role_ms is None else [place_of_role_ms])
    roles = [delta for delta in deltas_of(writes) if "role" in delta]
    assert roles == ([] if role == "none" else [{"role": "assistant", "content": ""}])
    assert b'"role"' not in split(writes_of(Habits(role=role), chat=False))[1]


def test_reasoning_comes_first_in_its_own_field() -> None:
    habits = Habits(role="none", reasoning_tokens=2, reasoning_field="reasoning", tokens_per_event=3)
    deltas = deltas_of(writes_of(habits))
    assert [next(iter(delta), None) for delta in deltas] == [
        "reasoning",
        "reasoning",
        "content",
        "content",
        None,
    ]
    whole = json.loads(split(writes_of(habits, stream=False))[1])["choices"][0]["message"]
    assert whole == {"role": "assistant", "content": text("ascii", 2, 6), "reasoning": text("ascii", 0, 2)}


def test_tokens_gather_in_events_and_events_in_writes() -> None:
    by_event = writes_of(Habits(role="none", tokens_per_event=2))
    assert [(write.events, write.tokens) for write in by_event[1:]] == [(1, 1), (1, 2), (1, 2), (1, 1)]
    assert dues_ms(by_event) == [0, 100, 200, 300, 350]
    begun = writes_of(Habits(role="none", first_event_tokens=3, tokens_per_event=2))
    assert [(write.events, write.tokens) for write in begun[1:]] == [(1, 3), (1, 2), (1, 1)]
    assert dues_ms(begun) == [0, 200, 300, 350]
    by_write = writes_of(Habits(role="none", events_per_write=2))
    assert [(write.events, write.tokens) for write in by_write[1:]] == [(1, 1), (2, 2), (2, 2), (1, 1)]
    assert dues_ms(by_write) == [0, 100, 200, 300, 350]


def test_empty_deltas() -> None:
    deltas = deltas_of(writes_of(Habits(role="none", empty_delta_every=3)))
    assert [delta.get("content") == "" for delta in deltas] == [
        True,
        False,
        False,
        False,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_comment_fills_every_long_silence_and_no_short_one() -> None:
    writes = writes_of(Habits(role="none", keepalive_ms=40))
    comments = [write.due_ns // NS_PER_MS for write in writes if b": keepalive" in write.data]
    assert comments == [40, 80, 140, 190, 240, 290, 340]
    assert not [write for write in writes_of(Habits(keepalive_ms=100)) if b": keepalive" in write.data]


def usages_of(habits: Habits, **asked: Any) -> list[int | None]:
    """completion_tokens of each event, None where it has no usage."""
    events = [event for event in events_of(writes_of(habits, tokens=2, **asked)) if event != "[DONE]"]
    return [event["usage"]["completion_tokens"] if "usage" in event else None for event in events]


def test_usage_habits() -> None:
    plain = Habits(role="none")
    asks = {"include_usage": True}
    assert usages_of(plain) == [None, None, None]
    assert usages_of(plain, **asks) == [None, None, None, 2]
    assert usages_of(plain, **asks, continuous_usage=True) == [1, 2, 2, 2]
    assert usages_of(replace(plain, usage="final")) == [None, None, None, 2]
    assert usages_of(replace(plain, usage="each")) == [1, 2, 2]
    assert usages_of(replace(plain, usage="never"), **asks, continuous_usage=True) == [None, None, None]
    assert usages_of(plain, wrong_usage=True, **asks)[-1] == 5


def test_usage_block() -> None:
    whole = json.loads(split(writes_of(Habits(), stream=False))[1])
    assert whole["usage"] == {
        "prompt_tokens": 2,
        "completion_tokens": 6,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    assert (whole["system_fingerprint"], whole["model"]) == ("simulated", "simulated")
    assert "usage" not in json.loads(split(writes_of(Habits(usage="never"), stream=False))[1])


def test_no_done_and_line_ends() -> None:
    assert b"[DONE]" not in split(writes_of(Habits(no_done=True)))[1]
    _, body = split(writes_of(Habits(crlf=True, keepalive_ms=40, vocabulary="unicode")))
    assert body.count(b"\n") == body.count(b"\r\n") > 0


@pytest.mark.parametrize(
    ("framing", "field"),
    [
        ("chunked", "transfer-encoding: chunked"),
        ("content-length", "content-length: "),
        ("close", "connection: close"),
    ],
)
def test_framing(framing: Any, field: str) -> None:
    head, body = split(writes_of(Habits(framing=framing)))
    assert field in head
    assert body.endswith(b"data: [DONE]\n\n")
    assert "content-length" in split(writes_of(Habits(framing=framing), stream=False))[0]


def test_gzip_is_readable_at_every_write() -> None:
    decompressor = zlib.decompressobj(wbits=31)
    head, *body = writes_of(Habits(role="none", gzip=True), gzip=True)
    assert b"content-encoding: gzip" in head.data
    for index, write in enumerate(body):
        size, _, data = write.data.partition(b"\r\n")
        said = decompressor.decompress(data[: int(size, 16)]).decode()
        assert text("ascii", index, index + 1) in said


def test_heads() -> None:
    late = writes_of(Habits(late_headers=True))
    assert late[0].data.startswith(b"HTTP/1.1 200 OK")
    assert late[0].tokens == 1
    hints = writes_of(Habits(early_hints=True))
    assert hints[0].data.startswith(b"HTTP/1.1 103 Early Hints\r\n")
    assert hints[0].data.count(b"HTTP/1.1 200 OK\r\n") == 1
    assert "connection: close" in split(writes_of(Habits(), close=True))[0]
