"""`--launch process`: one engine as a process on this machine, in an environment of its own."""

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from harness.engines.provide.adapters import drawn_adapters
from harness.engines.provide.install import EngineEnv, install_engine, needs_install
from harness.engines.provide.shared_folders import Say
from harness.engines.provide.weights import Weights
from harness.engines.start import gpus, orphans
from harness.engines.start.command import Command, build_command, without_secret_arguments, write_files
from harness.engines.start.process import EngineProcess
from harness.engines.start.request import EngineRequest
from harness.engines.start.started import EngineFacts, Started
from harness.errors import SetupError
from harness.host import scratch
from harness.spec.backend import Backend


@contextmanager
def start_process(
    request: EngineRequest,
    definition: Backend,
    weights_for: Callable[[EngineEnv | None], Weights | None],
    port: int,
    say: Say,
) -> Iterator[Started]:
    """Gone when the block is left. `definition`: as it is configured. `weights_for` gets the engine's
    environment, which converts them.
    """
    label, log, on_cuda = request.ref.label, request.log_path, request.choice.device == "cuda"
    env = install_engine(definition, say) if needs_install(definition) else None
    weights = weights_for(env)
    adapters = drawn_adapters(definition, weights, env, say)
    chosen = gpus.chosen_gpus(gpus.gpus_needed(definition), request.gpus) if on_cuda else []
    unseen, waited_s = gpus.await_free(chosen, request.gpu_wait_s, say)
    with scratch.folder("engine") as room:
        command = build_command(
            definition,
            env=env,
            weights=weights,
            port=port,
            scratch=room,
            host=request.host,
            adapters=adapters,
        )
        if on_cuda:
            command = _with_gpus(command, chosen, env)
        elif request.gpus or request.choice.device == "cpu":  # some find their device by themselves
            seen = gpus.environment(request.gpus or ("-1",))
            command = replace(command, env={**command.env, **seen})
        write_files(room, command.files)
        say(f"{label}: starting")
        began = time.monotonic()
        try:
            process = EngineProcess(command.argv, command.env, log, cores=request.cores)
        except SetupError as error:
            if env and os.strerror(errno.ENOENT) in error.what:
                error.hint = f"its environment is damaged: delete {env.bin.parent}, and it is made again"
            raise

        def facts() -> EngineFacts:
            found: EngineFacts = {
                "command": without_secret_arguments(command.argv),
                "env": command.recorded_env(),
                "files": command.files,
                "pid": process.pid,
                "package_version": env.version if env else None,
                "packages": env.packages if env else None,
                "torch_source": env.torch_source if env else None,
                "caveat": (definition.process and definition.process.caveat) or None,
            }
            return {**found, **_on_gpus(chosen, process.pid, unseen)} if on_cuda else found

        with orphans.noted(label, process.pid, log), process:
            timeout_s = definition.server.startup_timeout_s
            here = f"http://{request.host}"
            metrics_url = f"{here}:{command.second_port}" if definition.metrics_own_port else ""
            yield Started(process, f"{here}:{port}", weights, facts, timeout_s, began, metrics_url, waited_s)


def _with_gpus(command: Command, chosen: Sequence[str], env: EngineEnv | None) -> Command:
    """Gives the engine its GPUs: it sees these alone, and finds the compilers that its environment
    brings, as if that were activated.
    """
    path = os.pathsep.join(filter(None, (str(env.bin) if env else "", command.env.get("PATH", ""))))
    return replace(command, env={**command.env, **gpus.environment(chosen), "PATH": path})


def _on_gpus(chosen: Sequence[str], pid: int, unseen: str | None) -> EngineFacts:
    """Asked once it has answered: it, or what it started, computes there now."""
    import psutil

    children = [child.pid for child in psutil.Process(pid).children(recursive=True)]
    found, why = gpus.computing(chosen, [pid, *children])
    return {
        "gpus": list(chosen),
        "gpu_pids": found,
        "remarks": [reason for reason in (unseen, why) if reason],
    }
