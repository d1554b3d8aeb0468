"""The server as a child process, for tests and for `bench doctor`."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from harness.errors import SetupError
from harness.host.helper_process import ended_within, import_path, without_credentials
from harness.mockserver.server import API_KEY_VARIABLE

STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class MockServer:
    url: str
    _process: subprocess.Popen[str]

    @property
    def pid(self) -> int:
        return self._process.pid

    # JSON of another process, for tests and `bench doctor`.
    def truth(self) -> dict[str, Any]:
        """`statistics` and `records`; fetch it when the load is over, for it holds the server up."""
        return self._fetch("GET", "/truth")

    def reset(self) -> None:
        """Forget the records and count requests from 0 again; the prefix cache stays."""
        self._fetch("POST", "/truth/reset")

    def wait(self, timeout_s: float) -> int:
        """The exit code of a server that is to end by itself; subprocess.TimeoutExpired when it does not."""
        return self._process.wait(timeout_s)

    def stop(self) -> int:
        """The exit code; harmless when it has stopped."""
        self._process.terminate()
        return ended_within(self._process, STOP_S)

    def _fetch(self, method: str, path: str) -> dict[str, Any]:
        request = Request(self.url + path, method=method)
        with build_opener(ProxyHandler({})).open(request, timeout=60) as response:
            return dict(json.load(response))


@contextmanager
def running(**options: Any) -> Iterator[MockServer]:
    """A server on a free port, bound before this yields and stopped whatever happens.

    Options are the flags of `bench truth`: `gap_ms=5, fault=["reset:at=3"], precise=True`.
    SetupError carries what the server printed if it does not start.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.mockserver", "--until-stdin-closes", *_flags(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**without_credentials(os.environ, keep=API_KEY_VARIABLE), "PYTHONPATH": import_path()},
        )
        with process:
            assert process.stdout is not None
            try:
                url = process.stdout.readline().strip()
                if not url:
                    process.wait(STOP_S)
                    errors.seek(0)
                    raise SetupError(errors.read().strip(), where="bench truth")
                yield MockServer(url, process)
            finally:
                process.terminate()
                ended_within(process, STOP_S)


def _flags(options: dict[str, object]) -> Iterator[str]:
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for entry in value if isinstance(value, (list, tuple)) else [value]:
            if entry is True:
                yield flag
            elif entry is not None and entry is not False:
                yield f"{flag}={entry}"
