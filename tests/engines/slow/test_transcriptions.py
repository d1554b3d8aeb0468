"""faster-whisper, really run behind bench's shim: recordings to text, in two types."""

import pytest

from tests.engines.runs import cells_of

pytestmark = pytest.mark.engine

SHORT = ("--requests", "6", "--set", "load.warmup_requests=1", "--set", "prompts.seconds=[1,4]")


def test_recordings_are_transcribed_in_both_types(tmp_path):
    names = ["faster-whisper", "faster-whisper@float32"]
    folder, cells = cells_of(tmp_path, "audio-in", names, *SHORT, "--concurrency", "1")
    for name in names:
        cell = cells[f"{name}@transcriptions"]
        assert cell["requests"]["outcomes"] == {"ok": 6}
        assert cell["audio_s_per_s"] > 0
        assert cell["real_time_factor"]["p50"] > 0
        probed = folder.read_probe(f"{name}@transcriptions")
        assert [one.topic for one in probed.mismatches if not one.topic.startswith("setting")] == []
