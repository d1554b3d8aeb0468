"""The Compose files for use by hand, made of the definitions in backends/: one profile per engine."""

import re
import textwrap
from collections.abc import Sequence
from typing import Any

from harness.engines.start.command import filled, filled_files
from harness.engines.start.containers.service import (
    MODELS,
    SCRATCH,
    gpu_access,
    image_variable,
    plain_fill,
    ports_of,
    service,
    volumes_of,
)
from harness.engines.start.containers.yaml_text import yaml_text
from harness.errors import SpecError
from harness.spec.backend import Backend
from harness.spec.models import load_models

MAIN, GPU, CPU, ROCM = "compose.yaml", "compose.override.yaml", "compose.cpu.yaml", "compose.rocm.yaml"

# For engines that fetch nothing: `model.gguf`, or a folder `model`, lies in it.
_WEIGHTS = f"${{BENCH_WEIGHTS:-./weights}}:{MODELS}:ro"

# Compose cannot multiply: BENCH_CONTEXT_TOKENS does not reach engines that take the context of all sequences.
_NOTES = {
    "BENCH_CONTEXT_TOTAL": " (of all sequences together, as llama.cpp takes it)",
    "BENCH_TOOL_PARSER": " (engines name the same parser differently: for one engine at a time)",
}
_MADE = "# Made from backends/*.toml by `bench compose --write`: change those, not this."
_EXAMPLE = "vllm"  # of the commands in the head, where the file has it
_HEADS = {
    MAIN: """\
{made}
#
#   docker compose --profile {profile} up                                          an NVIDIA GPU
#   docker compose -f compose.yaml -f compose.cpu.yaml --profile {profile} up      no GPU
#   docker compose -f compose.yaml -f compose.rocm.yaml --profile {profile} up     an AMD GPU
#
# Published on 127.0.0.1 only. From the environment or a file .env next to this one:
#   {variables}
# `bench up`, `bench run --launch compose` and these files start an engine with the same flags.
""",
    GPU: """\
{made}
# Docker Compose reads it with compose.yaml: an NVIDIA GPU for every engine that has a CUDA image.
""",
    CPU: """\
{made}
# Engines on the CPU: docker compose -f compose.yaml -f compose.cpu.yaml --profile NAME up
# Without a CPU image, and not to be started with this file: {without}
""",
    ROCM: """\
{made}
# Engines on AMD GPUs: docker compose -f compose.yaml -f compose.rocm.yaml --profile NAME up
# Without a ROCm image, and not to be started with this file: {without}
# Choose GPUs with HIP_VISIBLE_DEVICES. If /dev/dri belongs to a group other than "video", add its number.
""",
}


def compose_files(definitions: Sequence[Backend]) -> dict[str, str]:
    """Relative path -> text, for the definitions that have a container image."""
    shown = [definition for definition in definitions if definition.compose]
    files: dict[str, str] = {}
    files[MAIN] = _text(MAIN, {d.name: _by_hand(d) for d in shown}, shown)
    files[GPU] = _text(
        GPU, {d.name: gpu_access("cuda", ["${BENCH_GPUS:-0}"]) for d in shown if d.image.cuda}, shown
    )
    for name, device in ((CPU, "cpu"), (ROCM, "rocm")):
        overlay = {d.name: _overlay(d, device) for d in shown if device in d.devices}
        files[name] = _text(name, overlay, shown)
    for definition in shown:
        model = _model(definition)[1]
        fill = plain_fill(definition) | {"model": model, "model_name": model.removeprefix(f"{MODELS}/")}
        for file, content in filled_files(definition, fill).items():
            files[_file_path(definition, file)] = content
    return files


def _by_hand(definition: Backend) -> dict[str, Any]:
    compose = definition.compose
    assert compose is not None
    fetches = definition.engine.fetches
    result = service(definition, definition.devices[0], _fill(definition), hub=fetches)
    variables = "BENCH_PORT", "BENCH_METRICS_PORT"
    ports = [
        f"127.0.0.1:${{{name}:-{port}}}:{port}"
        for name, port in zip(variables, ports_of(definition), strict=False)
    ]
    files = [f"./{_file_path(definition, name)}:{SCRATCH}/{name}:ro" for name in definition.engine.files]
    result["volumes"] += files if fetches else [_WEIGHTS, *files]
    health = {
        "test": [filled(part, _fill(definition), definition.name) for part in compose.healthcheck],
        "interval": "10s",
        "timeout": "5s",
        "retries": 3,
        "start_period": f"{compose.start_period_s}s",
    }
    return {"profiles": [definition.name], **result, "ports": ports, "healthcheck": health}


def _overlay(definition: Backend, device: str) -> dict[str, object]:
    """Returns what differs on this device; lists of Compose's own that add up are left out where they are
    equal.
    """
    base = _by_hand(definition)
    there = service(definition, device, _fill(definition), hub=definition.engine.fetches)
    changed = {key: value for key, value in there.items() if key != "volumes" and value != base.get(key)}
    if "security_opt" in changed:  # Compose adds these up
        changed["security_opt"] = [
            option for option in there["security_opt"] if option not in base["security_opt"]
        ]
    return changed | gpu_access(device)


def _file_path(definition: Backend, name: str) -> str:
    return f"files/{definition.name}/{name}"


def _text(name: str, services: dict[str, dict[str, object]], shown: Sequence[Backend]) -> str:
    without = [d.name for d in shown if d.name not in services]
    names = [definition.name for definition in shown]
    head = _HEADS[name].format(
        made=_MADE,
        profile=_EXAMPLE if _EXAMPLE in names else names[0],
        variables=_variables(shown),
        without=", ".join(without) or "none",
    )
    content: dict[str, object] = {"services": {name: entry for name, entry in services.items() if entry}}
    if name == MAIN and (volumes := {k: v for d in shown for k, v in volumes_of(d).items()}):
        content["volumes"] = volumes
    return head + "\n" + yaml_text(content)


def _variables(shown: Sequence[Backend]) -> str:
    """Lists the variables of the file's own services, so that the comment cannot fall behind."""
    texts = [yaml_text(_by_hand(definition)) for definition in shown]
    used = {name for text in texts for name in re.findall(r"\$\{(BENCH_(?!IMAGE_)[A-Z0-9_]+):-", text)}
    named = (
        "HF_TOKEN",
        "BENCH_GPUS (0; or 0,1)",
        f"{image_variable(shown[0])} and similar variables (another image)",
    )
    explained = [name + _NOTES.get(name, "") for name in sorted(used)]
    lines = textwrap.wrap(", ".join([*named, *explained]), 100, break_on_hyphens=False)
    return "\n#   ".join(lines)


def _fill(definition: Backend) -> dict[str, str]:
    """Placeholders as variables that Compose interpolates, with the definition's values as defaults."""
    values = definition.engine.values
    fill = {
        name: f"${{BENCH_{name.upper()}:-{value}}}" if name in values or name == "context_total" else value
        for name, value in plain_fill(definition).items()
    }
    variable, model = _model(definition)
    named = f"${{{variable}:-{model}}}" if variable else model
    return fill | {"offline": "0", "threads": "${BENCH_THREADS:--1}", "model": named}


def _model(definition: Backend) -> tuple[str, str]:
    """The variable that names it, by its form, and the first model that is on the hub in both forms.

    There is no variable for a model in the folder of weights, nor where [engine.files] name the model too.
    """
    form = definition.backend.weights
    if not definition.engine.fetches:
        return "", f"{MODELS}/model.gguf" if form == "gguf" else f"{MODELS}/model"
    for model in load_models().models.values():
        named = {track.weights: track.repo for track in reversed(model.tracks.values()) if track.repo}
        if {"hf", "gguf"} <= named.keys():
            variable = "BENCH_GGUF_MODEL" if form == "gguf" else "BENCH_MODEL"
            in_files = any("{model}" in text for text in definition.engine.files.values())
            return "" if in_files else variable, named["gguf" if form == "gguf" else "hf"]
    raise SpecError("no model has both a GGUF and a Hugging Face track", where="backends/models.toml")
