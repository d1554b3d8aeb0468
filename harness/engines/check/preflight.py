"""Everything that a set of engines needs and this machine lacks, reported before the first download."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from harness.engines.check.available import Machine
from harness.engines.check.memory import weights_bytes
from harness.engines.provide.fitness import MB
from harness.engines.provide.install import needs_install, room_words, size_mb
from harness.engines.provide.weights import HUB_TOKEN
from harness.engines.start.command import configured
from harness.engines.start.gpus import gpus_needed
from harness.engines.start.launch_choice import track_of
from harness.engines.start.request import Planned
from harness.errors import SetupError
from harness.model.numbers import GIB, counted
from harness.spec.backend import Backend, CudaProcess

# Values of engines that keep the whole model on their GPUs, in a share of the memory.
_ON_GPUS = {"memory_share", "tensor_parallel"}


@dataclass(frozen=True, slots=True)
class Lack:
    labels: tuple[str, ...]  # of the backends that need it
    what: str
    then: str  # what to do

    def __str__(self) -> str:
        return f"{', '.join(self.labels)}: {self.what}" + (f" → {self.then}" if self.then else "")


def require(
    planned: Mapping[str, Planned], machine: Machine, *, anyway: bool = False, resumed: bool = False
) -> None:
    """Raises one SetupError with everything that is missing for any of them. `planned`: by label.

    `anyway`: running servers alone that do not answer keep nobody from measuring the others.
    `resumed`: a run that began needs all of its backends.
    """
    lacking = lacks(planned, machine)
    without = {label for lack in lacking for label in lack.labels}
    complete = planned.keys() - without
    down = complete and all(planned[label].choice.mode == "attach" for label in without)
    if lacking and not (anyway and down):
        or_without = ""
        if complete and not resumed:
            or_else = ", or measure the others with --anyway" if down else ""
            or_without = f", or leave those backends out of --backends{or_else}"
        raise SetupError(
            "what the backends need is missing:",
            below="\n".join(f"  {lack}" for lack in lacking),
            hint=f"nothing was downloaded or started; supply it{or_without}",
        )


def lacks(planned: Mapping[str, Planned], machine: Machine) -> list[Lack]:
    """Lists what is missing, in the order of the backends; the same thing missing for several is one
    entry.
    """
    lacking: dict[tuple[str, str], list[str]] = {}
    for label, engine in planned.items():
        for error in _missing(engine, machine):
            labels = lacking.setdefault((error.what, error.hint or ""), [])
            if label not in labels:
                labels.append(label)
    listed = [Lack(tuple(labels), what, then) for (what, then), labels in lacking.items()]
    return listed + _disk(planned, machine)


def _missing(engine: Planned, machine: Machine) -> Iterator[SetupError]:
    mode = engine.choice.mode
    definition = configured(engine.ref.definition, None, engine.values, engine.choice)
    if mode == "attach":
        for url in engine.ref.urls:
            for error in _raised(partial(machine.check_server, engine.ref, url)):
                yield SetupError(str(error), hint=error.hint)  # with the address
    elif sys.platform != "linux":
        attach = (
            f"run bench on Linux, or start it yourself and attach with {definition.name}=http://HOST:PORT"
        )
        yield SetupError("bench starts engines on Linux only", hint=attach)
        return
    if mode not in ("compose", "process"):
        return
    if mode == "compose":
        yield from _container(definition, engine.choice.device, machine)
        yield from _gpus(definition, engine.choice.device, machine)
    else:
        yield from _process(definition, machine)
        if engine.choice.device == "cuda":
            yield from _gpus(definition, engine.choice.device, machine)
            yield from _driver(definition, machine)
    yield from _weights(engine, machine)
    if engine.choice.device == "cuda":
        yield from _gpu_memory(engine, definition, machine)
    port = definition.engine.values.get("port")
    if port is not None:
        yield from _raised(lambda: machine.check_port(int(port)))


def _raised(check: Callable[[], None]) -> Iterator[SetupError]:
    try:
        check()
    except SetupError as error:
        yield error


def _container(definition: Backend, device: str, machine: Machine) -> Iterator[SetupError]:
    yield from _raised(machine.check_compose)
    silent = list(_raised(machine.check_docker))
    yield from silent
    if not silent:
        yield from _raised(lambda: machine.check_image(definition, device))


def _gpus(definition: Backend, device: str, machine: Machine) -> Iterator[SetupError]:
    if device == "cpu":
        return
    if not machine.has_device(device):
        vendor = {"cuda": "NVIDIA", "rocm": "AMD"}[device]
        attach = (
            f"run bench where there is one, or attach to it there with {definition.name}=http://HOST:PORT"
        )
        yield SetupError(f"needs an {vendor} GPU ({device}), and this machine has none", hint=attach)
        return
    if device != "cuda":
        return
    wanted = gpus_needed(definition)
    gpus, here = machine.chosen_gpus(wanted), machine.gpu_count()
    beyond = [gpu for gpu in gpus if here is not None and gpu.isdigit() and int(gpu) >= here]
    if len(gpus) < wanted or beyond:
        seen = f"this machine has {here}" if beyond else f"{len(gpus)} to choose from"
        change = "change --gpus or CUDA_VISIBLE_DEVICES"
        named = f" ({', '.join(gpus)})" if gpus else ""
        yield SetupError(
            f"needs {counted(wanted, 'GPU')}{named}: {seen}",
            hint=f"{change}, or use --device cpu"
            if not gpus
            else f"lower --engine-set tensor_parallel=N, or {change}"
            if wanted > 1
            else change,
        )
    elif fault := machine.gpu_fault(gpus):
        yield SetupError(
            fault, hint="reload the driver or reboot (`dmesg` has its messages), or use --device cpu"
        )
    else:
        yield from _raised(lambda: machine.check_gpus_free(gpus))


def _driver(definition: Backend, machine: Machine) -> Iterator[SetupError]:
    process, known = definition.process, machine.cuda_version()
    if isinstance(process, CudaProcess) and known is not None and known < process.cuda:
        yield SetupError(
            f"its packages are built for CUDA {process.cuda}, and the driver here knows CUDA {known}",
            hint=f"update the NVIDIA driver, or take an older version with {definition.name}==VERSION",
        )


def _process(definition: Backend, machine: Machine) -> Iterator[SetupError]:
    if needs_install(definition):
        yield from machine.unfit(definition)
        return
    assert definition.process is not None
    program = definition.process.program[0]
    if "{" not in program and not machine.has_program(program):
        yield SetupError(
            f"the program {program} is not installed",
            hint=f"install it from {definition.backend.homepage}, or attach with {definition.name}=URL",
        )


def _weights(engine: Planned, machine: Machine) -> Iterator[SetupError]:
    track_name = track_of(engine.ref, engine.choice, engine.model_name, engine.model)
    if track_name is None:
        return
    track = engine.model.tracks[track_name]
    while track.convert_from:
        track = engine.model.tracks[track.convert_from]
    if track.path and not machine.has_file(track.path):
        yield SetupError(
            f"the weights of {engine.model_name} are not at {track.path}", hint="give --model another path"
        )
    if track.gated and not machine.environment.get(HUB_TOKEN):
        yield SetupError(
            f"{track.repo} needs an accepted licence and a token, and {HUB_TOKEN} is not set",
            hint=f"accept the licence in the model hub, then export {HUB_TOKEN}",
        )


def _gpu_memory(engine: Planned, definition: Backend, machine: Machine) -> Iterator[SetupError]:
    """Yields for weights that do not even fit alone, of engines that keep all of them on their GPUs.

    Flags of a variant may keep some on the CPU, leave layers out or quantise, under many names.
    """
    values, args = definition.engine.values, " ".join(definition.engine.args)
    if engine.ref.variant or not values.keys() >= _ON_GPUS or "offload" in args or "quantiz" in args:
        return
    wanted = gpus_needed(definition)
    needed, gpus = weights_bytes(engine, machine), machine.chosen_gpus(wanted)
    there = machine.gpu_memory_bytes(gpus) if needed and len(gpus) == wanted else None
    if there is not None and needed > there:
        yield SetupError(
            f"the weights of {engine.model_name} take {needed / GIB:.1f} GiB, and GPU {', '.join(gpus)} has "
            f"{there / GIB:.1f} GiB",
            hint="give a smaller --model, or more GPUs with --engine-set tensor_parallel=N",
        )


def to_build(planned: Mapping[str, Planned], machine: Machine) -> dict[str, Backend]:
    """Definitions whose environments would be built, by the label of one backend each: variants share one."""
    labels = {
        engine.ref.definition.name: label
        for label, engine in planned.items()
        if engine.choice.mode == "process"
        and needs_install(engine.ref.definition)
        and not machine.is_installed(engine.ref.definition)
    }
    return {label: planned[label].ref.definition for label in labels.values()}


def _disk(planned: Mapping[str, Planned], machine: Machine) -> list[Lack]:
    """Compares the room on the disk with that of the environments that are to be built, which are the
    sizes that are known.
    """
    building = to_build(planned, machine)
    if not building:
        return []
    labels, definitions = tuple(building), list(building.values())
    free = machine.cache_free_bytes()
    then = "free some space, or name another folder with BENCH_CACHE"
    if free is None:
        named = "name a folder that can be with BENCH_CACHE"
        return [Lack(labels, f"the cache folder {machine.cache} cannot be written", named)]
    if free >= sum(map(size_mb, definitions)) * MB:
        return []
    needed = f"{room_words(definitions)} are to be installed"
    return [Lack(labels, f"{needed} in {machine.cache}, where {free // MB:,} MB are free", then)]
