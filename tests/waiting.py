"""Waits for what happens in another process, and limits of what must end."""

import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue


def until(condition, what, seconds=60, every_s=0.05):
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"never: {what}"
        time.sleep(every_s)


def alive(pid):
    """Whether a process runs. One that has ended and that nobody waited for (a zombie) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # it may end between open and read
        return False


def command_line(pid):
    """The command line of a process: bytes, each argument ended by a zero byte; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def in_time(call, seconds=30):
    """What `call` returns or raises. The limit is far above what it takes where it does not hang."""
    outcome = SimpleQueue()

    def run():
        try:
            outcome.put((call(), None))
        except BaseException as error:
            outcome.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = outcome.get(timeout=seconds)
    except Empty:
        raise AssertionError(f"goes on after {seconds} s") from None
    if error is not None:
        raise error
    return result
