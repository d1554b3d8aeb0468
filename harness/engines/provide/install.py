"""Engines' own environments in the cache: built on first use, rebuilt when what they are made of changes."""

import dataclasses
import json
import os
import platform
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.engines.provide.fitness import MB, check_room, unfit, unfit_index
from harness.engines.provide.interpreters import OURS, can_be_had, creating, made_for, python_of
from harness.engines.provide.locks import Locked, Wheel, lock_of, lock_text, locked_files, read_lock, resolve
from harness.engines.provide.logged import Log, new_log, own_log, run_logged
from harness.engines.provide.pip import Pip
from harness.engines.provide.shared_folders import Say, built, completed, folder_of
from harness.engines.provide.torch_cpu import accelerator_packages, install_cpu_torch
from harness.errors import SetupError, SpecError
from harness.host import kit_env, paths
from harness.host.helper_process import without_credentials
from harness.spec.backend import Backend, CudaProcess, Install
from harness.spec.versions import pinned


class _Built(msgspec.Struct):
    packages: dict[str, str]
    version: str
    torch_source: str


@dataclass(frozen=True, slots=True)
class EngineEnv:
    """A finished environment; `packages` maps every distribution in it to its version."""

    python: Path
    packages: dict[str, str]
    version: str  # of the engine
    torch_source: str  # where its CPU build of torch came from; "" without torch

    @property
    def bin(self) -> Path:
        return self.python.parent


def needs_install(definition: Backend) -> bool:
    """False for an engine that runs from programs already on this machine."""
    return definition.process is not None and definition.process.install is not None


def size_mb(definition: Backend) -> int:
    """The size of the finished environment by its definition, else that of the downloads."""
    install = recipe_of(definition)
    if install.size_mb or not install.lock:
        return install.size_mb
    files = _files(locked_files(install, definition.name), python_for(definition))
    return sum(file.size_bytes for _, file in files if file) // MB


def size_words(definition: Backend) -> str:
    """The size in words to put after a name: ` (about 3,620 MB)`; "" where it is not known."""
    return f" ({room_words([definition])})" if size_mb(definition) else ""


def room_words(definitions: Sequence[Backend]) -> str:
    """What their environments take together: unpacked it is more than the downloads."""
    total = sum(map(size_mb, definitions))
    measured = all(recipe_of(definition).size_mb for definition in definitions)
    return f"about {total:,} MB" if measured else f"more than the {total:,} MB of the downloads"


def installed(definition: Backend) -> EngineEnv | None:
    found = _finished(definition) if needs_install(definition) else None
    return found and _environment(_folder(definition, found[0]), found[1])


def python_for(definition: Backend) -> tuple[int, int]:
    """The version of its environment's Python: that of the finished one, else the one that would be taken."""
    found = _finished(definition)
    return found[0] if found else python_of(recipe_of(definition), definition.name)


def _finished(definition: Backend) -> tuple[tuple[int, int], _Built] | None:
    """The environment that is there, with its Python."""
    for python in made_for(recipe_of(definition), definition.name):
        if facts := completed(_folder(definition, python), _Built):
            return python, facts
    return None


def install_engine(definition: Backend, say: Say, force: bool = False) -> EngineEnv:
    """The engine's environment, built now where it is absent. Raises SetupError with pip's last words."""
    install = recipe_of(definition)
    found = None if force else installed(definition)
    for error in unfit(definition, built=found is not None):
        raise SetupError(error.what, where=definition.name, hint=error.hint)
    if found:
        return found
    python = python_for(definition)
    if not can_be_had(python) and not kit_env.kit():  # that of the environment is gone
        python = python_of(install, definition.name)
    folder = _folder(definition, python)
    if not kit_env.kit():
        check_room(definition.name, folder, size_mb(definition), room_words([definition]))

    def build(target: Path) -> _Built:
        other = "" if python == OURS else f" with Python {python[0]}.{python[1]}"
        say(f"{definition.name}: preparing its environment{other}{size_words(definition)} in {target}")
        started = time.monotonic()
        facts = _build(target, definition, python, say)
        say(f"{definition.name}: environment ready after {time.monotonic() - started:.0f} s")
        return facts

    return _environment(
        folder, built(folder, f"the environment of {definition.name}", build, _Built, say, force=force)
    )


def check_index(definition: Backend) -> None:
    """Raises SetupError where its wheels are on an index that pip and uv do not know."""
    if error := unfit_index(recipe_of(definition)):
        raise SetupError(error.what, where=definition.name, hint=error.hint)


def planned(definition: Backend, say: Say) -> list[Wheel]:
    """The wheels of an installation here, without torch for the CPU. Installs and downloads nothing."""
    install, name = recipe_of(definition), definition.name
    check_index(definition)
    found = read_lock(install, name) if install.lock else _resolved(definition, "dry-run", say)
    python = python_for(definition)
    files = []
    for need, wheel in _files(found, python):
        if wheel is None:
            raise SetupError(
                f"{need.name} {need.version} has no file for Python {python[0]}.{python[1]} on this machine",
                where=name,
            )
        files.append(wheel)
    return files


def lock(definition: Backend, command: str, say: Say) -> str:
    """The text of a lock of what its requirements bring today. Raises SetupError."""
    check_index(definition)
    return lock_text(_resolved(definition, "lock", say), recipe_of(definition), command)


def _resolved(definition: Backend, doing: str, say: Say) -> list[Locked]:
    pip = Pip(Path(sys.executable), new_log(f"{doing}-{definition.name}"), say, definition.name)
    return resolve(recipe_of(definition), pip, cuda=isinstance(definition.process, CudaProcess))


def _files(found: Iterable[Locked], python: tuple[int, int]) -> Iterator[tuple[Locked, Wheel | None]]:
    """What is needed on this machine, and the file that pip takes; None if there is none."""
    return ((need, need.here(python)) for need in found if need.needed(python))


def newest(definition: Backend, say: Say) -> tuple[str, str]:
    """The pinned version, and the newest that pip finds here. Raises SetupError where pip fails."""
    install = recipe_of(definition)
    name, _, version = (pinned(install) or install.requirements[0]).partition("==")
    with own_log(paths.cache_dir() / "logs" / f"outdated-{definition.name}.log") as log:
        return version, Pip(Path(sys.executable), log, say, definition.name).newest(Requirement(name).name)


def recipe_of(definition: Backend) -> Install:
    """Raises SpecError where bench installs nothing for it."""
    if definition.process is None or definition.process.install is None:
        raise SpecError(
            f"backend '{definition.name}' has nothing to install", hint="its definition has no requirements"
        )
    return definition.process.install


def _folder(definition: Backend, python: tuple[int, int]) -> Path:
    install = recipe_of(definition)
    recipe = dataclasses.asdict(install)
    recipe["size_mb"] = 0  # a remark, not part of what is built
    del recipe["lock"], recipe["python"], recipe["index"]
    made_of = [recipe, python, platform.machine()]
    if kit := kit_env.kit():
        made_of.append(_kitted(kit, definition.name).read_text(encoding="utf-8"))
    elif install.lock:
        made_of.append(lock_of(install, definition.name))
    return folder_of("engines", definition.name, made_of)


def _environment(folder: Path, facts: _Built) -> EngineEnv:
    return EngineEnv(folder / "bin" / "python", facts.packages, facts.version, facts.torch_source)


def _build(folder: Path, definition: Backend, python_version: tuple[int, int], say: Say) -> _Built:
    install, name = recipe_of(definition), definition.name
    if kit := kit_env.kit():
        return _from_kit(kit, folder, name, install)
    log = new_log(f"install-{name}")
    create = creating(python_version, folder)
    if run_logged(create, log, say, f"{name}: creating the environment"):
        raise SetupError(
            "its environment cannot be made",
            where=name,
            below=Log(log).tail(2),
            hint=f"some systems have Python's venv in a separate package (python3-venv); log: {log}",
        )
    python = folder / "bin" / "python"
    pip = Pip(python, log, say, name)
    wheel = None
    if install.without and not install.lock:
        pip.download(install.requirements[0], folder)
        wheel = next(folder.glob("*.whl"))
    torch_source = ""
    constraint: tuple[str, ...] = ()
    if install.torch:
        torch = (_pinned_torch(wheel) if wheel else None) or install.torch
        torch_source = install_cpu_torch(pip, python.parent, torch)
        say(f"{name}: {torch_source}")
        pinned = folder / "constraints.txt"
        pinned.write_text(f"torch=={_packages(python)['torch']}\n", encoding="utf-8")
        constraint = ("--constraint", str(pinned))
    if install.lock:
        # All there is to install stands in it, and what is left out (torch) is asked for by others.
        wanted: tuple[str, ...] = ("--no-deps", "--require-hashes", "--only-binary", ":all:")
        wanted += ("--requirement", str(paths.lock_file(install.lock)))
    else:
        wanted = (*constraint, *install.requirements)
    if wheel:
        _install_without(pip, wheel, install, constraint)
    else:
        pip.run(f"installing {', '.join(install.requirements)}", "install", *wanted)
    if install.metadata_alias:
        _alias(python, install.metadata_alias)
    packages = _packages(python)
    accelerators = accelerator_packages(packages) if install.torch else []
    if accelerators:
        raise SetupError(
            f"its requirements brought GPU packages: {', '.join(accelerators)}",
            where=name,
            hint=f"name them in [process.install] without; log: {log}",
        )
    return _Built(packages, packages[canonicalize_name(install.version_of)], torch_source)


def _kitted(kit: Path, name: str) -> Path:
    file = kit_env.requirements(kit, name)
    if not file.is_file():
        raise SetupError(
            f"the kit {kit} has no packages of it", where=name, hint=f"make the kit with --engines {name}"
        )
    return file


def _from_kit(kit: Path, folder: Path, name: str, install: Install) -> _Built:
    """Builds the environment of the kit's files, and of what the machine has itself where the kit counts
    on that.
    """
    try:
        python = kit_env.make(kit, name, folder)
    except kit_env.KitError as error:
        raise SetupError(str(error), where=name) from None
    packages = _packages(python)
    version = packages.get(canonicalize_name(install.version_of), "")
    return _Built(packages, version, "torch of this machine" if "torch" in packages else "")


def _pinned_torch(wheel: Path) -> str | None:
    """The version of torch that the wheel was built for, where it says so."""
    pins = (re.match(r"torch\s*==\s*([0-9.]+)", line) for line in requires(wheel))
    return next((pin[1] for pin in pins if pin), None)


def _install_without(pip: Pip, wheel: Path, install: Install, constraint: tuple[str, ...]) -> None:
    """The wheel of the first requirement after everything it asks for, less what is left out."""
    engine, *others = install.requirements
    left_out = {canonicalize_name(name) for name in install.without}
    wanted = [line for line in requires(wheel) if canonicalize_name(Requirement(line).name) not in left_out]
    listing = wheel.with_name("requirements.txt")
    listing.write_text("\n".join([*wanted, *others]) + "\n", encoding="utf-8")
    pip.run(f"installing what {engine} needs", "install", *constraint, "--requirement", str(listing))
    pip.run(f"installing {engine}", "install", "--no-deps", str(wheel))
    wheel.unlink()


def requires(wheel: Path) -> list[str]:
    """Requirements in the wheel's metadata, those of optional extras left out."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        metadata = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    lines: list[str] = metadata.get_all("Requires-Dist", [])
    return [line for line in lines if not re.search(r"\bextra\s*==", line)]


def _alias(python: Path, alias: str) -> None:
    name, _, version = alias.partition("==")
    where = _output_of(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    folder = Path(where.strip()) / f"{name}-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8"
    )


def _packages(python: Path) -> dict[str, str]:
    listed = _output_of(python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check")
    return {canonicalize_name(entry["name"]): entry["version"] for entry in json.loads(listed)}


def _output_of(python: Path, *arguments: str) -> str:
    command = [str(python), "-I", *arguments]
    return subprocess.check_output(command, text=True, env=without_credentials(os.environ))
