"""A headless Chromium driven over its debugging pipe: no driver program, no port, no extra package."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

ANSWER_S = 30.0  # for one command; a healthy browser needs milliseconds

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--hide-scrollbars", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-pipe",
)  # fmt: skip

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


# For `evaluate`: how far down the parts reach that a selector finds.
BOTTOM = (
    "(selector => Math.max(...[...document.querySelectorAll(selector)]"
    ".map(e => e.getBoundingClientRect().bottom)))"
)
OPEN_ALL = "document.querySelectorAll('details').forEach(part => part.open = true)"


class Page:
    """One tab of one browser. `events` holds everything the tab said, in order."""

    def __init__(self) -> None:
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        assert program, "these tests need Chromium: apt-get install chromium"
        self.events: list[dict[str, Any]] = []
        self._profile = tempfile.mkdtemp(prefix="report-browser-")
        down, self._write = os.pipe()
        self._read, up = os.pipe()
        # The browser wants the pipe as descriptors 3 and 4; a shell can say so after the fork.
        command = f'exec "$@" 3<&{down} 4>&{up}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command, "chromium", program, *FLAGS, f"--user-data-dir={self._profile}"],
            pass_fds=(down, up),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(down)
        os.close(up)
        self._buffer, self._last, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._write)
        os.close(self._read)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(ANSWER_S)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def open(self, place: Path | str, width: int | None = None, **look: bool) -> None:
        """Returns when the page and everything it asked for has been loaded. No width: as it was."""
        if width is not None:
            self.look(width, **look)
        self.events.clear()
        self.call("Page.navigate", url=place if isinstance(place, str) else place.as_uri())
        deadline = time.monotonic() + ANSWER_S
        while not self.said("Page.loadEventFired"):
            self.events.append(self._receive(deadline))

    def said(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") == method]

    def requested(self) -> list[str]:
        return [event["request"]["url"] for event in self.said("Network.requestWillBeSent")]

    def evaluate(self, expression: str) -> Any:
        """Its value, or what it promises."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def look(self, width: int, dark: bool = False, script: bool = True) -> None:
        """Takes effect on the next `open`."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def picture(self) -> bytes:
        """What is visible, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def press_tab(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the browser did not answer within {ANSWER_S:g} s"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
