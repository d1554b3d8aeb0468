"""The head of a cluster on this machine: started by `bench cluster up`, stopped by its pid."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from harness.cluster.options import OBJECT_STORE_BYTES
from harness.errors import SetupError
from harness.host import paths
from harness.host.helper_process import without_credentials
from harness.host.system_files import text_of

_UP_S = 60.0
_DOWN_S = 20.0
_STARTED = "Ray runtime started"  # as `ray start` says once the node is one; its port is open long before
_AUTHENTICATION = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")


@dataclass(frozen=True, slots=True)
class Head:
    host: str
    port: int
    pid: int
    started: float  # of that process, so that no other one with its number is stopped

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


def up(host: str, port: int, cpus: int) -> Head:
    """Raises SetupError if one runs already, or does not come up."""
    if head := running():
        raise SetupError("is up already", where=head.address, hint="`bench cluster down` stops it")
    with suppress(OSError):
        socket.create_connection((host, port), 1.0).close()
        raise SetupError(f"port {port} is taken", where=host, hint="another --port, or stop what uses it")
    state = _state()
    paths.made(state.parent)
    token = ensure_token()
    log = state.with_suffix(".log")
    command = [
        *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"),
        *(f"--node-ip-address={host}", f"--port={port}", f"--num-cpus={cpus}"),
        *(f"--object-store-memory={OBJECT_STORE_BYTES}", "--include-dashboard=false"),
        "--disable-usage-stats",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(token),
            start_new_session=True,  # it outlives this command
        )
    head = Head(host, port, process.pid, psutil.Process(process.pid).create_time())
    state.write_text(json.dumps(asdict(head)), encoding="utf-8")
    _wait(process, head, log)
    return head


def down() -> Head | None:
    """Stops the head with all of its processes, and returns it; None if none was up."""
    head = running()
    if head is not None:
        with suppress(psutil.NoSuchProcess):  # it ends at the same time
            _stop(psutil.Process(head.pid))
    _state().unlink(missing_ok=True)
    return head


def _stop(start: psutil.Process) -> None:
    family = [*start.children(recursive=True), start]
    start.terminate()  # `ray start --block` ends what it has started
    for process in psutil.wait_procs(family, _DOWN_S)[1]:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def running() -> Head | None:
    try:
        head = Head(**json.loads(_state().read_text(encoding="utf-8")))
        process = psutil.Process(head.pid)
        same = process.create_time() == head.started and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, TypeError, psutil.NoSuchProcess):
        return None
    return head if same else None


def authentication(address: str) -> dict[str, str]:
    """Variables by which this machine's node of the cluster authenticates, or does not.

    Who joins in another way is refused, or its actors die. Empty where the node says nothing, or is of
    somebody else. With Ray Client this machine is no node: a token that is here is sent.
    """
    if address.startswith("ray://"):
        return {"RAY_AUTH_MODE": "token"} if _token_path().exists() else {}
    port = address.rpartition(":")[2]
    for process in psutil.process_iter(["name", "cmdline"]):
        name, words = process.info["name"], process.info["cmdline"] or ()
        if name == "raylet" and (address == "auto" or any(word.endswith(f":{port}") for word in words)):
            with suppress(psutil.Error):
                found = process.environ()
                return {variable: found[variable] for variable in _AUTHENTICATION if variable in found}
    return {}


def ensure_token() -> Path:
    """The file with the token that every process that joins must have."""
    token = _token_path()
    if not token.exists():
        paths.made(token.parent)
        partial = token.with_name(f"{token.name}.part")
        partial.touch(mode=0o600)
        partial.write_text(secrets.token_hex(32), encoding="ascii")
        partial.replace(token)
    return token


def _token_path() -> Path:
    """The file in which Ray looks for its token."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()


def _environment(token: Path) -> dict[str, str]:
    kept = without_credentials(os.environ)
    return {**kept, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}


def _state() -> Path:
    return paths.cache_dir() / "cluster.json"


def _wait(process: "subprocess.Popen[bytes]", head: Head, log: Path) -> None:
    give_up = time.monotonic() + _UP_S
    while time.monotonic() < give_up and process.poll() is None:
        if _STARTED in text_of(log):
            return
        time.sleep(0.2)
    down()
    tail = "\n".join(text_of(log).splitlines()[-15:])
    raise SetupError("the cluster did not come up", where=head.address, below=tail)
