"""The verdict study from the wire: whole `bench run`s of scripted servers, equal ones and one 20% slower."""

import contextlib
import json
import tempfile
from pathlib import Path

from tests.bench.command import bench
from tests.integration import scripted

# Of a hundred milliseconds and more: what the machine adds by chance stays small beside it.
SPEEDS = {"calm": 1.0, "twin": 1.0, "slow": 1.2}
TTFT_MS, GAP_MS = 150, 20
ARGUMENTS = (
    *("run", "--scenario", "fixed-length", "--backends", ",".join(SPEEDS), "--concurrency", "2,4"),
    *("--requests", "16", "--output-tokens", "8", "--no-probe", "--no-agreement", "--json"),
)
LIMIT_S = 600


def wire(times: int) -> list[str]:
    """Prints the words of each run; lists the false ones and the differences that were not found."""
    bad: list[str] = []
    for number in range(times):
        with tempfile.TemporaryDirectory(prefix="verdict-wire-") as place, contextlib.chdir(place):
            Path("backends").mkdir()
            for name, speed in SPEEDS.items():
                scripted.define(name, ttft_ms=TTFT_MS * speed, gap_ms=GAP_MS * speed)
            done = bench(*ARGUMENTS, limit_s=LIMIT_S, BENCH_CACHE=f"{place}/cache")
        try:
            summary = json.loads(done.stdout)
        except ValueError:
            raise RuntimeError(f"bench run ended with {done.returncode}\n{done.stderr[-2000:]}") from None
        words = {
            (one["a"], one["b"], one["load"]["value"]): one for one in summary["comparison"] if one["primary"]
        }
        for (a, b, load), one in words.items():
            false = _false(a, b, one["verdict"])
            print(
                f"run {number + 1}, c{load:g}: {a} against {b}: {one['verdict']} ({one['why']})", flush=True
            )
            bad += [f"run {number + 1}, c{load:g}: {a} against {b}: {one['verdict']}"] if false else []
    return bad


def _false(a: str, b: str, word: str) -> bool:
    """What is apart has to be found; equals may be left undecided."""
    if SPEEDS[a] == SPEEDS[b]:
        return word in ("faster", "slower")
    return word != ("faster" if SPEEDS[a] < SPEEDS[b] else "slower")
