"""Recordings to transcribe: a signal that is made from a seed, or the WAV files of a folder."""

import wave
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from harness.spec.recordings import Recording, read_recordings
from harness.spec.scenario.synthetic import Audio
from harness.workload.prompts.request import ChatRequest
from harness.workload.prompts.text import TextMaker

RATE_HZ = 16_000  # what speech models read
_PITCH_HZ = (300.0, 2_000.0)
_SYLLABLE_S = (0.08, 0.3)
_PAUSE_S = (0.0, 0.12)
_LOUDEST = 20_000  # of 32,767


def audio(spec: Audio, count: int, random: Random, _texts: TextMaker) -> Iterator[ChatRequest]:
    """Each length, or each file, comes equally often, shuffled."""
    known = read_recordings(spec.folder) if spec.folder else ()
    for recording in islice(_drawn(spec, known, random), count):
        kind = f"{recording.audio_ms / 1000:g} s" if not spec.folder else ""
        yield ChatRequest((("user", ""),), 1, kind=kind, recording=recording)


def _drawn(spec: Audio, known: tuple[Recording, ...], random: Random) -> Iterator[Recording]:
    while True:
        if known:
            yield from random.sample(known, len(known))
        else:
            for seconds in random.sample(spec.seconds, len(spec.seconds)):
                yield Recording(round(1000 * seconds), seed=random.getrandbits(32))


def set_apart(recording: Recording, number: int) -> Recording:
    """Draws another signal of its length: a server may have kept what it made of this one.

    A file stays as it is.
    """
    return recording if recording.file else replace(recording, seed=recording.seed + number)


def wav_of(recording: Recording) -> bytes:
    """The file, or one of 16 kHz, mono, 16 bits."""
    if recording.file:
        return Path(recording.file).read_bytes()
    data = BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(_signal(recording).astype("<i2").tobytes())
    return data.getvalue()


def _signal(recording: Recording) -> NDArray[np.float64]:
    """A whistle in the rhythm of syllables: tones that swell and fade, and pauses."""
    random = np.random.default_rng(recording.seed)
    samples = np.zeros(recording.audio_ms * RATE_HZ // 1000)
    at = 0
    while at < len(samples):
        length = min(int(RATE_HZ * random.uniform(*_SYLLABLE_S)), len(samples) - at)
        turns = random.uniform(*_PITCH_HZ) * np.arange(length) / RATE_HZ
        samples[at : at + length] = _LOUDEST * np.sin(2 * np.pi * turns) * np.hanning(length)
        at += length + int(RATE_HZ * random.uniform(*_PAUSE_S))
    return samples
