"""Weights drawn from a seed, of a real model's shape: for a machine where no real ones can be had."""

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence, Set
from importlib.util import find_spec
from pathlib import Path

from harness.engines.provide.convert import with_libraries
from harness.engines.provide.install import EngineEnv
from harness.engines.provide.logged import run_or_raise
from harness.engines.provide.shared_folders import Say, filled, folder_of
from harness.engines.provide.weights import Weights
from harness.host import kit_env
from harness.spec.models import RandomVision, Track

_SHIMS = Path(__file__).parents[1] / "shims"
_SHIM, _VISION = _SHIMS / "random_weights.py", _SHIMS / "random_vision.py"
_VISION_GGUF = _SHIMS / "vision_to_gguf.py"


def drawn(
    track: Track, model_name: str, tokenizer: Path, env: EngineEnv | None, say: Say
) -> tuple[Path, str]:
    """File or folder, and in words how it came about. `tokenizer`: a GGUF file with the vocabulary."""
    assert track.random is not None
    shape = json.dumps(dataclasses.asdict(track.random))
    needed = {"gguf", "transformers"} if track.weights == "hf" else {"gguf"}
    folder = _filled_by(
        _SHIM,
        lambda target: [str(tokenizer), str(target), track.weights, shape],
        f"{model_name}-{track.weights}",
        [shape, track.weights, tokenizer.name],
        model_name,
        say,
        python=lambda: _python(env, needed, say),
        doing="drawing its weights",
        failed="its weights cannot be drawn",
    )
    how = f"drawn on this machine from seed {track.random.seed}: its text is nonsense, its timing is real"
    return next(folder.glob("*.gguf"), folder), how


def with_random_vision(
    source: Weights, vision: RandomVision, model_name: str, env: EngineEnv | None, say: Say
) -> tuple[Path, str]:
    """Folder, and in words how its vision came about. `source`: the text half, in the hub's form."""
    shape = json.dumps(dataclasses.asdict(vision))
    folder = _filled_by(
        _VISION,
        lambda target: [source.model, str(target), shape],
        model_name,
        [shape, source.sha256],
        model_name,
        say,
        python=lambda: with_libraries(env, {"torch", "transformers"}, say).python,
        doing="drawing its vision",
        failed="its vision cannot be drawn",
    )
    return folder, f"vision drawn from seed {vision.seed}: its answers are nonsense, its timing is real"


def vision_as_gguf(
    folder: Path, text: Weights, model_name: str, env: EngineEnv | None, say: Say
) -> tuple[Path, Path]:
    """Files of text and vision with the numbers of `folder`, which `with_random_vision` made.

    `text`: the text half as a GGUF file. The folder's name says of what it was made, so it is not read again.
    """
    files = _filled_by(
        _VISION_GGUF,
        lambda target: [str(folder), text.model, str(target)],
        f"{model_name}-gguf",
        [folder.name, text.sha256],
        model_name,
        say,
        python=lambda: _python(env, {"gguf"}, say),
        doing="writing it as GGUF",
        failed="it cannot be written as GGUF",
    )
    return files / Path(text.model).name, files / "mmproj.gguf"


def _filled_by(
    script: Path,
    arguments: Callable[[Path], Sequence[str]],
    name: str,
    made_of: Sequence[object],
    model_name: str,
    say: Say,
    *,
    python: Callable[[], Path],
    doing: str,
    failed: str,
) -> Path:
    """The folder of that name, which the script writes unless it is there. `arguments` are for the folder
    that it gets.

    `python` is asked for only then, since it may install an environment.
    """
    folder = folder_of("models", name, [*made_of, script.read_text(encoding="utf-8")])

    def write(target: Path) -> None:
        say(f"{model_name}: {doing}")
        run_or_raise(
            [str(python()), "-I", str(script), *arguments(target)],
            f"random-{model_name}",
            f"{model_name}: {doing}",
            say,
            failed=failed,
            where=f"--model {model_name}",
        )

    filled(folder, f"weights of {model_name}", write, say)
    return folder


def _python(env: EngineEnv | None, needed: Set[str], say: Say) -> Path:
    """An interpreter with the libraries. Our own has gguf where it came out of a kit."""
    lacking = env is None or not needed <= env.packages.keys()
    if lacking and needed == {"gguf"} and find_spec("gguf"):
        return Path(sys.executable)
    return with_libraries(env, needed, say).python


def carried_tokenizer(model_name: str) -> Path | None:
    """The vocabulary that a kit carries in place of the weights it comes with."""
    kit = kit_env.kit()
    file = kit / "models" / f"{model_name}-vocabulary.gguf" if kit else None
    return file if file and file.is_file() else None
