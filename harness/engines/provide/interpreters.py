"""The Python of an engine's environment: ours, else one that its packages are made for."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.engines.provide.locks import OLDEST, Locked, locked_files
from harness.errors import SetupError
from harness.host import kit_env
from harness.host.helper_process import without_credentials
from harness.spec.backend import Install

Version = tuple[int, int]

OURS: Version = sys.version_info[:2]
NEWEST = 20  # minor version beyond which no wheel is looked for


def made_for(install: Install, name: str) -> Sequence[Version]:
    """Returns the versions that its packages are made for, on this machine: ours alone if it is one of them,
    else the newest first. None where its lock lacks a file for each.

    Without a lock nothing is known, so it is ours. A kit has packages for the Python that runs it.
    """
    if install.python:
        major, minor = install.python.split(".")
        return [(int(major), int(minor))]
    if not install.lock or kit_env.kit():
        return [OURS]
    locked = tuple(locked_files(install, name))
    if _complete(locked, OURS):
        return [OURS]
    others = [(3, minor) for minor in reversed(range(OLDEST[1], NEWEST))]
    return [version for version in others if _complete(locked, version)]


def python_of(install: Install, name: str) -> Version:
    """Version of the environment's interpreter: of those it can be, the first that this machine has."""
    fitting = made_for(install, name) or [OURS]
    return next(filter(_program, fitting), fitting[0])


def unfit_python(install: Install, name: str) -> SetupError | None:
    """Returns why no interpreter for it is to be had here; None if one is."""
    fitting = made_for(install, name)
    if not fitting:
        return SetupError(
            f"{_lacking(install, name)} has no file for this machine, whatever its Python",
            hint=f"its lock {install.lock} is for other machines: attach to a running server",
        )
    if shutil.which("uv") or any(map(_program, fitting)):
        return None
    newest, *older = map(_name, fitting)
    versions = f"{', '.join(reversed(older))} and {newest}" if older else newest
    return SetupError(
        f"its packages are made for Python {versions}, not for {_name(OURS)}, and this machine has "
        f"{'none of these' if older else 'no such Python'}, nor uv",
        hint=f"pip install uv, which fetches one, or install python{newest} with its venv",
    )


def creating(install: Install, name: str, folder: Path) -> list[str]:
    """The command that makes an environment with pip. Raises SetupError where its Python is not to be had."""
    if error := unfit_python(install, name):
        raise SetupError(error.what, where=name, hint=error.hint)
    version = python_of(install, name)
    if program := _program(version):
        return [program, "-m", "venv", str(folder)]
    return [str(shutil.which("uv")), "venv", "--seed", "--python", _name(version), str(folder)]


def _program(version: Version) -> str | None:
    if version == OURS:
        return sys.executable
    found = shutil.which(f"python{_name(version)}")
    return found if found and _runs(found) else None


@functools.cache
def _runs(program: str) -> bool:
    """Some tools put a program of that name there which only says that it is not installed."""
    command = [program, "-I", "-c", "import ensurepip, venv"]
    return subprocess.run(command, capture_output=True, env=without_credentials(os.environ)).returncode == 0


@functools.cache
def _complete(locked: tuple[Locked, ...], python: Version) -> bool:
    return all(requirement.here(python) for requirement in locked if requirement.needed(python))


def _lacking(install: Install, name: str) -> str:
    """The first distribution of the lock without a file for ours."""
    found = (
        f"{requirement.name} {requirement.version}"
        for requirement in locked_files(install, name)
        if requirement.needed(OURS) and requirement.here(OURS) is None
    )
    return next(found)


def _name(version: Version) -> str:
    return ".".join(map(str, version))
