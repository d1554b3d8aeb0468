"""faster-whisper: Whisper models on CTranslate2. One recording is computed at a time: the others wait."""

from importlib.metadata import version
from io import BytesIO
from queue import SimpleQueue
from typing import TYPE_CHECKING

from av.error import FFmpegError
from faster_whisper import WhisperModel

if TYPE_CHECKING:
    from harness.engines.shims.library_server import Job, Settings


class Library:
    def __init__(self, settings: "Settings") -> None:
        self.version = version("faster-whisper")
        self._model = WhisperModel(
            settings.model, device="cpu", compute_type=settings.dtype, cpu_threads=settings.threads
        )
        self.effective = {"compute_type": self._model.model.compute_type}

    def transcribe(self, audio: bytes, language: str, temperature: float) -> str:
        """One temperature: the library would compute some recordings again at higher ones."""
        try:
            segments, _ = self._model.transcribe(
                BytesIO(audio), language=language or None, temperature=temperature
            )
            return "".join(segment.text for segment in segments).strip()
        except FFmpegError as error:
            raise ValueError(f"no audio: {error}") from error

    def serve(self, waiting: "SimpleQueue[Job]") -> None:
        waiting.get()  # for ever: nothing comes
