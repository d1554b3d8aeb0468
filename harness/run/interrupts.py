"""Handlers of Ctrl-C, SIGTERM and SIGHUP: in a window they ask to stop, elsewhere they raise."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from harness.host.helper_process import asked_to_stop

_AGAIN_S = 0.05  # until a signal is sent again that came in a destructor


class Interrupts:
    """Installs the handlers for a whole run. A second signal inside a window raises KeyboardInterrupt too."""

    def __init__(self) -> None:
        self._window: threading.Event | None = None
        self._previous: dict[int, signal.Handlers | None] = {}

    def __enter__(self) -> "Interrupts":
        for number in asked_to_stop():
            self._previous[number] = signal.signal(number, self._handle)  # type: ignore[assignment]  # opaque to us
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def window(self) -> Iterator[threading.Event]:
        """A time in which a load runs or a cell is stored. The first signal inside it sets the event."""
        self._window = threading.Event()
        try:
            yield self._window
        finally:
            self._window = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._window is not None and not self._window.is_set():
            self._window.set()
        elif _in_destructor(frame):
            timer = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
            timer.daemon = True
            timer.start()
        else:
            raise KeyboardInterrupt


def _in_destructor(frame: FrameType | None) -> bool:
    """Whether Python would print what is raised here, and go on."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
