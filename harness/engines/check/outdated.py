"""Pinned versions against what is offered now: packages by pip, images by their registries."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.engines.provide.install import newest
from harness.engines.provide.logged import own_log
from harness.engines.provide.pip import Pip
from harness.engines.provide.shared_folders import Say
from harness.engines.start.containers.daemon import Daemon, NotOfferedError
from harness.errors import SetupError
from harness.host import paths
from harness.spec.backend import Backend, Image

IMAGES_S = 60.0  # for all of them


@dataclass(frozen=True, slots=True)
class Pin:
    name: str
    pinned: str
    newest: str

    @property
    def is_behind(self) -> bool:
        return self.pinned != self.newest

    def __str__(self) -> str:
        if not self.is_behind:
            return f"{self.pinned} is the newest"
        return f"{self.pinned} is pinned; try {self.name}=={self.newest}"


@dataclass(frozen=True, slots=True)
class Read(Pin):
    """The version of a tool or a system whose definitions and files were read."""

    def __str__(self) -> str:
        if not self.is_behind:
            return f"{self.pinned} was read and is the newest"
        return f"{self.newest} is out; its definitions and files were read in {self.pinned}"


def packages(definitions: Mapping[str, Backend], say: Say) -> Iterator[tuple[str, Pin]]:
    """Pins under the same names. Raises SetupError if pip cannot ask."""
    for name, definition in definitions.items():
        yield name, Pin(definition.name, *newest(definition, say))


def tools(read_in: Mapping[str, str], say: Say) -> Iterator[tuple[str, Read]]:
    """What was read, by package, each with its newest version for whatever Python.

    A night and a person may ask at once: the answers stand in the log.
    """
    with own_log(paths.cache_dir() / "logs" / "outdated-tools.log") as log:
        pip = Pip(Path(sys.executable), log, say, "tools")
        for package, version in read_in.items():
            yield package, Read(package, version, pip.newest(package, "--ignore-requires-python"))


def behind(pins: Iterator[tuple[str, Pin]]) -> Iterator[str]:
    """A line for each that has a newer version, and one where nobody can be asked."""
    try:
        for name, pin in pins:
            if pin.is_behind:
                yield f"{name}: {pin}"
    except SetupError as error:
        yield f"whether newer versions are out is not known: {error.what}"


def images(definitions: Iterable[Backend], say: Say) -> Iterator[str]:
    """A line for each image; one for a registry that cannot be asked, and for a machine without Docker."""
    try:
        daemon = Daemon()
        daemon.check_here()
    except SetupError as error:
        yield f"images: not looked up: {error.what}"
        return
    ends = time.monotonic() + IMAGES_S
    silent: set[str] = set()  # registries that did not answer are not asked again
    for label, image in _declared(definitions):
        registry = _registry(image)
        if registry in silent:
            continue
        if time.monotonic() > ends:
            yield f"images: the others were not looked up: {IMAGES_S:.0f} s were over"
            return
        name = f"{image.name}:{image.tag}"
        say(f"asking for {name}")
        try:
            yield f"{label} {name} {_state(daemon, name)}"
        except NotOfferedError as error:
            yield f"{label} {name} is not offered: {error.what}"
        except SetupError as error:
            silent.add(registry)
            yield f"images of {registry}: not looked up: {error.what}"


def _declared(definitions: Iterable[Backend]) -> Iterator[tuple[str, Image]]:
    for definition in definitions:
        for device, image in definition.images.items():
            yield f"{definition.name} ({device})", image


def _registry(image: Image) -> str:
    host = image.name.partition("/")[0]
    return host if "." in host or ":" in host else "the default registry"


def _state(daemon: Daemon, name: str) -> str:
    offered = daemon.offered(name)
    here = (daemon.image(name) or {}).get("RepoDigests") or []
    if not here:
        return f"is {offered}; not on this machine"
    same = any(digest.endswith(offered) for digest in here)
    return f"is {offered}, as on this machine" if same else f"is {offered} now; here is {here[0]}"
