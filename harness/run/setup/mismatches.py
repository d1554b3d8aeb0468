"""Refuses what a scenario and the flags ask of backends that, as they run here, cannot give it."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from harness.apis import APIS
from harness.cluster.options import require_ray
from harness.engines.start.launch_choice import LaunchChoice, track_of
from harness.errors import SpecError
from harness.run.setup.options import RunOptions
from harness.sampling.machine import is_this_machine
from harness.spec.backend import BackendRef
from harness.spec.models import Model
from harness.spec.scenario import Scenario


def check_adapters(
    backends: Sequence[BackendRef],
    launches: Sequence[LaunchChoice],
    values: Sequence[Mapping[str, str]],
    model_name: str,
    model: Model,
) -> None:
    """Raises SpecError where adapters cannot be drawn for the weights, or do not reach the engine."""
    for ref, launch, own in zip(backends, launches, values, strict=True):
        if launch.mode == "compose":
            raise SpecError(
                "adapters do not come into a container: they are drawn for an engine that runs as a process",
                where="lora.adapters",
                hint="--launch process",
            )
        has_some = ref.definition.lora and int(own.get("lora_adapters", 0))
        track = track_of(ref, launch, model_name, model) if has_some else None
        if track and (repo := model.tracks[track].repo):
            raise SpecError(
                f"adapters are drawn for weights on this machine, and {ref.label} fetches {repo} itself",
                where="lora.adapters",
                hint="--model PATH, the folder of a model",
            )


def check_images(
    scenario: Scenario, backends: Sequence[BackendRef], launches: Sequence[LaunchChoice]
) -> None:
    """Raises SpecError if an engine cannot fetch the files of images from 127.0.0.1."""
    if not scenario.images.counts or scenario.images.send != "url":
        return
    for ref, launch in zip(backends, launches, strict=True):
        hosts = (urlsplit(url).hostname or "" for url in ref.urls)
        if launch.mode == "compose" or not all(map(is_this_machine, hosts)):
            raise SpecError(
                f"{ref.label} does not reach 127.0.0.1, where the files of images are served",
                where="images.send",
                hint='images.send = "data" puts them into the requests',
            )


def check_turns(scenario: Scenario, ref: BackendRef) -> None:
    if scenario.request.kept_turns and not ref.definition.dialect.keeps_turns:
        raise SpecError(
            f"{ref.definition.backend.title} keeps no turns in its {APIS[ref.api].title} API",
            where="request.kept_turns",
            hint=f"leave out backend '{ref.label}', or the setting: each turn then carries those before it",
        )


def check_cluster(
    options: RunOptions, backends: Sequence[BackendRef], launches: Sequence[LaunchChoice]
) -> None:
    if options.load_from is None:
        return
    if options.workers is not None:
        raise SpecError("is for one machine", where="--workers", hint="--workers-per-node with --cluster")
    if options.load_from.nodes > 1 and any(launch.mode != "attach" for launch in launches):
        raise SpecError(
            "other machines do not reach an engine that bench starts: it listens on 127.0.0.1",
            where="--load-nodes",
            hint="start it where every node reaches it, and give its address: --backends NAME=http://ADDRESS:PORT",
        )
    require_ray()


def check_gpus(gpus: Sequence[str], backends: Sequence[BackendRef]) -> None:
    """Raises SpecError for GPUs of engines where bench starts none that could have one."""
    if gpus and all(ref.urls or ref.definition.backend.simulated for ref in backends):
        raise SpecError("has no effect on servers that run already, and on simulated ones", where="--gpus")
