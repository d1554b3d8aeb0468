"""`bench up`: one engine, ready to be measured or looked at, until `bench down`."""

import argparse
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.cli.display.output import progress_display
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SetupError, SpecError
from harness.host import paths

if TYPE_CHECKING:
    from harness.model.choices import Device, LaunchMode

_POLL_S = 0.5


@dataclass(frozen=True)
class Options(Flags):
    backend: str
    model: str | None
    launch: "LaunchMode"
    device: "Device"
    gpus: tuple[str, ...]
    gpu_wait_s: float
    port: int | None
    host: str | None
    engine_values: Mapping[str, str]
    variants: Mapping[str, str]
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "backend", metavar="NAME[==VERSION][@VARIANT]", help="name from `bench list backends`"
    )
    options.add_model(parser)
    options.add_launch(
        parser,
        *("auto", "compose", "process"),
        note="; a process runs until Ctrl-C, a container until `bench down`",
    )
    options.add_device(parser)
    options.add_gpus(parser)
    options.add_gpu_wait(parser)
    parser.add_argument("--port", type=int, metavar="N", help="port of the engine (default: a free one)")
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        help="address of this machine that a process listens on, without a key (default: 127.0.0.1)",
    )
    options.add_engine_set(parser, "engine value")
    options.add_variants(parser)
    options.add_json(parser)


def main(given: Options) -> Result:
    from harness.engines.check.available import Machine
    from harness.engines.check.preflight import require
    from harness.engines.provide.logged import own_log
    from harness.engines.provide.models import find_model
    from harness.engines.session import open_engine
    from harness.engines.start.command import HOST
    from harness.engines.start.launch_choice import as_launched, resolve_launch
    from harness.engines.start.request import EngineRequest
    from harness.run.interrupts import Interrupts
    from harness.run.setup.backends import check_variants
    from harness.spec.backend_refs import parse_backend_list

    refs = parse_backend_list(given.backend, own=given.variants)
    if len(refs) != 1 or refs[0].url:
        raise SpecError("one engine without a URL can be started at a time", where="bench up")
    check_variants(refs, given.variants, given.engine_values)
    (ref,) = refs
    choice = resolve_launch(ref, given.launch, given.device, given.gpus)
    ref = as_launched(ref, choice)
    if choice.mode == "compose" and given.host:
        raise SpecError(
            "a container is published on 127.0.0.1 alone", where="--host", hint="use --launch process"
        )
    if ":" in (given.host or ""):
        raise SpecError("is not an IPv4 address", where=f"--host {given.host}", hint="such as 10.0.0.9")
    if choice.mode == "compose":
        _refuse_twice(ref.label)
    values = dict(given.engine_values)
    port = None if given.port is None else str(given.port)
    if port is not None and values.setdefault("port", port) != port:
        raise SpecError("another flag sets it otherwise", where="--engine-set port", hint="leave it out")
    model_name, model = find_model(given.model)
    with closing(progress_display()) as ui:
        ui.note(choice.why)
        host = given.host or HOST
        machine = Machine(ui.stage, gpu_wait_s=given.gpu_wait_s, gpus=given.gpus, host=host)
        wanted = EngineRequest(
            ref,
            choice,
            model_name,
            model,
            log_path=paths.cache_dir() / "logs" / f"up-{ref.label}.log",
            values=values,
            gpu_wait_s=given.gpu_wait_s,
            gpus=given.gpus,
            host=host,
            keep=choice.mode == "compose",
        )
        require({ref.label: wanted}, machine)
        with (
            Interrupts(),
            own_log(wanted.log_path) as log,
            open_engine(replace(wanted, log_path=log), ui.stage) as engine,
        ):
            ui.close()
            metrics = [source.base_url for source in engine.counter_sources if source is not engine]
            own = ref.variant in given.variants  # which no other command line knows
            name = f"{ref.variant}={ref.definition.name}" if own else ref.label
            attach = f"--backends {name}={engine.base_url}"
            attach += "".join(f" --metrics-url {url}" for url in metrics)
            stays = choice.mode == "compose"
            shown = f"bench logs {ref.label}" if stays else str(engine.facts["log"])
            ready = Result(
                [
                    f"{ref.label} serves model '{engine.served_name}' at {engine.base_url}",
                    f"measure it:  bench run --scenario shared-prefix {attach}",
                    f"its log:     {shown}",
                    f"stop it:     {f'bench down {ref.label}' if stays else 'Ctrl-C'}",
                ],
                lambda: {
                    "backend": ref.label,
                    "model": engine.served_name,
                    "url": engine.base_url,
                    "metrics_urls": metrics,
                },
            )
            if stays:
                return ready
            put(ready, as_json=given.json, flush=True)
            while (ended := engine.liveness.look()) is None:
                time.sleep(_POLL_S)
            raise SetupError(f"ended: {ended.why}", where=ref.label, below=engine.log_tail(15))


def _refuse_twice(label: str) -> None:
    from harness.engines.start.containers.daemon import Daemon
    from harness.engines.start.containers.owners import running

    try:
        containers = running(Daemon(), label)
    except SetupError:
        return  # the check of the machine says this, next to all else that is missing
    for container in containers:
        if container.kept and container.engine == label:
            raise SetupError(
                f"it is already up, at {container.url}" if container.url else "it was up, and has ended",
                where=label,
                hint=f"`bench down {label}` removes it",
            )
