"""What a model's own library answers, or says before it ends."""

import pytest

from harness.engines.provide import reference
from harness.engines.provide.install import EngineEnv
from harness.errors import SetupError
from harness.spec.models import Model, Track


def test_last_words_of_a_library_that_are_not_utf_8_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "find_spec", lambda _name: None)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nprintf 'Traceback\\n\\377: no such layer\\n' >&2\nexit 1\n")
    python.chmod(0o755)
    environment = EngineEnv(python, {"torch": "1", "transformers": "1"}, "1", "")
    (tmp_path / "model").mkdir()
    tracks = {"local": Track("hf", "bf16", path=str(tmp_path / "model"))}
    model = Model(title="M", licence="MIT", context_tokens=None, tracks=tracks)
    with pytest.raises(SetupError, match="no reference: \ufffd: no such layer"):
        reference.reference_of("m", model, [environment], ["a text"], lambda _line: None)
