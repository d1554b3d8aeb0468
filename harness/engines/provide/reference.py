"""The vectors or scores that a model's own library makes of texts: what backends are compared with."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.models import ensure_weights
from harness.engines.provide.shared_folders import Say
from harness.errors import SetupError
from harness.host.helper_process import without_credentials
from harness.spec.models import Model

_SHIM = Path(__file__).parents[1] / "shims" / "reference_values.py"
_LIMIT_S = 300.0
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}


def reference_of(
    name: str, model: Model, environments: Iterable[EngineEnv], asked: Sequence[object], say: Say
) -> tuple[str, list[Any]] | None:
    """The library, and a vector of each text, or a score of each pair of query and document.

    None where the original weights or the library are not here.

    sentence-transformers of this Python, else transformers of an engine's environment. Raises SetupError.
    """
    tracks = (
        candidate
        for candidate, track in model.tracks.items()
        if track.weights == "hf" and (track.path or track.pypi or track.random_head)
    )
    track, python = next(tracks, None), _python(environments)
    if track is None or python is None:
        return None
    folder = ensure_weights(name, model, track, None, say).model
    try:
        done = subprocess.run(
            [str(python), "-I", str(_SHIM), folder],
            input=json.dumps(list(asked)),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            env=without_credentials(os.environ) | _OFFLINE,
        )
        answer = json.loads(done.stdout)
        return str(answer["by"]), list(answer["values"])
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        last = done.stderr.strip().rpartition("\n")[2] if isinstance(error, ValueError) else str(error)
        raise SetupError(f"no reference: {last}", where=folder) from error


def _python(environments: Iterable[EngineEnv]) -> Path | None:
    if find_spec("sentence_transformers") is not None:
        return Path(sys.executable)
    libraries = {"torch", "transformers"}
    return next((env.python for env in environments if libraries <= env.packages.keys()), None)
