"""Locks of engines' environments: made by uv, shown by `bench engines install --dry-run`, obeyed by pip.

A lock is a requirements file of pip. So that it can be shown without a network, the files that an entry may
be stand before it as comments, in the order of the hashes: `# NAME.whl BYTES`.
"""

import functools
import re
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from packaging import tags
from packaging.markers import Marker
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from harness.engines.provide.pip import Pip
from harness.errors import SetupError, SpecError, reason
from harness.host import paths
from harness.spec.backend import Install

OLDEST = (3, 11)  # Python that a lock is for
_HEAD = "# Made by `{command}` of: {of}\n"
_OF = re.compile(r"# Made by `[^`]*` of: (.*)")
_ENTRY = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>.*?))? \\")
_FILE = re.compile(r"# (\S+\.whl) (\d+)")


class Wheel(NamedTuple):
    file: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Locked:
    """One distribution of an environment."""

    name: str
    version: str
    marker: str  # where it is needed; "": everywhere
    wheels: tuple[Wheel, ...]

    def needed(self, python: tuple[int, int]) -> bool:
        """Whether it is needed on this machine."""
        number = ".".join(map(str, python))
        versions = {"python_version": number, "python_full_version": f"{number}.0"}
        return not self.marker or Marker(self.marker).evaluate(versions)

    def here(self, python: tuple[int, int]) -> Wheel | None:
        """The file that pip takes on this machine."""
        places = _places(python)
        fitting = [
            (min(places[tag] for tag in known), wheel)
            for wheel in self.wheels
            if (known := parse_wheel_filename(wheel.file)[3] & places.keys())
        ]
        return min(fitting)[1] if fitting else None


@functools.cache
def _places(python: tuple[int, int]) -> dict[tags.Tag, int]:
    """Tags that fit this machine, the most fitting first."""
    number = f"cp{python[0]}{python[1]}"
    fitting = [*tags.cpython_tags(python), *tags.compatible_tags(python, number)]
    return {tag: location for location, tag in enumerate(dict.fromkeys(fitting))}


def asked_for(install: Install) -> str:
    """One line that names the input of a lock: another line is another lock."""
    left_out = [f"without {name}" for name in _left_out(install)]
    return "; ".join([*install.requirements, *left_out])


def lock_of(install: Install, backend: str) -> str:
    """Reads its text. Raises SpecError where it cannot be read, or says that it is of other requirements."""
    where = f"{backend}: lock {install.lock}"
    try:
        text = paths.lock_file(install.lock).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot be read: {reason(error)}", where=where) from None
    match = _OF.match(text)
    if match and match[1] != asked_for(install):
        raise SpecError("is of other requirements than the definition's", where=where, hint=_relock(backend))
    return text


def locked_files(install: Install, backend: str) -> list[Locked]:
    """The entries of its lock; none where it is a bare list of versions and hashes."""
    return list(_parsed(lock_of(install, backend)))


def read_lock(install: Install, backend: str) -> list[Locked]:
    """Raises SpecError, also where it does not tell its files."""
    found = locked_files(install, backend)
    if not found:
        where = f"{backend}: lock {install.lock}"
        raise SpecError("does not list its files and their sizes", where=where, hint=_relock(backend))
    return found


def _relock(backend: str) -> str:
    return f"write it again with `bench engines lock {backend}`"


def lock_text(found: Sequence[Locked], install: Install, command: str) -> str:
    lines = [_HEAD.format(command=command, of=asked_for(install)).rstrip()]
    for requirement in found:
        lines += [f"# {wheel.file} {wheel.size_bytes}" for wheel in requirement.wheels]
        marker = f" ; {requirement.marker}" if requirement.marker else ""
        hashes = [f"    --hash=sha256:{wheel.sha256}" for wheel in requirement.wheels]
        lines += [
            f"{requirement.name}=={requirement.version}{marker} \\",
            *(f"{line} \\" for line in hashes[:-1]),
            hashes[-1],
        ]
    return "\n".join(lines) + "\n"


def resolve(install: Install, pip: Pip, *, cuda: bool) -> list[Locked]:
    """Resolves with uv, which reads the metadata of wheels; pip would fetch them whole. Raises SetupError.

    For as many machines as there are wheels for: those for CUDA are resolved for the first alone.
    """
    for count in () if cuda else (3, 2):
        with suppress(SetupError):
            return _resolved(install, pip, _MACHINES[:count])
    return _resolved(install, pip, _MACHINES[:1])


def _resolved(install: Install, pip: Pip, machines: Sequence["_Machine"]) -> list[Locked]:
    with tempfile.TemporaryDirectory(prefix="bench-lock-") as folder:
        names = ("in.txt", "without.txt", "pylock.toml", "pyproject.toml")
        wanted, without, output, project = (Path(folder, name) for name in names)
        wanted.write_text("\n".join(install.requirements) + "\n", encoding="utf-8")
        without.write_text("\n".join(_left_out(install)) + "\n", encoding="utf-8")
        # The only file where uv reads for which machines.
        fitting = ", ".join(f'"{machine.marker}"' for machine in machines)
        head = '[project]\nname = "lock"\nversion = "0"\n'
        project.write_text(f"{head}[tool.uv]\nenvironments = [{fitting}]\n", encoding="utf-8")
        python = install.python or ".".join(map(str, OLDEST))
        pip.compile_uv(
            f"resolving {', '.join(install.requirements)}",
            *(str(wanted), "--universal", "--python-version", python, "--only-binary", ":all:"),
            *("--excludes", str(without), "--format", "pylock.toml", "--output-file", str(output)),
            project=folder,
        )
        packages = tomllib.loads(output.read_text(encoding="utf-8"))["packages"]
    found = []
    for package in packages:
        if "wheels" not in package:  # a folder, a file, an address or a repository
            hint = "ask for NAME==VERSION, and serve its wheel from an index or a folder of UV_FIND_LINKS"
            raise SetupError(
                "is from no index, so pip cannot find it by a lock", where=package["name"], hint=hint
            )
        wheels = tuple(sorted(_usable(package["wheels"], machines)))
        if wheels:
            found.append(Locked(package["name"], package["version"], package.get("marker", ""), wheels))
    return found


class _Machine(NamedTuple):
    system: str  # as wheels name it
    cpu: tuple[str, ...]
    marker: str


_MACHINES = (
    _Machine("linux", ("x86_64",), "sys_platform == 'linux' and platform_machine == 'x86_64'"),
    _Machine("linux", ("aarch64",), "sys_platform == 'linux' and platform_machine == 'aarch64'"),
    _Machine("macosx", ("arm64", "universal2"), "sys_platform == 'darwin' and platform_machine == 'arm64'"),
)


def _left_out(install: Install) -> list[str]:
    """torch, where a CPU build comes from elsewhere, and what the definition leaves out."""
    return sorted(
        {canonicalize_name(name) for name in (*install.without, *(["torch"] if install.torch else []))}
    )


def _usable(wheels: Iterable[dict[str, Any]], machines: Sequence[_Machine]) -> Iterator[Wheel]:
    """Wheels for CPython there. Raises SetupError for one whose size nobody knows."""
    for wheel in wheels:
        url = urlsplit(wheel["url"])
        path = Path(unquote(url.path))
        file, size = path.name, wheel.get("size")
        try:
            found = parse_wheel_filename(file)[3]
        except InvalidWheelFilename:
            continue
        if any(_fits(tag, machines) for tag in found):
            if size is None and url.scheme == "file":  # of UV_FIND_LINKS
                size = path.stat().st_size
            if not isinstance(size, int):
                hint = "use one that answers in JSON, as pypi.org does"
                raise SetupError("its index does not tell its size", where=file, hint=hint)
            yield Wheel(file, size, wheel["hashes"]["sha256"])


def _fits(tag: tags.Tag, machines: Sequence[_Machine]) -> bool:
    where = tag.platform.removeprefix("many")
    if where != "any" and not any(
        where.startswith(machine.system) and where.endswith(machine.cpu) for machine in machines
    ):
        return False
    version = re.fullmatch(r"(?:cp|py)3(\d*)", tag.interpreter)
    if version is None:
        return False
    return tag.abi in ("abi3", "none") or int(version[1]) >= OLDEST[1]


def _parsed(text: str) -> Iterator[Locked]:
    files: list[tuple[str, int]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if found := _FILE.fullmatch(line):
            files.append((found[1], int(found[2])))
        elif files and (entry := _ENTRY.fullmatch(line)):
            hashes = [next(lines).strip(" \\").removeprefix("--hash=sha256:") for _ in files]
            wheels = tuple(Wheel(*file, digest) for file, digest in zip(files, hashes, strict=True))
            yield Locked(entry["name"], entry["version"], entry["marker"] or "", wheels)
            files = []
