"""The image of an engine: found here, or pulled with its progress shown; recorded by digest."""

import os
import re
from dataclasses import dataclass
from typing import Any

from harness.engines.provide.logged import Reporter
from harness.engines.provide.shared_folders import Say
from harness.engines.start.containers.daemon import Daemon, NotOfferedError
from harness.engines.start.containers.service import image_variable
from harness.errors import SetupError
from harness.spec.backend import Backend

# What helps before another image does, by Docker's own words.
_REMEDIES = (
    (r"no space left", "free space on Docker's disk, as `docker image prune` does, or "),
    (r"unauthorized|denied|toomanyrequests", "log in to its registry with `docker login`, or "),
)


@dataclass(frozen=True, slots=True)
class FoundImage:
    """`digest` is the registry's, the same on every machine; None for an image that was built here."""

    name: str
    image_id: str
    digest: str | None
    created: str | None  # None: the image does not say
    overridden: bool  # by BENCH_IMAGE_…


def image_name(definition: Backend, device: str) -> tuple[str, bool]:
    """The name, and whether the environment names it instead of the definition."""
    declared = definition.images[device]
    named = os.environ.get(image_variable(definition))
    return named or f"{declared.name}:{declared.tag}", bool(named)


def check_offered(daemon: Daemon, definition: Backend, device: str) -> None:
    """Raises SetupError for an image that is not here and that its registry refuses. Pulls nothing.

    A registry that cannot be asked is no refusal: Docker may pull through a mirror that this does not see.
    """
    name, _ = image_name(definition, device)
    if daemon.image(name) is not None:
        return
    try:
        daemon.offered(name)
    except NotOfferedError as error:
        raise _unobtainable(definition, name, error.what) from error
    except SetupError:
        pass


def _unobtainable(definition: Backend, name: str, why: str) -> SetupError:
    remedy = next((text for pattern, text in _REMEDIES if re.search(pattern, why)), "")
    return SetupError(
        f"image {name} is not on this machine and cannot be pulled: {why}",
        where=definition.name,
        hint=remedy
        + f"use a local one with {image_variable(definition)}=NAME, or load one with `docker load`",
    )


def ensure_image(daemon: Daemon, definition: Backend, device: str, say: Say) -> FoundImage:
    """Raises SetupError when it is neither here nor to be had."""
    name, overridden = image_name(definition, device)
    attributes = daemon.image(name)
    if attributes is None:
        _pull(daemon, definition, name, say)
        attributes = daemon.image(name)
    if attributes is None:
        raise SetupError(f"image {name} was pulled but cannot be found", where=definition.name)
    digest = next(iter(attributes.get("RepoDigests") or ()), None)
    return FoundImage(name, attributes["Id"], digest, attributes.get("Created"), overridden)


def _pull(daemon: Daemon, definition: Backend, name: str, say: Say) -> None:
    what = f"{definition.name}: pulling {name}"
    say(what)
    layers: dict[str, tuple[int, int]] = {}
    reporter = Reporter(say, what, lambda: _amount(layers))
    try:
        for event in daemon.pull(name):
            if "error" in event:
                raise SetupError(event["error"])
            _note(event, layers)
            reporter.tick()
    except SetupError as error:
        raise _unobtainable(definition, name, error.what) from error
    say(f"{definition.name}: {name} pulled in {reporter.elapsed_s:.0f} s")


def _amount(layers: dict[str, tuple[int, int]]) -> str:
    here, total = (sum(layer[part] for layer in layers.values()) / 1e9 for part in (0, 1))
    return f"{here:.1f} of {total:.1f} GB"


def _note(event: dict[str, Any], layers: dict[str, tuple[int, int]]) -> None:
    """Bytes of each layer, as far as they are known: (here, in all)."""
    layer, detail = event.get("id", ""), event.get("progressDetail") or {}
    if event.get("status") == "Downloading" and detail.get("total"):
        layers[layer] = (detail.get("current", 0), detail["total"])
    elif event.get("status") in ("Download complete", "Pull complete") and layer in layers:
        layers[layer] = (layers[layer][1], layers[layer][1])
