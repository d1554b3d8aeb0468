"""A network cable in user space, between two TAP devices: frames are late, uneven and lost as asked.

What `tc netem` does, for kernels that have none.
"""

import fcntl
import heapq
import os
import random
import select
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_FRAME = 65536


@dataclass(frozen=True)
class Rough:
    """Of each frame, on each of the two ways."""

    delay_ms: float
    jitter_ms: float  # more or less, evenly
    loss: float


class Cable:
    """Its ends are made here and go on to work when they are moved into other network namespaces."""

    def __init__(self, ends, rough):
        self._files = [_tap(name) for name in ends]
        self._rough, self._random = rough, random.Random(7)
        self.carried = self.lost = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def close(self):
        self._ended.set()
        self._thread.join()
        for file in self._files:
            os.close(file)

    def _carry(self):
        waiting, last, number = [], dict.fromkeys(self._files, 0.0), 0
        while not self._ended.is_set():
            pause = max(waiting[0][0] - time.monotonic(), 0.0) if waiting else 0.1
            for file in select.select(self._files, [], [], min(pause, 0.1))[0]:
                frame = os.read(file, _FRAME)
                if self._random.random() < self._rough.loss:
                    self.lost += 1
                    continue
                other = self._files[1 - self._files.index(file)]
                last[other] = max(last[other], time.monotonic() + self._delay_s())  # a queue keeps its order
                heapq.heappush(waiting, (last[other], number, other, frame))
                number += 1
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, other, frame = heapq.heappop(waiting)
                with suppress(OSError):  # that end is down
                    os.write(other, frame)
                    self.carried += 1

    def _delay_s(self):
        rough = self._rough
        return (rough.delay_ms + self._random.uniform(-rough.jitter_ms, rough.jitter_ms)) / 1e3


def _tap(name):
    file = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH14x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    os.set_blocking(file, False)
    return file
