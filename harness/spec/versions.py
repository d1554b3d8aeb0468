"""`NAME==VERSION`: an engine at another version than its definition pins, in an environment of its own."""

import dataclasses
import re
from typing import TypeVar

from harness.errors import SpecError
from harness.spec.backend import DEVICES, Backend, Image, Images, Install, Process

P = TypeVar("P", bound=Process)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+_-]*")
_IN_TAG = re.compile(r"\d+(?:\.\d+)+")  # the first such number of an image's tag is the engine's version


def at_version(definition: Backend, version: str) -> Backend:
    """Pins processes and images to the version. Those without a version are dropped; SpecError if all are."""
    where = f"backend {definition.name}=={version}"
    if not _VERSION.fullmatch(version):
        raise SpecError(f"'{version}' is not a version", where=where, hint="such as 1.2.3")
    process = _process(definition.process, version)
    process_cuda = _process(definition.process_cuda, version)
    images = Images(**{device: _image(getattr(definition.image, device), version) for device in DEVICES})
    pinned = any(getattr(images, device) for device in DEVICES)
    if process is None and process_cuda is None and not pinned:
        raise SpecError(
            "its definition names no version that could be replaced",
            where=where,
            hint="start that version yourself and attach to it with NAME=URL",
        )
    return dataclasses.replace(
        definition,
        process=process,
        process_cuda=process_cuda,
        image=images,
        compose=definition.compose if pinned else None,
    )


def _process(process: P | None, version: str) -> P | None:
    if process is None or process.install is None or not process.install.version_of:
        return None
    return dataclasses.replace(process, install=_install(process.install, version))


def pinned(install: Install) -> str | None:
    """The requirement that pins the engine itself, as NAME==VERSION; None if there is none."""
    named = re.compile(rf"{re.escape(install.version_of)}(\[[^\]]*\])?==.+")
    return next(filter(named.fullmatch, install.requirements), None)


def _install(install: Install, version: str) -> Install:
    """Sets the version, also in the name under which the engine looks itself up.

    The lock is dropped, because it is for the version that the definition pins.
    """
    engine = pinned(install)
    assert engine is not None  # parse_backend has seen to it
    name, _, was = engine.partition("==")
    return dataclasses.replace(
        install,
        requirements=tuple(
            f"{name}=={version}" if requirement == engine else requirement
            for requirement in install.requirements
        ),
        metadata_alias=install.metadata_alias.replace(was, version),
        lock="",
    )


def _image(image: Image | None, version: str) -> Image | None:
    if image is None or not _IN_TAG.search(image.tag):
        return None
    return dataclasses.replace(image, tag=_IN_TAG.sub(version, image.tag, count=1))
