"""`--launch process`: one engine as a process on this machine, in an environment of its own."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.engines import orphans
from harness.engines.cache import Say
from harness.engines.command import HOST, build_command
from harness.engines.engine_files import write_files
from harness.engines.install import EngineEnv, install_engine, needs_install
from harness.engines.process import EngineProcess
from harness.engines.started import EngineFacts, Started
from harness.engines.weights import Weights
from harness.host import scratch
from harness.spec.backend import Backend


@contextmanager
def start_process(
    label: str,
    definition: Backend,
    weights_for: Callable[[EngineEnv | None], Weights | None],
    *,
    port: int,
    log: Path,
    say: Say,
) -> Iterator[Started]:
    """Gone when the block is left. `weights_for` gets the engine's environment, which converts them."""
    env = install_engine(definition, say) if needs_install(definition) else None
    weights = weights_for(env)
    with scratch.folder("engine") as room:
        command = build_command(definition, env=env, weights=weights, port=port, scratch=room)
        write_files(room, command.files)
        say(f"{label}: starting")
        began = time.monotonic()
        process = EngineProcess(command.argv, command.env, log)

        def facts() -> EngineFacts:
            return {
                "command": list(command.argv),
                "env": command.recorded_env(),
                "files": command.files,
                "pid": process.pid,
                "package_version": env.version if env else None,
                "packages": env.packages if env else None,
                "torch_source": env.torch_source if env else None,
            }

        with orphans.noted(label, process.pid, log), process:
            timeout_s = definition.server.startup_timeout_s
            yield Started(process, f"http://{HOST}:{port}", weights, facts, timeout_s, began)
