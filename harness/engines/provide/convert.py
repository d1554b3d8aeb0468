"""Weights made of other weights on this machine: GGUF to bf16 or another quantisation, BERT to GGUF."""

from collections.abc import Set
from pathlib import Path

import msgspec

from harness.engines.provide.install import EngineEnv, install_engine
from harness.engines.provide.logged import run_or_raise
from harness.engines.provide.shared_folders import Say, built, folder_of
from harness.engines.provide.weights import Weights, digest
from harness.errors import SetupError
from harness.spec.backend_refs import load_backend
from harness.spec.models import Track

_SHIMS = Path(__file__).parents[1] / "shims"


class _Converted(msgspec.Struct):
    sha256: str  # of all its files


def converted(
    source: Weights, track: Track, model_name: str, env: EngineEnv | None, say: Say
) -> tuple[Path, str, str]:
    """File or folder, its sum, and in words how it came about.

    The engine's own environment converts; where it has none, or that lacks the libraries, the one of
    transformers.
    """
    name, to = Path(source.model).name, "bf16" if track.weights == "hf" else track.convert_to
    script, arguments, how = _SHIMS / "convert_gguf.py", [], "de-quantised to bf16 with transformers"
    if Path(source.model).is_dir():
        script, how = _SHIMS / "bert_to_gguf.py", f"written as GGUF in {to}"
    elif track.weights == "gguf":
        script, arguments, how = _SHIMS / "requantise_gguf.py", [to], f"quantised again to {to} with gguf"
    made_of = [source.sha256, script.read_text(encoding="utf-8"), *arguments]
    folder = folder_of("models", f"{model_name}-{to.lower()}", made_of)

    def convert(target: Path) -> _Converted:
        say(f"{model_name}: converting {name} to {to}")
        needed = {"gguf"} if track.weights == "gguf" else {"accelerate", "gguf", "torch", "transformers"}
        python = with_libraries(env, needed, say).python
        run_or_raise(
            [str(python), "-I", str(script), source.model, str(target), *arguments],
            f"convert-{model_name}",
            f"{model_name}: converting",
            say,
            failed=f"conversion of {name} to {to} failed",
            where=f"--model {model_name}",
            hint="only Llama, and BERT to GGUF, convert; ",
        )
        return _Converted(digest(target))

    for force in (False, True):
        facts = built(folder, f"{to} weights of {model_name}", convert, _Converted, say, force=force)
        sha256 = digest(folder)
        if sha256 == facts.sha256:
            how = f"{name} {how} on this machine"
            if track.weights == "hf":
                return folder, sha256, how
            (file,) = folder.glob("*.gguf")
            return file, digest(file), how
        say(f"{model_name}: the cached conversion is damaged, converting again")
    raise SetupError("the files change while they are read", where=str(folder), hint="check the disk")


def with_libraries(env: EngineEnv | None, needed: Set[str], say: Say) -> EngineEnv:
    """The engine's own environment; where that lacks the libraries, the one of transformers."""
    if env is not None and needed <= env.packages.keys():
        return env
    return install_engine(load_backend("transformers"), say)
