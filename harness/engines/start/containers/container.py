"""A started container: whether it lives, how it ended, and what is recorded about it."""

import signal
import time
from pathlib import Path
from typing import Any, Self

import msgspec

from harness.engines.start.containers.daemon import PROJECT, Daemon
from harness.engines.start.containers.keeper import DRAINED, KEEP
from harness.engines.start.containers.service import STOP_GRACE_S
from harness.engines.start.process import EngineProcess
from harness.engines.start.started import ContainerFacts
from harness.errors import SetupError

_DRAIN_S = 2.0  # between a container's end and the last line of its log


class _State(msgspec.Struct, kw_only=True):
    """State, as far as Docker tells it of every container."""

    status: str = msgspec.field(name="Status")
    exit_code: int = msgspec.field(name="ExitCode", default=0)
    oom_killed: bool | None = msgspec.field(name="OOMKilled", default=None)
    error: str | None = msgspec.field(name="Error", default=None)


class Container:
    """Container of one project, brought up and taken down by `keeper`."""

    def __init__(self, keeper: EngineProcess, daemon: Daemon, project: str, folder: Path) -> None:
        self._keeper, self._daemon, self._folder = keeper, daemon, folder
        self._project, self._id = project, ""
        self._ending: str | None = None

    def exited(self) -> str | None:
        """None while it runs or is still being made, else one sentence."""
        if self._ending is None:
            try:
                state = self._state()
            except SetupError as error:
                if self._drained or self._keeper.exited() is not None:  # else Docker still sends its log
                    self._ending = str(error)
                return self._ending
            if state and state.status in ("exited", "dead", "removing"):
                self._ending = _sentence(state)
                self._await_log()
            elif (ended := self._keeper.exited()) is not None:
                self._ending = (
                    f"Compose did not bring it up ({ended})" if not state else f"its keeper died ({ended})"
                )
        return self._ending

    def stop(self) -> None:
        """Returns once nothing of it is left, or if it is to stay.

        Raises SetupError where Docker does not stop it.
        """
        self.exited()
        self._keeper.stop()
        self._ending = self._ending or "stopped"
        if not (self._folder / KEEP).exists():
            self._daemon.remove_project(self._project, grace_s=STOP_GRACE_S)  # its keeper may have failed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.stop()
        except SetupError:
            if kind is None:  # else what ended it says more, and the next start finds this container
                raise

    # Docker's own JSON, of which a few keys are used.
    def attributes(self) -> dict[str, Any]:
        """Attributes as `docker inspect` prints them."""
        attributes = self._daemon.inspect(self._find())
        if attributes is None:
            raise SetupError("its container is gone", where=self._project)
        return attributes

    def _state(self) -> _State | None:
        container = self._find()
        attributes = self._daemon.inspect(container) if container else None
        return msgspec.convert(attributes["State"], _State) if attributes else None

    def _find(self) -> str:
        """Finds its id; "" before Compose has made it."""
        if not self._id:
            self._id = next(iter(self._daemon.containers(f"{PROJECT}={self._project}")), "")
        return self._id

    @property
    def _drained(self) -> bool:
        return (self._folder / DRAINED).exists()

    def _await_log(self) -> None:
        deadline = time.monotonic() + _DRAIN_S
        while not self._drained and time.monotonic() < deadline:
            time.sleep(0.02)


def _sentence(state: _State) -> str:
    code = state.exit_code
    if state.oom_killed:
        return f"killed for lack of memory (exit code {code})"
    if state.error:
        return f"it could not be started: {state.error.rpartition(': unknown')[0] or state.error}"
    if code > 128 and code - 128 in set(signal.Signals):
        return f"killed by {signal.Signals(code - 128).name} (exit code {code})"
    return f"exit code {code}"


def container_facts(attributes: dict[str, Any]) -> tuple[list[str], ContainerFacts]:
    """The command, and what `docker inspect` says, as far as it bears on a measurement.

    The environment may hold a token.
    """
    config, host = attributes["Config"], attributes["HostConfig"]
    networks = attributes["NetworkSettings"]["Networks"].values()
    ports = [port.split("/")[0] for port in attributes["NetworkSettings"]["Ports"]]
    addresses = [network["IPAddress"] for network in networks if network["IPAddress"]]
    command = [*(config["Entrypoint"] or []), *(config["Cmd"] or [])]
    return command, {
        "id": attributes["Id"],
        "name": attributes["Name"].lstrip("/"),
        "memory_bytes": host["Memory"] or None,
        "cpuset": host["CpusetCpus"] or None,
        "nano_cpus": host["NanoCpus"] or None,
        "shm_bytes": host["ShmSize"],
        "ipc": host["IpcMode"],
        "runtime": host["Runtime"],
        "device_requests": host["DeviceRequests"],
        "direct_address": f"{addresses[0]}:{ports[0]}" if addresses and ports else None,
    }
