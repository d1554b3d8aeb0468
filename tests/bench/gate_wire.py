"""The gate study from the wire: a scripted server measured twice by `bench run`, and `bench compare` of both.

The server's answers vary by 10% each. `restarted` also gives each of the two runs a speed of its own, as a
server has after a restart: repeats within one run do not show it.
"""

import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from tests.bench.audit.gates import GATE, Place, place

WORSE = frozenset({"slower", "failures", "stalls", "missing", "not compared"})
ANSWER_NOISE = 0.1
REQUESTS = 60  # of each of three repeats


@dataclass(frozen=True)
class Changed:
    """What is different in the new run. `level`: relative deviation of the speed of either run."""

    name: str
    slower: float = 1.0
    level: float = 0.0


CHANGES = (
    Changed("equal"),
    Changed("equal, restarted: 1% from run to run", level=0.01),
    Changed("10% slower", slower=1.1),
    Changed("20% slower", slower=1.2),
)


def wire(times: int, seed: int, only: str = "") -> Iterator[tuple[str, Counter[str]]]:
    """Yields how often the gate found something worse, could not decide, and passed, for each change whose
    name contains `only`.
    """
    for changed in CHANGES:
        if only in changed.name:
            draw = random.Random(f"{seed} {changed.name}")
            yield changed.name, Counter(_pair(changed, draw) for _ in range(times))


def _pair(changed: Changed, draw: random.Random) -> str:
    with tempfile.TemporaryDirectory(prefix="gate-wire-") as room, place(Path(room)) as here:
        behaviour = here.served.behaviour
        behaviour.draw, behaviour.noise = random.Random(draw.random()), ANSWER_NOISE
        behaviour.slower = draw.gauss(1, changed.level)
        base = here.run("base", requests=REQUESTS)
        behaviour.slower = changed.slower * draw.gauss(1, changed.level)
        new = here.run("new", requests=REQUESTS)
        return _outcome(here, base, new)


def _outcome(here: Place, base: Path, new: Path) -> str:
    done = here.bench("compare", str(base), str(new), *GATE, "--json")
    if done.returncode not in (0, 1):
        raise RuntimeError(f"bench compare ended with {done.returncode}: {done.stderr[-2000:]}")
    found = outcome({row["kind"] for row in json.loads(done.stdout)["gate"]})
    if (found == "passed") != (done.returncode == 0):
        raise RuntimeError(f"the gate {found} and ended with {done.returncode}")
    return found


def outcome(kinds: Set[str]) -> str:
    """Returns `worse`, `not decided` or `passed`, from the kinds of the gate's rows."""
    return "worse" if kinds & WORSE else "not decided" if kinds else "passed"
