"""The loads that a machine is tried with, and their requests."""

import json
from typing import Literal

import numpy as np

from harness.apis import APIS, ApiName
from harness.host.access import Access
from harness.load.job import ClosedLoop, LoadJob, OpenLoop
from harness.model import TriedLoad
from harness.workload.arrivals import arrivals

SEED = 1
TTFT_MS = 50.0

# The streams begin one after another in this time: in step they would ask a server that writes one event
# at a time for all of them at once.
RAMP_NS = 250_000_000

# Requests have so many prompt lengths in turn. By its length the server's ledger knows a request that
# was sent at the same moment as another one and overtook it.
PROMPT_LENGTHS = 64

Kind = Literal["concurrency", "rate"]


def whole(api: str) -> bool:
    """Whether answers are no streams."""
    return APIS[api].gives != "text"


class Load(TriedLoad, frozen=True):
    @property
    def connections(self) -> int:
        """Most connections at a time. An open loop opens those of a busy second ahead."""
        return self.value if self.kind == "concurrency" else min(self.requests, 2 * self.value)

    def ttft_ms(self, api: ApiName) -> float:
        """An answer that comes whole is due when a stream would end."""
        return TTFT_MS + (self.gap_ms * (self.tokens - 1) if whole(api) else 0)

    def job(self, url: str, api: ApiName = "chat") -> LoadJob:
        return LoadJob(
            url=url + APIS[api].path,
            api=api,
            access=Access(),
            bodies=[self._body(1 + seq % PROMPT_LENGTHS, api) for seq in range(self.requests)],
            schedule=self._schedule(),
            request_timeout_s=20.0,
            drain_timeout_s=20.0,
            workers=1,  # what one can do is what a run shares a load out by
        )

    def _schedule(self) -> ClosedLoop | OpenLoop:
        if self.kind == "rate":
            return OpenLoop(
                arrivals("poisson", self.value, self.requests, SEED), max_in_flight=self.connections
            )
        waits_ns = np.zeros(self.requests, np.int64)
        waits_ns[: self.value] = np.linspace(0, RAMP_NS, self.value, endpoint=False)
        return ClosedLoop(self.value, waits_ns)

    def _body(self, prompt_length: int, api: ApiName) -> bytes:
        messages = [{"role": "user", "content": "x" * prompt_length}]
        if APIS[api].gives == "scores":
            messages.append({"role": "user", "content": "x"})  # the document, to a query
        body = {"model": "simulated", **APIS[api].body(messages, self.tokens)}
        if not whole(api):
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return json.dumps(body).encode()


# Lightest first.
QUICK = (
    Load("concurrency", 8, gap_ms=10, tokens=8, requests=8 * 40),
    Load("concurrency", 256, gap_ms=20, tokens=64, requests=256 * 2),
    Load("rate", 200, gap_ms=10, tokens=8, requests=400),
)
LOADS = (
    QUICK[0],
    Load("concurrency", 64, gap_ms=20, tokens=16, requests=64 * 8),
    QUICK[1],
    Load("concurrency", 512, gap_ms=50, tokens=32, requests=512 * 2),
    Load("concurrency", 1024, gap_ms=50, tokens=32, requests=1024 * 2),
    Load("rate", 200, gap_ms=10, tokens=8, requests=800),
    Load("rate", 500, gap_ms=10, tokens=8, requests=2000),
)
