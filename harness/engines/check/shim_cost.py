"""The time that bench's shim adds to a token on this machine: seen by a client, against `bench truth`."""

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from harness.client.client import Client
from harness.engines.start.ports import free_port
from harness.engines.start.process import EngineProcess
from harness.errors import SetupError
from harness.host.system_files import text_of

SERVER = Path(__file__).parents[1] / "shims" / "library_server.py"
_HOST = "127.0.0.1"
_GAP_MS = 1  # library_scripted.STEP_NS
_TOKENS, _STREAMS = 120, 5
_START_S = 20.0


@cache
def shim_us_per_token() -> float:
    """Two servers with a token each millisecond, one of them the shim: the difference of their gaps.

    Once per process of bench. Raises SetupError.
    """
    from harness.mockserver import running  # only a library behind the shim needs it

    with running(ttft_ms=_GAP_MS, gap_ms=_GAP_MS, precise=True) as truth:
        known = _gap_us(truth.url)
    with TemporaryDirectory(prefix="bench-shim-") as folder:
        log, port = Path(folder) / "log", free_port(_HOST)
        command = (sys.executable, str(SERVER), "scripted", "--port", str(port))
        with EngineProcess(command, {}, log) as shim:
            url = f"http://{_HOST}:{port}"
            _await(url, shim, log)
            return _gap_us(url) - known


def _await(url: str, shim: EngineProcess, log: Path) -> None:
    ends = time.monotonic() + _START_S
    with closing(Client(url)) as client:
        while True:
            try:
                client.ask("GET", "/health")
                return
            except SetupError:
                if shim.exited() or time.monotonic() > ends:
                    raise SetupError(f"did not start: {text_of(log)[-300:]}", where="bench's shim") from None
            time.sleep(0.02)


def _gap_us(url: str) -> float:
    """The median over the tokens of some streams: a busy machine makes a few of them late."""
    body = {
        "model": "simulated",
        "messages": [{"role": "user", "content": "?"}],
        "max_tokens": _TOKENS,
        "ignore_eos": True,
        "stream": True,
    }
    with closing(Client(url)) as client:
        return median(gap for _ in range(_STREAMS) for gap in _gaps_us(client, body))


def _gaps_us(client: Client, body: dict[str, object]) -> list[float]:
    answer = client.ask("POST", "/v1/chat/completions", json=body)
    ends = list(_ends(answer.body))
    if len(ends) != _TOKENS:
        raise SetupError(f"{len(ends)} of {_TOKENS} tokens came", where=answer.url)
    came = [next(at for at, length in answer.pieces if length >= end) for end in ends]
    return [(later - earlier) * 1e6 for earlier, later in pairwise(came)]


def _ends(body: bytes) -> Iterator[int]:
    """Yields where each event with text ends."""
    at = 0
    for block in body.split(b"\n\n"):
        at += len(block) + 2
        if b'"content":"' in block and b'"content":""' not in block:
            yield at
