"""WAV files that requests carry: those of a folder of the user's."""

import wave
from dataclasses import dataclass
from pathlib import Path

from harness.errors import SpecError


@dataclass(frozen=True, slots=True)
class Recording:
    """One sound and its length: a file, or drawn from a seed."""

    audio_ms: int
    file: str = ""
    seed: int = 0


def read_recordings(folder: str) -> tuple[Recording, ...]:
    """The WAV files in a folder, by name. Raises SpecError if there is none, or if one cannot be read."""
    root = Path(folder).expanduser()
    found = tuple(map(_read, sorted(root.glob("*.wav"))))
    if not found:
        raise SpecError("no *.wav file in this folder", where=str(root), hint="see prompts.folder")
    return found


def _read(path: Path) -> Recording:
    try:
        with wave.open(str(path), "rb") as file:
            frames = file.getnframes()
            audio_ms = round(1000 * frames / file.getframerate())
            file.setpos(max(frames - 1, 0))
            if frames and not file.readframes(1):  # the header alone says how long it is
                raise EOFError
    except (OSError, EOFError, RuntimeError, wave.Error, ZeroDivisionError) as error:
        # `wave` raises EOFError and RuntimeError without a text: a part is longer than the file.
        why = str(error) or "it is cut short"
        raise SpecError(f"cannot be read as WAV of PCM samples: {why}", where=str(path)) from None
    if not audio_ms:
        raise SpecError("this recording is empty", where=str(path))
    return Recording(audio_ms, str(path))
