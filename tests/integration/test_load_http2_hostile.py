"""HTTP/2 servers that mean harm, all in one window of one worker: none holds up or harms another's requests.

`python -m tests.integration.test_load_http2_hostile [NAME…]` prints how the requests of each case end.
"""

import os
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness.load.bounds import answer_bytes
from harness.load.job import LoadJob, LoadResult, OpenLoop
from harness.load.run import run_load
from harness.records.layout import Outcome
from tests.integration.h2_cases import CASES, Case
from tests.integration.h2_frames import serving

_TIMEOUT_S = 3.0
_LATER_S = 10.0  # when the second request of each case is due: the first has ended
_LATE_S = 5.0  # past its deadline: frames of all floods together are seconds of work
_WINDOW_S = 60.0  # all of it, with 10 s in which the connections opened ahead wait for a greeting
_RSS_BYTES = 300 << 20
_PEM = str(Path(__file__).with_name("load_tls.pem"))


def attack(cases: Sequence[Case]) -> tuple[LoadResult, float]:
    """Two requests to the server of each case, and the seconds that it took."""
    count = len(cases)
    begun, before = time.monotonic(), os.environ.get("SSL_CERT_FILE")
    os.environ["SSL_CERT_FILE"] = _PEM
    try:
        with serving([case.script for case in cases], _PEM) as urls:
            first, *others = [f"{url}/v1/chat/completions" for url in urls]
            job = LoadJob(
                url=first,
                other_urls=tuple(others),
                headers={"content-type": "application/json"},
                bodies=[*(case.body for case in cases), *[b"{}"] * count],
                schedule=OpenLoop(np.repeat([0, int(_LATER_S * 1e9)], count)),
                replicas=np.tile(np.arange(count, dtype=np.int16), 2),
                request_timeout_s=_TIMEOUT_S,
                drain_timeout_s=2 * _TIMEOUT_S,
                answer_bytes=answer_bytes(16),
                workers=1,
                http2=True,
            )
            result = run_load(job)
    finally:
        os.environ.pop("SSL_CERT_FILE")
        if before is not None:
            os.environ["SSL_CERT_FILE"] = before
    return result, time.monotonic() - begun


@cache
def attacked() -> tuple[LoadResult, float]:
    return attack(CASES)


@pytest.mark.parametrize("place", range(len(CASES)), ids=[case.name for case in CASES])
def test_each_request_ends_once_and_as_it_should(place: int) -> None:
    case, records = CASES[place], attacked()[0].records
    own = np.flatnonzero(records.requests["replica"] == place)
    assert [int(seq) for seq in records.requests["seq"][own]] == [place, len(CASES) + place]
    rows = records.requests[own]
    first, later = (Outcome(outcome) for outcome in rows["outcome"])
    assert first in (case.outcome, case.or_else)
    assert later is case.later
    assert case.error in records.errors[own[0]]
    assert bool(records.errors[own[0]]) is (case.outcome is not Outcome.OK)
    assert records.errors[own[0]].isprintable()
    took_s = (rows["end_ns"] - rows["intended_ns"]) / 1e9
    assert (took_s < _TIMEOUT_S + _LATE_S).all()


def test_the_worker_outlives_them_all_in_bounded_time_and_memory() -> None:
    result, seconds = attacked()
    assert len(result.records.requests) == 2 * len(CASES)
    assert result.client.lost_workers == 0
    assert result.client.peak_rss_bytes < _RSS_BYTES
    assert result.client.open_descriptors is not None
    assert result.client.open_descriptors < 64 + 2 * len(CASES)
    assert seconds < _WINDOW_S


def _print(names: Sequence[str]) -> bool:
    cases = [case for case in CASES if case.name in names] if names else CASES
    result, seconds = attack(cases)
    rows, held = result.records.requests, True
    for place, case in enumerate(cases):
        own = np.flatnonzero(rows["replica"] == place)
        ends = [Outcome(rows["outcome"][row]) for row in own]
        as_it_should = ends in ([case.outcome, case.later], [case.or_else, case.later])
        held = held and as_it_should
        names_of_ends = ", ".join(end.name for end in ends) or "no record"
        error = " | ".join(filter(None, (result.records.errors[row] for row in own)))
        print(f"{'held' if as_it_should else 'FAILED':7} {case.name:45} {names_of_ends:28} {error}")
    client, sent = result.client, rows["sent_ns"] - rows["intended_ns"]
    print(
        f"{len(cases)} cases, {seconds:.1f} s, {client.peak_rss_bytes >> 20} MiB, sent up to "
        f"{sent.max(initial=0) / 1e9:.1f} s late, {client.lost_workers} workers lost"
    )
    return held and not client.lost_workers


if __name__ == "__main__":
    sys.exit(0 if _print(sys.argv[1:]) else 1)
