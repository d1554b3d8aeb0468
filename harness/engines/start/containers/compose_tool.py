"""The Compose command of this machine: `docker compose` where it is, else docker-compose 1.29."""

import os
import re
import subprocess
from dataclasses import dataclass

from harness.engines.provide.weights import HUB_TOKEN
from harness.errors import SetupError
from harness.host.helper_process import without_credentials

_ASK_TIMEOUT_S = 30
CANDIDATES = (("docker", "compose"), ("docker-compose",))  # the first that is there is taken
_OLDEST = (1, 28)  # profiles and device reservations


@dataclass(frozen=True, slots=True)
class ComposeTool:
    argv: tuple[str, ...]
    version: str


def compose_environment() -> dict[str, str]:
    """docker-compose 1.29 is a Python program with libraries of its own."""
    known = without_credentials(os.environ, keep=HUB_TOKEN)
    return {name: value for name, value in known.items() if not name.startswith("PYTHON")}


def find_compose() -> ComposeTool:
    """Raises SetupError when there is none, or only one that is too old."""
    outdated = ""
    for argv in CANDIDATES:
        version = version_of(argv)
        if version is None:
            continue
        numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        if numbers >= _OLDEST:
            return ComposeTool(argv, version)
        outdated = f"{' '.join(argv)} {version} is too old"
    raise SetupError(
        outdated or "neither `docker compose` nor `docker-compose` is installed",
        where="--launch compose",
        hint="install Docker's Compose plugin (docker-compose-plugin, docker-compose-v2) or docker-compose",
    )


def version_of(argv: tuple[str, ...]) -> str | None:
    """None when it is not installed."""
    try:
        asked = subprocess.run(
            [*argv, "version", "--short"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            env=compose_environment(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = asked.stdout.strip()
    return version if asked.returncode == 0 and version else None
