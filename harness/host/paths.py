"""The only place that knows where shipped definitions, caches and results lie."""

import os
import stat
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

from harness.errors import SetupError, SpecError

Kind = Literal["workloads", "workloads/suites", "backends", "compose"]
Entry = Literal["file", "folder", "other"]

CHECKOUT = Path(__file__).resolve().parents[2]
LONGEST_NAME = 200  # bytes of a part of a file's name, which has at most 255


@cache
def shipped(kind: Kind) -> Path:
    """The folder of definitions that came with this installation (wheel or checkout)."""
    packaged = Path(str(resources.files("harness"))) / "_data" / kind
    if packaged.is_dir():
        return packaged
    checked_out = CHECKOUT / kind
    if (CHECKOUT / "pyproject.toml").is_file() and checked_out.is_dir():
        return checked_out
    raise SpecError(
        f"the {kind}/ folder of this installation is missing",
        where=str(packaged),
        hint="reinstall the package",
    )


def definitions(kind: Kind) -> dict[str, Path]:
    """Every definition by name. Files in `./KIND/` of the working directory override the shipped."""
    files: dict[str, Path] = {}
    for folder in (shipped(kind), Path.cwd() / kind):
        if folder.is_dir():
            found = sorted(folder.glob("*.toml"), key=lambda path: path.name)  # whole paths compare slowly
            files.update({path.stem: path for path in found})
    return files


def definition(kind: Kind, name: str) -> Path | None:
    """The definition of that name, without listing all of them."""
    folders = (Path.cwd() / kind, shipped(kind)) if is_name(name) else ()
    return next((path for folder in folders if entry(path := folder / f"{name}.toml")), None)


def entry(path: Path) -> Entry | None:
    """The kind of what is at `path`, links followed; None too if it may not be seen, or no file can have this
    name."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return None
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def data_file(name: str) -> Path:
    """A file that a scenario names: from the working directory, else next to the scenarios."""
    places = (Path(name), Path.cwd() / "workloads" / name, shipped("workloads") / name)
    return next((path for path in places if entry(path)), places[0])


def lock_file(name: str) -> Path:
    """The lock file of an engine's environment. One in `./backends/locks/` overrides the shipped one."""
    own = Path.cwd() / "backends" / "locks" / name
    return own if entry(own) else shipped("backends") / "locks" / name


def cache_dir() -> Path:
    """Engine environments, models and downloads: `$BENCH_CACHE`, else the user's cache directory."""
    return _of_user("BENCH_CACHE", os.environ.get("XDG_CACHE_HOME") or "~/.cache")


def config_dir() -> Path:
    """Tuned variants and the like: `$BENCH_CONFIG`, else XDG's place."""
    return _of_user("BENCH_CONFIG", os.environ.get("XDG_CONFIG_HOME") or "~/.config")


def made(folder: Path) -> Path:
    """Creates `folder` if it is missing, and returns it. Cache and settings are the user's alone, unless the
    umask is stricter.

    Contents follow the umask: containers read parts of the cache as other users.
    """
    own = next((parent for parent in (cache_dir(), config_dir()) if folder.is_relative_to(parent)), folder)
    for missing in reversed([parent for parent in (own, *own.parents) if entry(parent) is None]):
        missing.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _of_user(variable: str, base: str) -> Path:
    """The folder that the variable names, else one of ours below `base`. Raises SetupError."""
    explicit = os.environ.get(variable)
    try:
        if explicit:
            return Path(explicit).expanduser().resolve()
        return Path(base).expanduser() / "llm-servebench"
    except RuntimeError:  # neither HOME nor the system's list of users says it
        raise SetupError(
            "names a home folder that is not known",
            where=f"{variable}={explicit}" if explicit else base,
            hint=f"set HOME, or set {variable} to a folder",
        ) from None


def matching(patterns: Iterable[str]) -> list[Path]:
    """Files and folders, absolute, in order; each once."""
    root = Path(Path.cwd().anchor)
    absolute = [(Path.cwd() / pattern).relative_to(root) for pattern in patterns]
    return sorted({path for pattern in absolute for path in root.glob(str(pattern))})


def is_name(text: str) -> bool:
    """Whether it can be a part of a file's name: short, on one line, and no path."""
    # Half of a surrogate pair is not printable, and cannot be encoded.
    return text.isprintable() and "/" not in text and 0 < len(text.encode()) <= LONGEST_NAME
