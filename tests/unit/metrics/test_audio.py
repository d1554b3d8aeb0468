"""How fast recordings were transcribed, of figures that can be worked out on paper."""

import pytest

from harness.metrics import audio
from harness.metrics.families import figures_of
from harness.records.layout import Outcome
from harness.summary import view_of
from tests.factories.recorded import facts, records, requested


def asked(*audio_ms):
    return requested(*(("", {"audio_ms": length}) for length in audio_ms))


def cell(table, *rows):
    return view_of(records(*rows), facts(request={"api": "transcriptions"}), table)


def test_the_factor_is_the_time_of_an_answer_by_the_length_of_its_audio():
    """1 s for 2 s, then 1.5 s for 10 s, one after the other: 12 s of audio in 2.5 s."""
    seen = cell(asked(2_000, 10_000), {"texts": [1_000]}, {"sent": 1_000, "texts": [2_500]})
    figures = seen.of(audio.compute)
    assert figures.real_time_factor.mean == pytest.approx((0.5 + 0.15) / 2)
    assert figures.audio_s_per_s == pytest.approx(12 / 2.5)
    whole, nulls = figures_of(seen)
    assert whole["items_per_s"] is None
    assert "one transcript" in nulls["items_per_s"]
    assert "come whole" in nulls["ttft_ms.p50"]


def test_a_recording_that_failed_was_never_transcribed():
    """Two of six are answered, in half of their length; the median is one that never was."""
    ends = [{"sent": 1_000 * i, "texts": [1_000 * (i + 1)]} for i in range(2)]
    lost = [{"sent": 2_000, "outcome": Outcome.HTTP_ERROR}] * 4
    figures = cell(asked(*[2_000] * 6), *ends, *lost).of(audio.compute)
    assert figures.audio_s_per_s == pytest.approx(2)
    assert figures.real_time_factor.p50 is None
    assert figures.nulls["real_time_factor.p50"] == "4 of 6 requests never got there"


def test_without_recordings_there_is_none_and_it_says_so():
    figures = view_of(records({"texts": [10]}), facts(), None).of(audio.compute)
    assert (figures.real_time_factor, figures.audio_s_per_s) == (None, None)
    assert set(figures.nulls.values()) == {"no requests with recordings"}
