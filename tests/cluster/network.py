"""Two machines on one: network namespaces joined by a cable, each node with a monotonic clock of its own.

Needs root. Everything is stopped by its pid, and the namespaces are removed, whatever happens.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.cluster.cable import Cable

BIN = Path(sys.executable).parent
HEAD, OTHER = "10.201.7.1", "10.201.7.2"
GCS_PORT, CLIENT_PORT, TRUTH_PORT = 6399, 10001, 8399
TTFT_MS, GAP_MS = 50, 10  # known to the server: what a client must find
AHEAD_S, BEHIND_S = 3000, -7  # of the nodes' clocks against that of the machine
CLOCKS = {HEAD: AHEAD_S, OTHER: BEHIND_S}


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, timeout=10, capture_output=True)


class Machines:
    """Two namespaces and a cable. `HEAD` also has the server and bench, on the machine's own clock.

    `rough`: how bad the cable is; None: as good as the kernel's own.
    """

    def __init__(self, rough=None):
        self.folder = Path(tempfile.mkdtemp(prefix="bc", dir="/tmp"))  # short: Ray puts sockets below it
        mark = self.folder.name
        self._spaces = {HEAD: f"{mark}a", OTHER: f"{mark}b"}
        self._ends = {HEAD: f"{mark}va", OTHER: f"{mark}vb"}
        self._rough, self.cable = rough, None
        self._started = []
        token = self.folder / "token"
        token.write_text(secrets.token_hex(32))
        self.env = os.environ | {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_TMPDIR": str(self.folder / "ray"),
            "RAY_USAGE_STATS_ENABLED": "0",
            "BENCH_CACHE": str(self.folder / "cache"),
        }

    @property
    def _of_bench(self):
        """A person's shell has no mode of authentication: bench finds the token itself."""
        return {name: value for name, value in self.env.items() if name != "RAY_AUTH_MODE"}

    def join(self):
        for space in self._spaces.values():
            ip("netns", "add", space)
        if self._rough is None:
            ip("link", "add", self._ends[HEAD], "type", "veth", "peer", "name", self._ends[OTHER])
        else:
            self.cable = Cable(self._ends.values(), self._rough)
        for address, space in self._spaces.items():
            end = self._ends[address]
            ip("link", "set", end, "netns", space)
            ip("-n", space, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", space, "link", "set", end, "up")

    def cable_of(self, address, state):
        """Takes the network of a machine away ("down") or gives it back ("up")."""
        ip("-n", self._spaces[address], "link", "set", self._ends[address], state)

    def inside(self, address, *command, clock=0):
        time_space = ["unshare", "-T", "--monotonic", str(clock), "--fork", "--kill-child"] if clock else []
        return ["ip", "netns", "exec", self._spaces[address], *time_space, *map(str, command)]

    def start(self, name, address, *command, clock=0):
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                self.inside(address, *command, clock=clock),
                env=self.env,
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._started.append(process)
        return psutil.Process(process.pid)

    def node(self, address):
        """A node of the cluster with one CPU, on its own clock."""
        first = ["--head", f"--port={GCS_PORT}", f"--ray-client-server-port={CLIENT_PORT}"]
        place = first if address == HEAD else [f"--address={HEAD}:{GCS_PORT}"]
        command = [BIN / "ray", "start", *place, f"--node-ip-address={address}", "--num-cpus=1", "--block"]
        small = ["--object-store-memory=100000000", "--disable-usage-stats", "--include-dashboard=false"]
        head = small if address == HEAD else small[:1]
        name = f"node-{address}"
        started = self.start(name, address, *command, *head, clock=CLOCKS[address])
        self.wait_until_said(name, "Ray runtime started")
        return started

    def run(self, *command, timeout=120, **env):
        """bench, on the head's machine."""
        return subprocess.run(
            self.inside(HEAD, BIN / "bench", *command),
            env=self._of_bench | env,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=self.folder,
        )

    def begin(self, *command):
        """bench, on the head's machine; what it says goes to bench.log."""
        self.start("bench", HEAD, BIN / "bench", *command)
        return self._started[-1]

    def ledger(self, reset=False, address=HEAD, port=TRUTH_PORT):
        """Of the scripted server there."""
        method = "POST" if reset else "GET"
        code = (
            "import sys,urllib.request as u;"
            f"print(u.urlopen(u.Request(sys.argv[1], method='{method}'), timeout=30).read().decode())"
        )
        url = f"http://{address}:{port}/truth" + ("/reset" if reset else "")
        done = subprocess.run(
            self.inside(HEAD, sys.executable, "-c", code, url), capture_output=True, text=True, timeout=60
        )
        return json.loads(done.stdout)

    def wait_for(self, port, address=HEAD):
        code = f"import socket; socket.create_connection(('{address}', {port}), 1)"
        asks = self.inside(HEAD, sys.executable, "-c", code)
        self._until(lambda: subprocess.run(asks, capture_output=True, timeout=10).returncode == 0)

    def wait_until_said(self, name, words):
        self._until(lambda: words in (self.folder / f"{name}.log").read_text())

    def _until(self, true, seconds=60):
        give_up = time.monotonic() + seconds
        while not true():
            if time.monotonic() > give_up:
                raise TimeoutError(self.logs())
            time.sleep(0.3)

    def logs(self):
        return "\n".join(f"== {path.name}\n{path.read_text()[-2000:]}" for path in self.folder.glob("*.log"))

    def stop(self, process):
        """A node: `ray start --block` ends what it has started; what is left is killed."""
        family = [*process.children(recursive=True), process]
        blocks = [one for one in family if _is_ray_start(one)] or [process]
        for one in blocks:
            with suppress(psutil.NoSuchProcess):
                one.terminate()
        for one in psutil.wait_procs(family, 20)[1]:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        return family

    def close(self):
        family = []
        for process in reversed(self._started):
            with suppress(psutil.NoSuchProcess):
                family += self.stop(psutil.Process(process.pid))
            process.wait(10)
        if self.cable is not None:
            self.cable.close()
        for space in self._spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True, timeout=10)
        shutil.rmtree(self.folder, ignore_errors=True)
        return [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def _is_ray_start(process):
    with suppress(psutil.NoSuchProcess):
        words = process.cmdline()
        return "start" in words and "unshare" not in words[0] and any(word.endswith("/ray") for word in words)
    return False
