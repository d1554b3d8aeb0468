"""Recordings of a scenario: made from a seed, or files; one error for what is none."""

import wave
from collections import Counter
from io import BytesIO

import numpy as np
import pytest

from harness.errors import SpecError
from harness.spec.recordings import Recording, read_recordings
from harness.spec.scenario import load_scenario
from harness.spec.scenario.synthetic import Audio
from harness.workload.prompts.audio import RATE_HZ, set_apart, wav_of
from harness.workload.prompts.generate import generate
from harness.workload.prompts.text import TextMaker


def made(spec, seed=4, count=12):
    return generate(spec, count, seed, TextMaker(None))


def samples(data):
    with wave.open(BytesIO(data), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE_HZ)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def write(path, seconds=1.0, rate_hz=8_000):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(bytes(4 * round(seconds * rate_hz)))


def test_lengths_come_equally_often_and_no_recording_twice():
    workload = made(Audio((0.5, 1, 2.25)))
    requests = list(workload.requests)
    assert Counter(request.kind for request in requests) == {"0.5 s": 4, "1 s": 4, "2.25 s": 4}
    assert len({wav_of(request.recording) for request in requests}) == 12
    for request in requests:
        recording = request.recording
        assert request.kind == f"{recording.audio_ms / 1000:g} s"
        assert len(samples(wav_of(recording))) == recording.audio_ms * RATE_HZ // 1000
    assert workload.requested.numbers["audio_ms"].tolist() == [
        request.recording.audio_ms for request in requests
    ]
    assert workload.requested.items() is None


def test_bytes_and_workload_are_those_of_the_seed():
    spec = Audio((0.2, 0.3))
    assert made(spec).sha256 == made(spec).sha256
    assert made(spec).sha256 != made(spec, seed=5).sha256
    assert wav_of(Recording(300, seed=1)) == wav_of(Recording(300, seed=1)) != wav_of(Recording(300, seed=2))


def test_the_signal_has_the_band_of_speech_and_pauses():
    signal = samples(wav_of(Recording(5_000, seed=3))).astype(float)
    power = np.abs(np.fft.rfft(signal)) ** 2
    hertz = np.fft.rfftfreq(len(signal), 1 / RATE_HZ)
    assert power[(hertz > 200) & (hertz < 2_100)].sum() > 0.9 * power.sum()
    assert 15_000 < np.abs(signal).max() <= 32_767
    assert (np.abs(signal) < 10).mean() > 0.05


def test_files_of_a_folder_are_sent_as_they_are(tmp_path):
    write(tmp_path / "a.wav", 0.25)
    write(tmp_path / "b.wav", 1.5)
    requests = list(made(Audio((1,), str(tmp_path)), count=6).requests)
    counted = Counter((request.recording.audio_ms, request.kind) for request in requests)
    assert counted == {(250, ""): 3, (1500, ""): 3}
    for request in requests:
        assert wav_of(request.recording) in {path.read_bytes() for path in tmp_path.iterdir()}


def test_a_made_recording_is_another_in_each_try_and_a_file_stays(tmp_path):
    """A server may have kept what it made of it."""
    made = Recording(300, seed=1)
    first, again, other = (set_apart(made, number) for number in (10_000, 10_000, 10_001))
    assert first == again
    assert len({wav_of(one) for one in (made, first, other)}) == 3
    assert len({len(wav_of(one)) for one in (made, first, other)}) == 1
    file = Recording(300, str(tmp_path / "a.wav"))
    assert set_apart(file, 10_000) is file


@pytest.mark.parametrize("content", [b"", b"RIFF", b"ID3 an MP3", b"RIFF\x00\x00\x00\x00WAVEfmt "])
def test_what_is_no_wav_is_one_error(tmp_path, content):
    (tmp_path / "x.wav").write_bytes(content)
    with pytest.raises(SpecError, match="cannot be read as WAV of PCM samples") as caught:
        load_scenario("audio-in", {"prompts.folder": str(tmp_path)})
    assert "x.wav" in str(caught.value)


@pytest.mark.parametrize(
    ("frames", "declared", "cut"),
    [(80, 80, False), (79, 80, True), (0, 80, True), (80, 1 << 29, True)],
    ids=["whole", "a frame less", "header alone", "from a pipe"],
)
def test_a_header_that_says_more_than_the_file_holds_is_one_error(tmp_path, frames, declared, cut):
    """Seconds of audio/s would be those of the header."""
    path = tmp_path / "x.wav"
    write(path, 0.01)
    path.write_bytes(path.read_bytes()[:40] + (4 * declared).to_bytes(4, "little") + bytes(4 * frames))
    if not cut:
        assert read_recordings(str(tmp_path)) == (Recording(10, str(path)),)
        return
    with pytest.raises(SpecError, match="WAV of PCM samples: it is cut short"):
        read_recordings(str(tmp_path))


def test_a_folder_without_recordings_and_an_empty_one_are_errors(tmp_path):
    with pytest.raises(SpecError, match=r"no \*.wav file in this folder"):
        read_recordings(str(tmp_path / "none"))
    write(tmp_path / "x.wav", 0)
    with pytest.raises(SpecError, match="this recording is empty"):
        read_recordings(str(tmp_path))


@pytest.mark.parametrize("rest", [b"", b"junk\x64\0\0\0"])
def test_a_recording_that_is_cut_short_is_one_error(tmp_path, rest):
    (tmp_path / "x.wav").write_bytes(b"RIFF\x24\0\0\0WAVE" + rest)
    with pytest.raises(SpecError, match=r"WAV of PCM samples: [a-z]") as caught:
        read_recordings(str(tmp_path))
    assert caught.value.where == str(tmp_path / "x.wav")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ({"prompts.seconds": []}, "one or more different lengths"),
        ({"prompts.seconds": [2, 2]}, "one or more different lengths"),
        ({"prompts.seconds": [0.01]}, "must be from 0.1 to 3600"),
        ({"prompts.input_tokens": 64}, "unknown key 'input_tokens'"),
        ({"text.content": "prose"}, "recordings have their own"),
        ({"request.api": "chat"}, "are not for the Chat Completions API"),
        ({"verdict.primary": "ttft_ms.p50"}, "is of generated text"),
    ],
)
def test_what_a_recording_cannot_have_is_one_error(override, said):
    with pytest.raises(SpecError, match=said):
        load_scenario("audio-in", override)
