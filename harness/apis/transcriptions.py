"""OpenAI Transcriptions: `/v1/audio/transcriptions`. A request is a form with one recording.

The answer is its text, whole.
"""

from collections.abc import Sequence

from harness.apis.api import Api, Fields, Message
from harness.apis.payload import UNCOUNTED, Document, Payload, mapping, reported_usage
from harness.records.event_kind import EventKind

_BOUNDARY = "bench-25a5dd35cf2bb6f0e3a1"  # 80 bits that no recording holds but by a chance of 2^-80 a byte


def _body(messages: Sequence[Message], max_tokens: int) -> Fields:
    """The last message is the recording: bytes of a WAV file."""
    return {"file": messages[-1]["content"], "response_format": "json"}


def encode(fields: Fields) -> bytes:
    """The form: bytes are a file, all else is text."""
    parts = bytearray()
    for name, value in fields.items():
        head, data = f'name="{name}"', str(value).encode()
        if isinstance(value, bytes):
            head, data = f'{head}; filename="audio.wav"\r\ncontent-type: audio/wav', value
        parts += f"--{_BOUNDARY}\r\ncontent-disposition: form-data; {head}\r\n\r\n".encode() + data + b"\r\n"
    return bytes(parts) + f"--{_BOUNDARY}--\r\n".encode()


def read(document: Document) -> Payload:
    """An empty text is an answer: there may be no speech. Some servers count tokens, others seconds."""
    text = document.get("text")
    if not isinstance(text, str):
        return Payload(EventKind.OTHER, malformed="not a transcript: the answer holds no text")
    prompt, _, output, _ = reported_usage(
        mapping(document.get("usage")), "input_tokens", "output_tokens", UNCOUNTED
    )
    return Payload(EventKind.VALUES, text, "", prompt, output_tokens=output)


TRANSCRIPTIONS = Api(
    name="transcriptions",
    title="Transcriptions",
    path="/v1/audio/transcriptions",
    body=_body,
    read=read,
    encode=encode,
    headers={"content-type": f"multipart/form-data; boundary={_BOUNDARY}"},
    gives="transcripts",
    templated=False,
)
