"""How a backend comes to run: found running, started here as a process, or in a container by Compose."""

import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from harness.engines.start.gpus import chosen_gpus
from harness.errors import SpecError
from harness.host.nvml import gpu_count
from harness.model.choices import Device, LaunchMode
from harness.spec.backend import Backend, BackendRef, Compose, Engine, Image, Process
from harness.spec.dialect import Structured
from harness.spec.models import Model, choose_track
from harness.spec.template import placeholders

DEVICE_FILES = {"cuda": Path("/dev/nvidiactl"), "rocm": Path("/dev/kfd")}
_WINDOWS_GPU = Path("/dev/dxg")  # through which Linux in WSL 2 has the GPUs of Windows, of any vendor
_DOCKER_SOCKET = Path("/var/run/docker.sock")


def has_device(device: str) -> bool:
    if device == "cuda" and _WINDOWS_GPU.exists():
        return bool(gpu_count())
    return DEVICE_FILES[device].exists()


def has_docker() -> bool:
    """Rented containers and nodes of clusters have a GPU and none of these."""
    return bool(os.environ.get("DOCKER_HOST") or shutil.which("docker")) or _DOCKER_SOCKET.exists()


@dataclass(frozen=True, slots=True)
class LaunchChoice:
    mode: Literal["process", "compose", "attach", "simulate"]
    why: str  # one sentence, printed and stored
    # Of a container: cuda, rocm or cpu. Of a process: cuda where it is [process_cuda], cpu where GPUs are
    # hidden from it.
    device: str = ""


def resolve_launch(
    ref: BackendRef, mode: LaunchMode, device: Device = "auto", gpus: Sequence[str] = ()
) -> LaunchChoice:
    """Raises SpecError where the mode contradicts the backend as it was given or the definition.

    `gpus`: that engines may use; (): those that CUDA_VISIBLE_DEVICES does not hide.
    """
    name, where = ref.label, f"--launch {mode}"
    if mode in ("process", "compose", "simulate") and ref.url:
        raise SpecError(
            f"backend '{name}' is given with a URL, which means attach",
            where=where,
            hint=f"leave out '={ref.url}' or --launch {mode}",
        )
    if mode == "attach" and not ref.url:
        raise SpecError(
            f"backend '{name}' has no URL to attach to",
            where=where,
            hint=f"give the backend as {ref.definition.name}=http://HOST:PORT",
        )
    if mode == "simulate":
        return LaunchChoice("simulate", f"{name} is not started: the scripted server answers in its dialect")
    if ref.url:
        return LaunchChoice(
            "attach", f"{name} is measured where it runs, at {ref.url}, because a URL was given"
        )
    here = _devices_here(gpus)
    if mode == "compose":
        return _compose(ref, device, here, "because --launch compose was given")
    if mode == "process":
        return _process(ref, device, here, "because --launch process was given")
    return _auto(ref, device, here)


def as_launched(ref: BackendRef, choice: LaunchChoice) -> BackendRef:
    """The reference with the process for the chosen device as its [process], with the arguments and the
    environment that its API needs, and with what requests to that process may ask for.
    """
    definition = ref.definition
    dialect = definition.dialect
    if dialect.engine_args or dialect.remove_args or dialect.engine_env:
        kept = (arg for arg in definition.engine.args if arg not in dialect.remove_args)
        args, env = (*kept, *dialect.engine_args), definition.engine.env | dialect.engine_env
        definition = replace(definition, engine=replace(definition.engine, args=args, env=env))
        ref = replace(ref, definition=definition)
    if choice.mode != "process":
        return ref
    if choice.device != "cuda" or definition.process_cuda is None:
        if definition.process is None or definition.process.structured:
            return ref
        return replace(ref, definition=replace(definition, dialect=replace(dialect, structured=Structured())))
    engine, on_cpu = definition.engine, definition.process
    lost = named(on_cpu) - named(engine) - named(definition.process_cuda) if on_cpu else set()
    values = {name: value for name, value in engine.values.items() if name not in lost}
    engine = replace(engine, values=values)
    return replace(ref, definition=replace(definition, engine=engine, process=definition.process_cuda))


def named(start: Engine | Process | Compose | Image) -> set[str]:
    """Placeholders in a table of the definition. Those that are computed stand for what they are made of."""
    found = set(placeholders(asdict(start)))
    made_of = {
        "context_total": ("context_tokens", "max_sequences"),
        "kv_tokens": ("kv_cache_gib", "dtype"),
        "kv_cache_bytes": ("kv_cache_gib",),
    }
    return found.union(*(names for name, names in made_of.items() if name in found))


def track_of(ref: BackendRef, choice: LaunchChoice, model_name: str, model: Model) -> str | None:
    """The weights that it is to serve; None if it brings its own model."""
    header = ref.definition.backend
    if choice.mode == "attach" or header.weights == "none":
        return None
    convert, hub = choice.mode == "process", ref.definition.engine.fetches
    name, track = choose_track(
        model_name, model, header.weights, header.default_track, convert=convert, hub=hub
    )
    if track.vision_apart and not ref.definition.engine.vision_args:
        raise SpecError(
            f"'{model_name}' has its vision in a file of its own, and backend '{header.name}' takes none",
            hint="vision_args of [engine] are the arguments that name it",
        )
    return name


def _devices_here(gpus: Sequence[str]) -> set[str]:
    """The devices of this machine, without NVIDIA GPUs where all are hidden."""
    found = set(filter(has_device, DEVICE_FILES))
    return {"cpu"} | (found if chosen_gpus(1, gpus) else found - {"cuda"})


def _auto(ref: BackendRef, device: Device, here: Collection[str]) -> LaunchChoice:
    """Chooses the image on a GPU, or the packages for CUDA where there is no Docker.

    Without a GPU it chooses a process, which takes fewer steps.
    """
    definition = ref.definition
    if not definition.starts:
        by_hand = definition.attach
        start = f"run `{'; '.join(by_hand.start)}`, then " if by_hand else ""
        raise SpecError(
            f"backend '{ref.label}' cannot be started here: it has neither [process] nor [compose]",
            hint=f"{start}attach to it with {definition.name}=http://HOST:PORT",
        )
    if definition.compose is None:
        chosen = definition.variants.get(ref.variant or "")
        because = "its variant has a program" if chosen and chosen.program else "its definition has no image"
        return _process(ref, device, here, f"because {because}")
    on = device if device != "auto" else _first(definition, here) or "cpu"
    if on == "cuda" and definition.process_cuda and not has_docker():
        return _process(ref, "cuda", here, "because there is no Docker for its image")
    if definition.process is None:
        return _compose(ref, device, here, "because its definition has no [process]")
    if on == "cpu":
        return _process(ref, "cpu", here, "because it runs on the CPU")
    return _compose(ref, device, here, f"because its definition has an image for {on}")


def _process(ref: BackendRef, device: Device, here: Collection[str], because: str) -> LaunchChoice:
    """[process_cuda] on an NVIDIA GPU. A definition without it has one process, which finds its device."""
    definition = ref.definition
    if definition.process is None and definition.process_cuda is None:
        other = "use --launch compose, or " if definition.compose else ""
        raise SpecError(
            f"backend '{ref.label}' cannot be started here as a process: its definition has no [process]",
            hint=f"{other}attach to a running server with {definition.name}=http://HOST:PORT",
        )
    on_cuda = device == "cuda" or (device == "auto" and ("cuda" in here or definition.process is None))
    if definition.process_cuda is not None and on_cuda:
        return LaunchChoice("process", f"{ref.label} is started as a process on cuda {because}", "cuda")
    if definition.process is None or (definition.process_cuda is not None and device == "rocm"):
        found = ("cpu", "cuda") if definition.process else ("cuda",)
        raise SpecError(
            f"backend '{definition.name}' has no packages for {device}",
            where=f"--device {device}",
            hint=f"it has some for: {', '.join(found)}",
        )
    _check_variant(ref)
    hidden = "cpu" if device == "cpu" and "cuda" in here else ""  # from each, so that all see the same
    return LaunchChoice("process", f"{ref.label} is started as a process {because}", hidden)


def _check_variant(ref: BackendRef) -> None:
    """Raises SpecError for one that [process] cannot start."""
    variants = ref.definition.variants
    chosen = variants.get(ref.variant or "")
    if chosen is None or not chosen.not_on_cpu:
        return
    possible = [name for name, variant in variants.items() if not variant.not_on_cpu]
    raise SpecError(
        f"backend '{ref.label}' cannot be started on a CPU: {chosen.not_on_cpu}",
        hint=f"its variants that start on a CPU: {', '.join(possible)}" if possible else "",
    )


def _compose(ref: BackendRef, device: Device, here: Collection[str], because: str) -> LaunchChoice:
    definition = ref.definition
    if definition.compose is None:
        other = "use --launch process, or " if definition.process or definition.process_cuda else ""
        raise SpecError(
            f"backend '{ref.label}' cannot be started in a container: its definition has no [compose]",
            where="--launch compose",
            hint=f"{other}start the container and attach with {definition.name}=URL",
        )
    on = _device(definition, device, here)
    return LaunchChoice("compose", f"{ref.label} is started in a container on {on} {because}", on)


def _device(definition: Backend, asked: Device, here: Collection[str]) -> str:
    """The one asked for, else the first that is on this machine and that the engine has an image for.

    Where there is none, the first that it has an image for: the check before the start says what is missing.
    """
    with_image = definition.devices
    if asked != "auto":
        if asked not in with_image:
            raise SpecError(
                f"backend '{definition.name}' has no image for {asked}",
                where=f"--device {asked}",
                hint=f"it has one for: {', '.join(with_image)}",
            )
        return asked
    return _first(definition, here) or with_image[0]


def _first(definition: Backend, here: Collection[str]) -> str | None:
    """The fastest device of this machine that there is an image for."""
    return next((device for device in definition.devices if device in here), None)
