"""Keeps one engine's container for as long as it is wanted: up, its log to standard output, and gone.

    python -m harness.engines.start.containers.keeper PROJECT FOLDER COMPOSE…

Runs under the same guard as an engine's process, so that a killed harness leaves no container behind. The
folder holds compose.yaml. A file `keep` put there makes it leave the container when it is asked to stop; it
puts `drained` there when all of the log has been written.
"""

import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from harness.engines.start.containers.compose_tool import compose_environment
from harness.engines.start.containers.daemon import PROJECT, Daemon
from harness.engines.start.containers.service import STOP_GRACE_S
from harness.errors import SetupError

COMPOSE_FILE, KEEP, DRAINED = "compose.yaml", "keep", "drained"
# From the order to stop until the last of it is gone; the guard kills what takes longer.
GRACE_S = STOP_GRACE_S + 45.0


def main(project: str, folder: Path, compose: list[str]) -> int:
    signal.signal(signal.SIGTERM, _stop)
    daemon = Daemon()
    try:
        started = subprocess.run(
            [*compose, "-p", project, "-f", str(folder / COMPOSE_FILE), "up", "--detach", "--no-build"],
            stdin=subprocess.DEVNULL,
            env=compose_environment(),
        )
        if started.returncode:
            return started.returncode
        (container,) = daemon.containers(f"{PROJECT}={project}")
        for part in daemon.log(container, follow=True):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        (folder / DRAINED).touch()
        signal.pause()
    finally:
        if not (folder / KEEP).exists():
            daemon.remove_project(project, grace_s=STOP_GRACE_S)
    return 0


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
    except SetupError as error:
        sys.exit(f"error: {error}")
