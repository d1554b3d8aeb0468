"""The Python of an engine's environment: ours, else one that its packages are made for."""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from harness.engines.provide.locks import OLDEST, Locked, locked_files
from harness.engines.provide.pip import NO_PROJECT, find_uv
from harness.errors import SetupError
from harness.host import kit_env
from harness.host.helper_process import without_credentials
from harness.spec.backend import Install

Version = tuple[int, int]

OURS: Version = sys.version_info[:2]
NEWEST = 20  # minor version beyond which no wheel is looked for


def made_for(install: Install, name: str) -> Sequence[Version]:
    """Returns the versions that its packages are made for, on this machine: the declared one or ours alone
    if it is one of them, else the newest first. Empty where its lock lacks a file for each.

    Without a lock nothing is known. A kit has packages for the Python that runs it.
    """
    wanted = _version(install.python) if install.python else OURS
    if not install.lock or kit_env.kit():
        return [wanted]
    locked = tuple(locked_files(install, name))
    candidates = [wanted] if install.python or _complete(locked, wanted) else _known()
    return [version for version in candidates if _complete(locked, version)]


def python_of(install: Install, name: str) -> Version:
    """Version of the environment's interpreter: of those it can be, the first that this machine has."""
    fitting = made_for(install, name) or [_version(install.python) if install.python else OURS]
    return next(filter(_program, fitting), fitting[0])


def unfit_python(install: Install, name: str) -> SetupError | None:
    """Returns why no interpreter for it is to be had here; None if one is."""
    fitting = made_for(install, name)
    if not fitting:
        return _of_no_python(install, name)
    if kit_env.kit():  # which brings its pip along
        return None if find_spec("venv") else _NO_VENV
    if find_uv() or any(map(_program, fitting)):
        return None
    if OURS in fitting:
        return _NO_VENV
    newest, *older = map(_name, fitting)
    versions = f"{', '.join(reversed(older))} and {newest}" if older else newest
    return SetupError(
        f"its packages are made for Python {versions}, not for {_name(OURS)}, and this machine has "
        f"{'none of these' if older else 'no such Python'}, nor uv",
        hint=f"pip install uv, which fetches one, or install python{newest} with its venv",
    )


_NO_VENV = SetupError(
    "its environment cannot be made: this Python has no venv with pip",
    hint="install the package python3-venv of this system",
)


def _of_no_python(install: Install, name: str) -> SetupError:
    versions = [_version(install.python)] if install.python else _known()
    lacking = (
        f"{requirement.name} {requirement.version} has no file for this machine"
        for requirement in locked_files(install, name)
        if all(requirement.needed(version) and not requirement.here(version) for version in versions)
    )
    what = next(lacking, f"no Python from {_name(OLDEST)} on has files of all its packages")
    return SetupError(
        f"{what} and Python {install.python}" if install.python else what,
        hint=f"its lock {install.lock} is for others: attach to a running server",
    )


def creating(version: Version, folder: Path) -> list[str]:
    """The command that makes an environment with pip, of a version that can be had (`unfit_python`)."""
    if program := _program(version):
        return [program, "-I", "-m", "venv", str(folder)]
    uv = [str(find_uv()), "venv", "--project", NO_PROJECT]
    return [*uv, "--seed", "--python", _name(version), str(folder)]


def can_be_had(version: Version) -> bool:
    """Whether this machine has such a Python, or uv, which fetches one."""
    return bool(_program(version) or find_uv())


def _program(version: Version) -> str | None:
    """The interpreter of this version that makes environments with pip."""
    if version == OURS:  # some systems have venv in a package of its own
        return sys.executable if find_spec("venv") and find_spec("ensurepip") else None
    found = shutil.which(f"python{_name(version)}")
    return found if found and _runs(found) else None


@functools.cache
def _runs(program: str) -> bool:
    """Some tools put a program of that name there which only says that it is not installed."""
    command = [program, "-I", "-c", "import ensurepip, venv"]
    return subprocess.run(command, capture_output=True, env=without_credentials(os.environ)).returncode == 0


@functools.cache
def _complete(locked: tuple[Locked, ...], python: Version) -> bool:
    """Whether the lock has a file of everything that this Python needs here; a bare list of versions has."""
    return all(requirement.here(python) for requirement in locked if requirement.needed(python))


def _known() -> list[Version]:
    return [(3, minor) for minor in reversed(range(OLDEST[1], NEWEST))]


def _version(name: str) -> Version:
    major, minor = name.split(".")
    return int(major), int(minor)


def _name(version: Version) -> str:
    return ".".join(map(str, version))
