"""The choice among several servers of one model: by the schedule, or by what is in flight."""

import numpy as np
from numpy.typing import NDArray

from harness.load.job import LoadJob, Sessions
from harness.load.sharding import units_of


def round_robin(count: int, sessions: Sessions | None, replicas: int) -> NDArray[np.int16]:
    """The replica of each request, dealt in turn; all turns of a session go to one."""
    return (units_of(count, sessions) % replicas).astype(np.int16)


class Dealt:
    """Follows the job's own assignment."""

    def __init__(self, replicas: list[int]) -> None:
        self.choose = replicas.__getitem__

    def ended(self, replica: int) -> None: ...


class LeastOutstanding:
    """Chooses the replica with the fewest requests of this worker in flight, in turn among equals.

    Later turns of a session go where its first went: its KV cache is there.
    """

    def __init__(self, replicas: int, sessions: Sessions | None) -> None:
        self._in_flight = [0] * replicas
        self._order = range(replicas)
        self._last = -1
        self._session = None if sessions is None else sessions.session.tolist()
        self._replica_of: dict[int, int] = {}  # by session

    def choose(self, index: int) -> int:
        """The replica for the request at `index`, now."""
        if self._session is None:
            replica = self._fewest()
        else:
            session = self._session[index]
            if session not in self._replica_of:
                self._replica_of[session] = self._fewest()
            replica = self._replica_of[session]
        self._in_flight[replica] += 1
        return replica

    def ended(self, replica: int) -> None:
        """Is called when a request to that replica has ended."""
        self._in_flight[replica] -= 1

    def _fewest(self) -> int:
        count, after = len(self._in_flight), self._last + 1
        self._last = min(
            self._order, key=lambda candidate: (self._in_flight[candidate], (candidate - after) % count)
        )
        return self._last


Balancer = Dealt | LeastOutstanding  # of one worker's share


def balancer_of(job: LoadJob) -> Balancer:
    if job.replicas is not None:
        return Dealt(job.replicas.tolist())
    if job.other_urls:
        return LeastOutstanding(len(job.urls), job.sessions)
    return Dealt([0] * len(job.bodies))
