"""`/v1/audio/transcriptions`: forms with a recording, whose own header says how long it is."""

import json
import re
import wave
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO

from harness.mockserver.script import Script, Then, Write
from harness.mockserver.values import Garbage, ValuesError

_NAME = re.compile(rb'[ ;]name="([^"]*)"')


def read_form(content_type: str, body: bytes) -> dict[str, bytes]:
    """The parts of multipart/form-data by name; {} for anything else."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    fields = {}
    for part in body.split(b"--" + boundary)[1:-1] if boundary else ():
        head, _, value = part.partition(b"\r\n\r\n")
        if name := _NAME.search(head):
            fields[name[1].decode("latin-1")] = value.removesuffix(b"\r\n")
    return fields


@dataclass(frozen=True, slots=True)
class Transcript:
    """The answer to one recording."""

    audio_ms: int

    @classmethod
    def of(cls, fields: Mapping[str, bytes]) -> "Transcript":
        """Raises ValuesError for what a server refuses."""
        if fields.get("response_format") != b"json":
            raise ValuesError("response_format other than json is not simulated")
        try:
            with wave.open(BytesIO(fields.get("file", b"")), "rb") as file:
                return cls(round(1000 * file.getnframes() / file.getframerate()))
        except (EOFError, RuntimeError, wave.Error, ZeroDivisionError) as error:
            raise ValuesError(f"the file is no WAV of PCM samples: {error}") from error

    def body(self, script: Script, _model: str, wrong: Garbage) -> Iterator[Write]:
        (due_ns,) = script.dues_ns
        text = "" if wrong else " ".join(f"w{number}" for number in range(max(1, self.audio_ms // 400)))
        usage = {"type": "duration", "seconds": self.audio_ms / 1000}
        yield Write(due_ns, json.dumps({"text": text, "usage": usage}).encode(), 1, 1, Then.END)
