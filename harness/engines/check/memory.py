"""Memory that a model takes on its GPUs, by its sizes, before anything is fetched or started."""

from pathlib import Path

from harness.engines.check.available import Machine
from harness.engines.start.kv_cache import token_numbers
from harness.engines.start.launch_choice import track_of
from harness.engines.start.request import Planned
from harness.spec.models import Track

# Number types of a folder, by its config.json, whose weights engines may keep in fewer bits than the files.
_LOADED_SMALLER = {"float32", "float64", "unknown"}


def weights_bytes(engine: Planned, machine: Machine) -> float:
    """0: not known, as of a folder in float32, which engines load in half of that."""
    track = _track(engine)
    if track is None or track.weights != "hf":
        return 0
    if track.path and track.quantisation not in _LOADED_SMALLER:
        return machine.folder_bytes(track.path, "model*.safetensors")  # not a second form next to it
    return (engine.model.parameters_millions or 0) * 2e6 if track.quantisation.startswith("bf16") else 0


def token_bytes(engine: Planned) -> int:
    """What a token takes of a KV cache in 16 bits; 0: not known."""
    track = _track(engine)
    if track is None:
        return 0
    if drawn := track.random:
        return 4 * drawn.layers * drawn.kv_heads * (drawn.width // drawn.heads)
    numbers = token_numbers(Path(track.path)) if track.path else engine.model.kv_numbers_per_token
    return 2 * (numbers or 0)


def _track(engine: Planned) -> Track | None:
    name = track_of(engine.ref, engine.choice, engine.model_name, engine.model)
    return engine.model.tracks.get(name or "")
