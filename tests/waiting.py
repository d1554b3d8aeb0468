"""Waits for what happens in another process, and limits of what must end."""

import threading
import time
from queue import Empty, SimpleQueue


def until(condition, what, seconds=60, every_s=0.05):
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"never: {what}"
        time.sleep(every_s)


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
