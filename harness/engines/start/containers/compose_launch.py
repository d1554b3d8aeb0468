"""`--launch compose`: one engine in a container of its own, from its image to its removal."""

import dataclasses
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.shared_folders import Say
from harness.engines.provide.weights import Weights, is_piece
from harness.engines.start import orphans
from harness.engines.start.command import HOST as LOOPBACK
from harness.engines.start.command import filled_files, without_secret_arguments, without_secrets, write_files
from harness.engines.start.containers import owners
from harness.engines.start.containers.compose_tool import find_compose
from harness.engines.start.containers.container import Container, container_facts
from harness.engines.start.containers.daemon import Daemon
from harness.engines.start.containers.images import ensure_image
from harness.engines.start.containers.keeper import COMPOSE_FILE, GRACE_S, KEEP
from harness.engines.start.containers.service import (
    MODELS,
    SCRATCH,
    gpu_access,
    literal,
    plain_fill,
    ports_of,
    service,
    volumes_of,
)
from harness.engines.start.containers.yaml_text import yaml_text
from harness.engines.start.gpus import await_free, chosen_gpus, gpus_needed
from harness.engines.start.ports import free_port
from harness.engines.start.process import EngineProcess
from harness.engines.start.request import EngineRequest
from harness.engines.start.started import EngineFacts, Started
from harness.host import paths, scratch
from harness.spec.backend import Backend

_HUB_SNAPSHOT = re.compile(r"(models--[^/]+)/(snapshots/.+)")


@contextmanager
def start_container(
    request: EngineRequest,
    definition: Backend,
    weights_for: Callable[[EngineEnv | None], Weights | None],
    port: int,
    say: Say,
) -> Iterator[Started]:
    """Gone when the block is left; where it is to be kept it stays, unless an exception is on its way. No
    environment of the engine's own is there to convert weights with. `definition`: as it is configured.
    """
    label, device, log = request.ref.label, request.choice.device, request.log_path
    daemon, tool = Daemon(), find_compose()
    daemon.check_here()
    remarks = owners.clear(daemon)
    for remark in remarks:
        say(remark)
    image = ensure_image(daemon, definition, device, say)
    weights = weights_for(None)
    gpus = _gpus(definition, device, request.gpus)
    unseen, waited_s = await_free(gpus if device == "cuda" else (), request.gpu_wait_s, say)
    if unseen:
        remarks.append(unseen)
    ports = [port, *(free_port(LOOPBACK, other_than=port) for _ in ports_of(definition)[1:])]
    project = _project(definition.name)
    with scratch.folder("engine") as folder:
        fill, mounts = _weights_fill(definition, weights)
        files = filled_files(definition, fill)
        write_files(folder, files)
        mounts += [_bind(folder / name, f"{SCRATCH}/{name}") for name in files]
        content = project_content(
            definition,
            device=device,
            fill=fill,
            mounts=mounts,
            hub=weights is not None and not weights.local,
            gpus=gpus,
            ports=ports,
            labels=owners.labels(label, keep=request.keep),
        )
        for volume in content["volumes"].values():
            daemon.provide_volume(volume["name"])
        text = yaml_text(content)
        (folder / COMPOSE_FILE).write_text(text, encoding="utf-8")
        say(f"{label}: starting {image.name} with {' '.join(tool.argv)} {tool.version}")
        began = time.monotonic()
        keeper = EngineProcess(
            [
                sys.executable,
                "-P",
                "-m",
                "harness.engines.start.containers.keeper",
                project,
                str(folder),
                *tool.argv,
            ],
            {**daemon.environment(), "PYTHONPATH": str(paths.CHECKOUT)},
            log,
            grace_s=GRACE_S,
        )
        container = Container(keeper, daemon, project, folder)

        def facts() -> EngineFacts:
            attributes = container.attributes()
            command, about = container_facts(attributes)
            recorded = _recorded(content)
            return {
                "command": without_secret_arguments(command),
                "env": recorded["services"][definition.name]["environment"] | _seen(device, gpus),
                "files": files,
                "pid": attributes["State"]["Pid"],
                "remarks": remarks,
                "container": {
                    **about,
                    "image": dataclasses.asdict(image),
                    "device": device,
                    "gpus": gpus,
                    "docker": daemon.version,
                    "compose": f"{' '.join(tool.argv)} {tool.version}",
                    "compose_file": yaml_text(recorded),
                    "project": project,
                    "address": "published port",  # through Docker's proxy: a hop more than direct_address
                },
            }

        with orphans.noted(label, keeper.pid, log, project), container:
            timeout_s = max(definition.server.startup_timeout_s, _fetch_s(definition, weights))
            here = f"http://{LOOPBACK}"
            metrics_url = f"{here}:{ports[1]}" if ports[1:] else ""
            yield Started(
                container, f"{here}:{port}", weights, facts, timeout_s, began, metrics_url, waited_s
            )
            if request.keep:
                (folder / KEEP).touch()


def provide_image(definition: Backend, device: str, say: Say) -> None:
    """Provides the image before the first measurement, with whether there is Compose to start it with."""
    find_compose()
    daemon = Daemon()
    daemon.check_here()
    ensure_image(daemon, definition, device, say)


def _gpus(definition: Backend, device: str, asked: Sequence[str]) -> list[str]:
    """The GPUs that it is to see; []: all that there are, or on AMD what HIP_VISIBLE_DEVICES says."""
    needed = gpus_needed(definition)
    if device == "cuda":
        return chosen_gpus(needed, asked)
    return list(asked[:needed]) if device == "rocm" else []


def _recorded(content: Mapping[str, Any]) -> dict[str, Any]:
    """The Compose file without secrets that its definition holds."""
    services = {
        name: {
            **entry,
            "command": without_secret_arguments(entry["command"]),
            "environment": without_secrets(entry["environment"]),
        }
        for name, entry in content["services"].items()
    }
    return {**content, "services": services}


def _seen(device: str, gpus: list[str]) -> dict[str, str]:
    """Returns what Docker sets in the container."""
    return {"NVIDIA_VISIBLE_DEVICES": ",".join(gpus)} if device == "cuda" and gpus else {}


def project_content(
    definition: Backend,
    *,
    device: str,
    fill: Mapping[str, str],
    mounts: Sequence[Mapping[str, object]],
    hub: bool,
    gpus: Sequence[str],
    ports: Sequence[int],
    labels: Mapping[str, str],
) -> dict[str, Any]:
    """The Compose file of one start. `hub`: the engine fetches its weights from a model hub; `ports`: of this
    machine, as `ports_of` has the container's.
    """
    entry = service(definition, device, {name: literal(text) for name, text in fill.items()}, hub=hub)
    used = [volume.partition(":")[0] for volume in entry["volumes"]]
    entry["volumes"] += mounts
    entry["ports"] = [
        f"{LOOPBACK}:{here}:{there}" for here, there in zip(ports, ports_of(definition), strict=True)
    ]
    entry["labels"] = labels
    if device == "rocm" and gpus:  # it sees all devices
        entry["environment"]["HIP_VISIBLE_DEVICES"] = ",".join(gpus)
    # Readiness is seen from here; a check inside would run during the measurement.
    entry["healthcheck"] = {"disable": True}
    return {
        "services": {definition.name: entry | gpu_access(device, gpus)},
        "networks": {"default": {"labels": labels}},
        "volumes": {name: volumes_of(definition)[name] | {"external": True} for name in used},
    }


def _project(name: str) -> str:
    """A new name of a project, of the characters that every version of Compose takes and keeps."""
    return f"bench-{re.sub('[^a-z0-9_-]', '-', name.lower())}-{secrets.token_hex(4)}"


def _weights_fill(
    definition: Backend, weights: Weights | None
) -> tuple[dict[str, str], list[dict[str, object]]]:
    """Placeholders, with the weights as the container sees them, and the mounts that they need."""
    fill = plain_fill(definition)
    if weights is None:
        return fill, []
    if not weights.local:
        return fill | {"model": weights.model, "offline": "0"}, []
    path, mount = _mounted(Path(weights.model))
    fill |= {"model": path, "model_name": path.removeprefix(f"{MODELS}/"), "offline": "1"}
    if weights.vision is None:
        return fill, [mount]
    fill["vision"], second = _mounted(Path(weights.vision))
    return fill, [mount, second]


def _mounted(weights: Path) -> tuple[str, dict[str, object]]:
    """Returns where the container finds them, and the mount that puts them there.

    A snapshot of the model hub's cache holds links into its parent; pieces of a GGUF lie next to each other.
    """
    if match := _HUB_SNAPSHOT.search(str(weights)):
        root = Path(str(weights)[: match.end(1)])
        return f"{MODELS}/{match[1]}/{match[2]}", _bind(root, f"{MODELS}/{match[1]}")
    if is_piece(weights):
        return f"{MODELS}/{weights.name}", _bind(weights.parent, MODELS)
    return f"{MODELS}/{weights.name}", _bind(weights, f"{MODELS}/{weights.name}")


def _bind(source: Path, target: str) -> dict[str, object]:
    return {"type": "bind", "source": literal(str(source)), "target": literal(target), "read_only": True}


def _fetch_s(definition: Backend, weights: Weights | None) -> float:
    """Time for weights that the engine fetches itself."""
    assert definition.compose is not None
    return 0.0 if weights is None or weights.local else float(definition.compose.start_period_s)
