"""`bench up`: one engine, ready to be measured or looked at, until `bench down`."""

import argparse
import time
from contextlib import closing
from dataclasses import replace

from harness.cli.display.output import progress_display
from harness.cli.flags import options
from harness.errors import ExitCode, SetupError, SpecError
from harness.host import paths

_POLL_S = 0.5


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


def main(arguments: argparse.Namespace) -> int:
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

    refs = parse_backend_list(arguments.backend, own=arguments.variants)
    if len(refs) != 1 or refs[0].url:
        raise SpecError("one engine without a URL can be started at a time", where="bench up")
    check_variants(refs, arguments.variants, arguments.engine_values)
    (ref,) = refs
    choice = resolve_launch(ref, arguments.launch, arguments.device, arguments.gpus)
    ref = as_launched(ref, choice)
    if choice.mode == "compose" and arguments.host:
        raise SpecError(
            "a container is published on 127.0.0.1 alone", where="--host", hint="use --launch process"
        )
    if ":" in (arguments.host or ""):
        raise SpecError("is not an IPv4 address", where=f"--host {arguments.host}", hint="such as 10.0.0.9")
    if choice.mode == "compose":
        _refuse_twice(ref.label)
    values = dict(arguments.engine_values)
    port = None if arguments.port is None else str(arguments.port)
    if port is not None and values.setdefault("port", port) != port:
        raise SpecError("another flag sets it otherwise", where="--engine-set port", hint="leave it out")
    model_name, model = find_model(arguments.model)
    with closing(progress_display()) as ui:
        ui.note(choice.why)
        host = arguments.host or HOST
        machine = Machine(ui.stage, gpu_wait_s=arguments.gpu_wait_s, gpus=arguments.gpus, host=host)
        wanted = EngineRequest(
            ref,
            choice,
            model_name,
            model,
            log_path=paths.cache_dir() / "logs" / f"up-{ref.label}.log",
            values=values,
            gpu_wait_s=arguments.gpu_wait_s,
            gpus=arguments.gpus,
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
            print(f"{ref.label} serves model '{engine.served_name}' at {engine.base_url}")
            metrics = [
                f" --metrics-url {source.base_url}"
                for source in engine.counter_sources
                if source is not engine
            ]
            own = ref.variant in arguments.variants  # which no other command line knows
            name = f"{ref.variant}={ref.definition.name}" if own else ref.label
            attach = f"--backends {name}={engine.base_url}{''.join(metrics)}"
            print(f"measure it:  bench run --scenario shared-prefix {attach}")
            if choice.mode == "compose":
                print(f"its log:     bench logs {ref.label}\nstop it:     bench down {ref.label}", flush=True)
                return ExitCode.OK
            print(f"its log:     {engine.facts['log']}\nstop it:     Ctrl-C", flush=True)
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
