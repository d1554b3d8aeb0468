"""For what happens in another process, sooner or later."""

import time


def until(condition, what, seconds=60, every_s=0.05):
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"never: {what}"
        time.sleep(every_s)
