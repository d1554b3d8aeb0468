"""HTTP/2 servers that mean harm, many in one window of one worker: none holds up or harms what others get.

`python -m tests.integration.test_load_http2_hostile [NAME…]` prints how the requests of each case end.
"""

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

from harness.host.access import Access
from harness.load.bounds import answer_bytes
from harness.load.job import LoadJob, LoadResult, OpenLoop
from harness.load.run import run_load
from harness.records.layout import Outcome
from tests.factories.sockets import PEM
from tests.integration.h2_cases import CASES, FLOODS, Case
from tests.integration.h2_frames import serving
from tests.long import others_long

_LATE_S = 4.0  # past its deadline, on a busy machine
_MOST_S = 100.0  # for a window; on an idle machine it takes 20
_RSS_BYTES = 200 << 20


class Group(NamedTuple):
    """Cases of one window. Each server gets a second request once the time of its first is over."""

    cases: Sequence[Case]
    timeout_s: float

    @property
    def later_s(self) -> float:
        return self.timeout_s + _LATE_S


OFTEN = {  # of floods, of each way to count them one; some take seconds of CPU to read
    "SETTINGS without end",
    "PING without end",
    "CONTINUATION without end",
    "HEADERS, then CONTINUATION without end",
    "DATA of a byte without end",
    "DATA without end",
    "interim answers without end",
}
_FLOODS_S = 12.0
GROUPS = (
    Group(CASES, 4.0),
    Group([case for case in FLOODS if case.name in OFTEN], _FLOODS_S),
    Group([case for case in FLOODS if case.name not in OFTEN], _FLOODS_S),
)
WITH_EVERY_CHANGE = (0, 1)  # places of groups


def attack(group: Group) -> tuple[LoadResult, float]:
    """Two requests to the server of each case, and the seconds that they took."""
    cases, count, begun = group.cases, len(group.cases), time.monotonic()
    with serving(*(case.script for case in cases)) as urls:
        first, *others = [f"{url}/v1/chat/completions" for url in urls]
        job = LoadJob(
            url=first,
            other_urls=tuple(others),
            access=Access(),
            bodies=[*(case.body for case in cases), *[b"{}"] * count],
            schedule=OpenLoop(np.repeat([0, int(group.later_s * 1e9)], count)),
            replicas=np.tile(np.arange(count, dtype=np.int16), 2),
            request_timeout_s=group.timeout_s,
            drain_timeout_s=2 * group.timeout_s,
            answer_bytes=answer_bytes(16),
            workers=1,
            http2=True,
        )
        return run_load(job), time.monotonic() - begun


def attack_all(groups: Sequence[Group]) -> list[tuple[LoadResult, float]]:
    with patch.dict("os.environ", SSL_CERT_FILE=str(PEM)), ThreadPoolExecutor(len(groups)) as pool:
        return list(pool.map(attack, groups))


Attacked = Callable[[int], tuple[LoadResult, float]]


@pytest.fixture(scope="module")
def attacked() -> Attacked:
    """Of the group at this place: what came of it. Those of every change are attacked together."""

    @cache
    def of(places: tuple[int, ...]) -> dict[int, tuple[LoadResult, float]]:
        return dict(zip(places, attack_all([GROUPS[place] for place in places]), strict=True))

    return lambda place: of(WITH_EVERY_CHANGE if place in WITH_EVERY_CHANGE else (place,))[place]


_PLACES = [(group, place) for group, (cases, _) in enumerate(GROUPS) for place in range(len(cases))]


@pytest.mark.parametrize(
    ("group", "place"),
    list(others_long(_PLACES, lambda group, _place: group in WITH_EVERY_CHANGE)),
    ids=[GROUPS[group].cases[place].name for group, place in _PLACES],
)
def test_each_request_ends_once_and_as_it_should(attacked: Attacked, group: int, place: int) -> None:
    cases, timeout_s = GROUPS[group]
    case, records = cases[place], attacked(group)[0].records
    own = np.flatnonzero(records.requests["replica"] == place)
    assert [int(seq) for seq in records.requests["seq"][own]] == [place, len(cases) + place]
    rows = records.requests[own]
    first, later = (Outcome(outcome) for outcome in rows["outcome"])
    assert first in (case.outcome, case.or_else)
    assert later is case.later
    assert case.error in records.errors[own[0]]
    assert bool(records.errors[own[0]]) is (case.outcome is not Outcome.OK)
    assert records.errors[own[0]].isprintable()
    assert ((rows["end_ns"] - rows["intended_ns"]) / 1e9 < timeout_s + _LATE_S).all()


@pytest.mark.parametrize(
    "group", list(others_long(range(len(GROUPS)), lambda group: group in WITH_EVERY_CHANGE))
)
def test_the_worker_outlives_them_all_in_bounded_time_and_memory(attacked: Attacked, group: int) -> None:
    cases, (result, seconds) = GROUPS[group].cases, attacked(group)
    assert len(result.records.requests) == 2 * len(cases)
    assert result.client.lost_workers == 0
    assert result.client.peak_rss_bytes < _RSS_BYTES
    assert result.client.open_descriptors is not None
    assert result.client.open_descriptors < 64 + len(cases)  # one connection each, no lost one held
    assert seconds < _MOST_S


def _print(names: Sequence[str]) -> bool:
    chosen = [group._replace(cases=[case for case in group.cases if case.name in names]) for group in GROUPS]
    groups, held = [group for group in chosen if group.cases] if names else GROUPS, True
    for (cases, _), (result, seconds) in zip(groups, attack_all(groups), strict=True):
        rows, client = result.records.requests, result.client
        for place, case in enumerate(cases):
            own = np.flatnonzero(rows["replica"] == place)
            ends = [Outcome(rows["outcome"][row]) for row in own]
            as_it_should = ends in ([case.outcome, case.later], [case.or_else, case.later])
            held = held and as_it_should
            shown = ", ".join(end.name for end in ends) or "no record"
            error = " | ".join(filter(None, (result.records.errors[row] for row in own)))
            print(f"{'held' if as_it_should else 'FAILED':7} {case.name:45} {shown:28} {error}")
        late_s = (rows["sent_ns"] - rows["intended_ns"]).max(initial=0) / 1e9
        held = held and not client.lost_workers
        print(
            f"{len(cases)} cases, {seconds:.1f} s, {client.cpu_s:.1f} s of CPU, "
            f"{client.peak_rss_bytes >> 20} MiB, {client.open_descriptors} descriptors, "
            f"sent up to {late_s:.1f} s late, {client.lost_workers} workers lost"
        )
    return held


if __name__ == "__main__":
    sys.exit(0 if _print(sys.argv[1:]) else 1)
