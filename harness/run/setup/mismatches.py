"""Refuses what a scenario and the flags ask of backends that, as they run here, cannot give it."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from harness.engines.start.launch_choice import track_of
from harness.errors import SpecError
from harness.run.setup.backends import ChosenBackend
from harness.run.setup.options import RunOptions
from harness.sampling.machine import is_this_machine
from harness.spec.backend import BackendRef
from harness.spec.models import Model
from harness.spec.scenario import Scenario


def check_adapters(
    chosen: Sequence[ChosenBackend], values: Sequence[Mapping[str, str]], model_name: str, model: Model
) -> None:
    """Raises SpecError where adapters cannot be drawn for the weights, or do not reach the engine."""
    for (_, ref, launch), own in zip(chosen, values, strict=True):
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


def check_images(scenario: Scenario, chosen: Sequence[ChosenBackend]) -> None:
    """Raises SpecError if an engine cannot fetch the files of images from 127.0.0.1."""
    if not scenario.images.counts or scenario.images.send != "url":
        return
    for _, ref, launch in chosen:
        hosts = (urlsplit(url).hostname or "" for url in ref.urls)
        if launch.mode == "compose" or not all(map(is_this_machine, hosts)):
            raise SpecError(
                f"{ref.label} does not reach 127.0.0.1, where the files of images are served",
                where="images.send",
                hint='images.send = "data" puts them into the requests',
            )


def check_without_engine(options: RunOptions, backends: Sequence[BackendRef]) -> None:
    """Raises SpecError for flags of engines where bench starts none that they could apply to."""
    if options.model is not None and all(ref.urls for ref in backends):
        raise SpecError(
            "has no effect on servers that run already",
            where="--model",
            hint="--model-name NAME is the model's name there",
        )
    for flag, given in (("--gpus", options.gpus), ("--gpu-wait", options.gpu_wait_s)):
        if given and all(ref.urls or ref.definition.backend.simulated for ref in backends):
            raise SpecError("has no effect on servers that run already, and on simulated ones", where=flag)
        if given and options.device == "cpu":
            raise SpecError("contradicts --device cpu", where=flag, hint="leave one of them out")
