"""The owner of a container: labels distinguish live, killed and other machines' harnesses."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from harness.engines.start.containers.daemon import OURS, PROJECT, Daemon
from harness.engines.start.containers.service import STOP_GRACE_S
from harness.engines.start.orphans import born

KEPT = f"{OURS}kept"
ENGINE = f"{OURS}engine"


def labels(engine: str, *, keep: bool) -> dict[str, str]:
    """`keep`: started by `bench up`, to be left alone until `bench down`."""
    return {
        ENGINE: engine,
        KEPT: "yes" if keep else "no",
        f"{OURS}host": platform.node(),
        f"{OURS}boot": _boot(),
        f"{OURS}bench": str(os.getpid()),
        f"{OURS}born": str(born(os.getpid())),
    }


@dataclass(frozen=True, slots=True)
class Running:
    """A container of an engine, on this Docker."""

    engine: str
    container_id: str
    project: str
    kept: bool
    url: str | None  # None once it has ended


def running(daemon: Daemon, engine: str = "") -> list[Running]:
    """Containers that this machine's harnesses started: of one engine, its versions and variants, or all."""
    containers = []
    for container, labels in daemon.containers(f"{OURS}host={platform.node()}").items():
        label, version = labels[ENGINE], labels[ENGINE].partition("@")[0]
        if engine in ("", label, version, version.partition("==")[0]):
            kept, url = labels.get(KEPT) == "yes", _url(daemon, container)
            containers.append(Running(label, container, labels.get(PROJECT, ""), kept, url))
    return containers


def _url(daemon: Daemon, container_id: str) -> str | None:
    attributes = daemon.inspect(container_id)
    ports = attributes["NetworkSettings"]["Ports"] if attributes else {}
    published = [
        f"http://{binding['HostIp']}:{binding['HostPort']}"
        for places in ports.values()
        for binding in places or ()
    ]
    return next(iter(published), None)


def clear(daemon: Daemon) -> list[str]:
    """Removes what dead harnesses of this machine and this one left: it has one container at a time.

    Returns sentences about that, and about live neighbours. Raises SetupError where one stays.
    """
    remarks = []
    for container in daemon.containers(ENGINE).values():
        engine, project = container[ENGINE], container.get(PROJECT, "")
        if container.get(f"{OURS}host") != platform.node():
            remarks.append(
                f"{engine} of another machine's bench runs on this Docker: its work adds to what is measured"
            )
        elif container.get(KEPT) == "yes":
            remarks.append(
                f"{engine}, started with `bench up`, runs on this machine at the same time: "
                f"its work adds to what is measured (`bench down {engine}` stops it)"
            )
        elif (alive := _alive(container)) and (pid := container[f"{OURS}bench"]) != str(os.getpid()):
            remarks.append(
                f"another bench (pid {pid}) runs {engine} on this machine at the same time: "
                "its work adds to what is measured"
            )
        elif daemon.remove_project(project, grace_s=STOP_GRACE_S):
            why = "which could not be stopped before" if alive else "left by a bench that was killed"
            remarks.append(f"removed the container of {engine}, {why}")
    return remarks


def _alive(labels: dict[str, str]) -> bool:
    if labels.get(f"{OURS}boot") != _boot():
        return False
    return str(born(int(labels[f"{OURS}bench"]))) == labels[f"{OURS}born"]


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
