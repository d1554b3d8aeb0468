"""Searches of `bench run --find-capacity` through the scripted server, whose slots set its capacity."""

import contextlib
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.integration.scripted import MEASURED, bench, define, summary


class Served(NamedTuple):
    name: str
    slots: int
    service_ms: int  # of every answer, half of it before the first token
    load: tuple[str, str]  # flag of bench run, what the search is given
    limit: str
    truth: float  # more than this cannot be served, or waits longer than the limit


SERVERS = (
    Served("20 requests/s", 8, 400, ("--rate", "5,80"), "slo.e2e_ms.p95=1500", 20.0),
    Served("8 in flight", 8, 400, ("--concurrency", "1,32"), "slo.ttft_ms.p95=260", 8),
)


def wire(searches: int, seconds: float, requests: int) -> list[str]:
    """Prints what bench says of each server; the names of those whose answer is wrong."""
    wrong = []
    for server in SERVERS:
        with tempfile.TemporaryDirectory(prefix="capacity-") as folder:
            words, found = _searched(server, Path(folder), searches, seconds, requests)
        value = found["value"] or 0.0
        right = 0.9 * server.truth <= value <= server.truth
        print(f"{server.name}: {words.strip()}", flush=True)
        for tried in found["tested"]:
            print(
                f"    {tried['value']:>7.4g}: {tried['kept']} of {tried['runs']} kept  {tried['why'] or ''}"
            )
        if not right:
            wrong.append(server.name)
    return wrong


def _searched(server: Served, folder: Path, searches: int, seconds: float, requests: int) -> tuple[str, dict]:
    with contextlib.chdir(folder):
        Path("backends").mkdir()
        half = server.service_ms // 2
        timed = ("--probe-seconds", f"{seconds:g}") if "--rate" in server.load else ()
        define("served", "--max-running", str(server.slots), ttft_ms=half, gap_ms=half / 3)
        done = bench(
            "run", "--scenario", "fixed-length", "--backends", "served", "--find-capacity", *server.load,
            *timed, "--requests", str(requests), "--output-tokens", "4",
            "--repeats", str(searches), "--set", server.limit, "--no-probe",
            code=MEASURED, limit_s=3600, BENCH_CACHE=str(folder / "cache"),
        )  # fmt: skip
        (found,) = summary()["capacity"]
    return next(line for line in done.stdout.splitlines() if line.startswith("capacity")), found
