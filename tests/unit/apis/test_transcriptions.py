"""Recordings in requests: the form, its reading, and answers that hold no transcript."""

import json

import pytest

from harness.apis import TRANSCRIPTIONS
from harness.engines.shims.library_server import _form
from harness.engines.speak.dialect import Chat, render_body
from harness.errors import SpecError
from harness.host.access import Access
from harness.load.job import ClosedLoop, LoadJob
from harness.load.sse import parse_document
from harness.load.wire import render
from harness.mockserver.ask import BadAskError, parse_recording
from harness.mockserver.transcripts import read_form
from harness.records.event_kind import UNKNOWN, EventKind
from harness.spec.backend_refs import parse_backend_list
from harness.spec.recordings import Recording
from harness.spec.scenario import Request
from harness.workload.prompts.audio import wav_of

AUDIO = wav_of(Recording(700, seed=2)) + b"\r\n--x\r\n\r\n"


def body(**request):
    (ref,) = parse_backend_list("openai@transcriptions")
    chat = Chat([{"role": "user", "content": AUDIO}], 1)
    return render_body(ref.definition, "whisper-1", chat, Request(api="transcriptions", **request))


@pytest.mark.parametrize("read", [read_form, _form])
def test_a_form_is_read_as_it_was_written(read):
    assert read(TRANSCRIPTIONS.headers["content-type"], body()) == {
        "model": b"whisper-1",
        "file": AUDIO,
        "response_format": b"json",
        "temperature": b"0.0",
        "language": b"en",
    }
    assert "language" not in read(TRANSCRIPTIONS.headers["content-type"], body(language=""))


def test_the_head_says_that_the_body_is_a_form():
    job = LoadJob(
        "http://127.0.0.1:1/v1/audio/transcriptions", Access(), [body()], ClosedLoop(1), api="transcriptions"
    )
    head, sent = render(job.url, job, job.bodies, range(1)).request(0)
    assert f"content-type: {TRANSCRIPTIONS.headers['content-type']}\r\n".encode() in head
    assert f"content-length: {len(sent)}\r\n".encode() in head
    assert b"application/json" not in head


def test_a_transcript_comes_whole_with_or_without_tokens():
    plain = parse_document(b'{"text": " A word."}', TRANSCRIPTIONS)
    assert plain.chars.tolist() == [0]  # it has no first token
    assert (plain.kinds, plain.text(), plain.output_tokens) == (
        bytes([EventKind.VALUES]),
        " A word.",
        UNKNOWN,
    )
    seconds = parse_document(b'{"text": "", "usage": {"type": "duration", "seconds": 3}}', TRANSCRIPTIONS)
    assert (seconds.text(), seconds.prompt_tokens, seconds.malformed) == ("", UNKNOWN, "")
    usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59}
    counted = parse_document(json.dumps({"text": "a", "usage": usage}).encode(), TRANSCRIPTIONS)
    assert (counted.prompt_tokens, counted.output_tokens) == (14, 45)


@pytest.mark.parametrize("answer", [b"{}", b'{"text": null}', b'{"choices": []}', b"[]", b"plain words"])
def test_what_holds_no_text_is_no_answer(answer):
    assert parse_document(answer, TRANSCRIPTIONS).malformed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"file": b"no wav"}, "no WAV"),
        ({"file": b""}, "no WAV"),
        ({"file": b"RIFF\x24\0\0\0WAVEjunk\x64\0\0\0"}, "no WAV"),  # a part that is longer than the file
        ({"response_format": b"text"}, "json"),
    ],
)
def test_the_scripted_server_refuses_what_it_cannot_read(change, said):
    fields = {"file": wav_of(Recording(300)), "response_format": b"json"}
    assert parse_recording(fields).values.audio_ms == 300
    with pytest.raises(BadAskError, match=said):
        parse_recording(fields | change)


def test_an_engine_of_speech_alone_has_no_chat_and_others_no_transcriptions():
    (ref,) = parse_backend_list("faster-whisper")
    assert (ref.label, ref.api) == ("faster-whisper@transcriptions", "transcriptions")
    with pytest.raises(SpecError, match="'faster-whisper' has no Chat Completions API"):
        parse_backend_list("faster-whisper", ("chat",))
    with pytest.raises(SpecError, match="'vllm' has no Transcriptions API"):
        parse_backend_list("vllm", ("transcriptions",))
