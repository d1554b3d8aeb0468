"""The kernel's receive timestamps and the map from their clock to CLOCK_MONOTONIC.

The kernel stamps a segment when it arrives, so reading late does not make the time wrong. One read
gives one stamp, that of its last segment: what arrived between two reads shares the later stamp.
"""

import socket
import struct
import sys
import time
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.host.clocks import tightest

SO_TIMESTAMPNS = 35  # asm-generic/socket.h; the socket module does not name it
CONTROL_BYTES = socket.CMSG_SPACE(16) if hasattr(socket, "CMSG_SPACE") else 0  # one struct timespec
_TIMESPEC = struct.Struct("=qq")
_SECOND = 1_000_000_000
_TRIES = 16
_SLEW = 500e-6  # no clock is slewed faster; Linux slews both clocks alike
TOLERANCE_NS = 100_000  # stamps may be out of bounds by so much without being counted: softirqs run late
_LOOKED_LATE, _WOKEN_LATE = 0.5, 0.25  # of a gap

# One look at the sockets, on CLOCK_MONOTONIC: when those it found readable had last been seen empty, the time
# of a read whose stamp is earlier than that, and when all of them had been read.
Look = list[int]


def pack_realtime() -> bytes:
    """The time now in the form of a kernel stamp, for a read that came without one."""
    return _TIMESPEC.pack(*divmod(time.clock_gettime_ns(time.CLOCK_REALTIME), _SECOND))


def kernel_stamps_work() -> bool:
    """Whether a byte sent over loopback comes with a stamp. A sandbox in place of a kernel may refuse."""
    try:
        return sys.platform == "linux" and _stamped_over_loopback()
    except OSError:
        return False


def _stamped_over_loopback() -> bool:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        peer, _ = server.accept()
        with peer:
            client.settimeout(1.0)
            client.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            for _ in range(50):  # the kernel turns stamping on from a work queue, a little later
                peer.sendall(b"x")
                if client.recvmsg(1, CONTROL_BYTES)[1]:
                    return True
                time.sleep(0.001)
    return False


def bounded(times: NDArray[np.int64], looks: Sequence[Look], sent: int) -> tuple[NDArray[np.int64], int]:
    """Arrivals, no earlier than the send and the last look that saw the socket empty, no later than the read.

    The second value counts those out of these bounds by more than TOLERANCE_NS: after a step of
    CLOCK_REALTIME, or in segments that the kernel held back until a lost one before them came.
    """
    empty, floor, read = _columns(looks)
    early = times < np.maximum(empty, sent)
    if not (early | (times > read)).any():
        return times, 0
    kept = np.where(early, np.maximum(floor, sent), np.minimum(times, read))
    return kept, int(np.count_nonzero(np.abs(kept - times) > TOLERANCE_NS))


class Shared(NamedTuple):
    """Counts of events with generated text that came in one read with the one before."""

    events: int
    late: int  # of these: in a read that a late look may explain; 0 where the kernel stamps no reads


NONE_SHARED = Shared(0, 0)


def read_late(times: NDArray[np.int64], looks: Sequence[Look], gap_ns: float) -> NDArray[np.bool_]:
    """Marks reads that may hold events of a stream with such gaps for no reason but a late look.

    `times`: arrivals within the bounds of their looks. What a look found came since the sockets had last been
    seen empty. A look that was waiting wakes at the first arrival: how late it did is seen from the last one,
    which came at any time of the gap before the read.
    """
    empty, floor, read = _columns(looks)
    waited = floor > empty
    since = np.where(waited, read, times) - np.where(waited, times, empty)
    mask: NDArray[np.bool_] = since > np.where(waited, _WOKEN_LATE, _LOOKED_LATE) * gap_ns
    return mask


def _columns(looks: Sequence[Look]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(looks), np.int64, 3 * len(looks)).reshape(-1, 3).T


def bound(time_ns: int, look: Look, sent: int, now: int) -> int:
    """One arrival, as `bounded` does it, of a look that is not over."""
    empty, floor, _ = look
    return max(floor, sent) if time_ns < max(empty, sent) else min(time_ns, now)


class StampClock:
    """Maps CLOCK_REALTIME stamps to CLOCK_MONOTONIC nanoseconds.

    The offset is sampled again over the window, since NTP slews and steps the real-time clock.
    """

    def __init__(self) -> None:
        self.step_ns = 0  # the largest between two samples, beyond what slewing and reading can explain
        self._real, self._offset = array("q"), array("q")  # lists took five times the memory, for hours
        self._width = self._half_width = 0

    def sample(self) -> None:
        """Keeps the reading with the tightest bracket of several."""
        now = tightest(time.time_ns, _TRIES)
        self.add_sample(real=now.value_ns, offset=now.value_ns - now.at_ns, width=now.width_ns)

    def add_sample(self, *, real: int, offset: int, width: int) -> None:
        if self._real:
            elapsed = real - offset - (self._real[-1] - self._offset[-1])
            slack = _SLEW * abs(elapsed) + (width + self._width) / 2
            self.step_ns = max(self.step_ns, int(abs(offset - self._offset[-1]) - slack))
        self._width = width
        if self._real and real <= self._real[-1]:  # stepped back: what came before maps with the old offset
            real = self._real[-1] + 1
        self._real.append(real)
        self._offset.append(offset)
        self._half_width = max(self._half_width, (width + 1) // 2)

    def uncertainty_ns(self) -> int:
        """Half the widest bracket plus the largest change of the offset between two samples."""
        jumps = np.abs(np.diff(np.asarray(self._offset, np.int64)))
        return self._half_width + int(jumps.max(initial=0))

    def to_monotonic(self, stamp: bytes) -> int:
        seconds, nanoseconds = _TIMESPEC.unpack(stamp)
        return int(seconds * _SECOND + nanoseconds - self._offset[-1])

    def to_monotonic_many(self, stamps: Sequence[bytes]) -> NDArray[np.int64]:
        pairs = np.frombuffer(b"".join(stamps), np.int64).reshape(-1, 2)
        real = pairs[:, 0] * _SECOND + pairs[:, 1]
        first = max(0, bisect_right(self._real, int(real[0])) - 1)  # older samples do not matter
        if first == len(self._real) - 1:  # as of most short answers
            return real - self._offset[first]
        base_real, base_offset = self._real[first], self._offset[first]  # 1.7e18 is too much for a float
        knots = np.asarray(self._real[first:], np.int64) - base_real
        offsets = np.asarray(self._offset[first:], np.int64) - base_offset
        shift = np.interp(real - base_real, knots, offsets).astype(np.int64)
        return np.asarray(real - (base_offset + shift), np.int64)
