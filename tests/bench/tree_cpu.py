"""CPU seconds of a process and all its descendants, over time. Linux."""

import os
import threading
import time
from pathlib import Path

import numpy as np

_EVERY_S = 0.25
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class TreeCpu(threading.Thread):
    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root, self._ended = root, threading.Event()
        self._by_process: dict[int, float] = {}  # those that are gone keep what they had
        self._at_ns, self._cpu_s = [time.monotonic_ns()], [0.0]

    def run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._sample()

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def between(self, start_ns: int, end_ns: int) -> float:
        """Times of the monotonic clock."""
        start_s, end_s = np.interp([start_ns, end_ns], self._at_ns, self._cpu_s)
        return float(end_s - start_s)

    def _sample(self) -> None:
        found = [self._root]
        for process in found:
            try:
                self._by_process[process] = _cpu_s(process)
                for task in Path(f"/proc/{process}/task").iterdir():
                    found += map(int, (task / "children").read_text().split())
            except OSError:  # it just ended
                continue
        self._at_ns.append(time.monotonic_ns())
        self._cpu_s.append(sum(self._by_process.values()))


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
