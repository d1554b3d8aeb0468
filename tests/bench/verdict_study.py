"""How often verdicts are wrong, and what they find: simulated experiments through the code of `bench run`.

    python -m tests.bench.verdict_study

Two engines, the default five repeats in pairs, the default metrics. Per cent of run-to-run variation, of
which half is common to both of a pair (the work and the machine's drift) and half is a run's own, larger
steps of one run included (one in twenty runs is disturbed by three times the variation). Exits with 1 when
equal engines, or engines that differ by exactly the floor, get a verdict in more than 5 % of the experiments.
"""

import argparse
import math
import sys
from collections import Counter
from types import MappingProxyType

import numpy as np

from harness.compare import Rules, compare
from harness.spec.measures import MEASURES
from harness.spec.scenario import Verdict

DECLARED = Verdict()
RULES = Rules(primary=DECLARED.primary, metrics=DECLARED.metrics)
FALSE_LIMIT = 0.05


def experiment(random: np.random.Generator, slower: float, variation: float, repeats: int) -> dict[str, str]:
    """Metric → verdict of the first engine, which is `slower` times as slow as the second."""
    cells = []
    for repeat in range(repeats):
        common = random.normal(0, variation / math.sqrt(2))
        for label, factor in (("a", slower), ("b", 1.0)):
            scale = 3 if random.random() < 0.05 else 1
            own = random.normal(0, scale * variation / math.sqrt(2), len(RULES.metrics))
            # One run's metrics go together: half of its own part is the same for all.
            own = (own + random.normal(0, scale * variation / math.sqrt(2))) / math.sqrt(2)
            speed = np.exp(common + own) * factor
            cells.append(_cell(label, repeat, dict(zip(RULES.metrics, speed, strict=True))))
    found = compare(cells, RULES)["comparison"]
    return {one["metric"]: one["verdict"] for one in found}


def _cell(label: str, repeat: int, slow: dict[str, float]) -> dict:
    made: dict = {
        "label": label,
        "cell": f"{label}-{repeat}",
        "repeat": repeat,
        "load": {"kind": "concurrency", "value": 8},
        "workload_sha256": str(repeat),
        "started_unix_ns": 10 * repeat + (label == "b") * (1 if repeat % 2 else -1),
        "validity": {"verdict": "VALID"},
    }
    for metric, value in slow.items():
        name, _, statistic = metric.partition(".")
        figure = 100 * value if MEASURES[metric] == "lower" else 100 / value
        made[name] = {**made.get(name, {}), statistic: figure} if statistic else figure
    return made


def study(slower: float, variation: float, repeats: int, times: int) -> tuple[float, Counter[str]]:
    """Share of experiments with any metric called faster or slower, and the primary metric's words."""
    random = np.random.default_rng([int(1e4 * slower), int(1e4 * variation), repeats])
    any_called, words = 0, Counter[str]()
    for _ in range(times):
        found = experiment(random, slower, variation, repeats)
        any_called += any(word in ("faster", "slower") for word in found.values())
        words[found[RULES.primary]] += 1
    return any_called / times, words


TRUTHS = MappingProxyType(
    {"equal": 1.0, "2 % slower (the floor)": 1.02, "5 % slower": 1.05, "10 % slower": 1.1}
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=800, help="simulated experiments per row (400 or more)")
    parser.add_argument("--repeats", type=int, default=DECLARED.repeats)
    arguments = parser.parse_args()
    margin = 2 * math.sqrt(FALSE_LIMIT * (1 - FALSE_LIMIT) / arguments.times)
    print(f"{arguments.times} experiments a row, {arguments.repeats} repeats, "
          f"metrics {', '.join(RULES.metrics)}; words of {RULES.primary}")  # fmt: skip
    print(f"{'truth':<24} {'variation':>9}  {'any called':>10}  slower  faster    same  not enough")
    bad = []
    for truth, slower in TRUTHS.items():
        for variation in (0.005, 0.01, 0.02, 0.05):
            called, words = study(slower, variation, arguments.repeats, arguments.times)
            shares = [
                words[word] / arguments.times for word in ("slower", "faster", "same", "not enough runs")
            ]
            print(f"{truth:<24} {variation:>9.1%}  {called:>10.1%}  "
                  + "  ".join(f"{share:>6.1%}" for share in shares), flush=True)  # fmt: skip
            if slower <= 1.02 and called > FALSE_LIMIT + (margin if slower > 1 else 0):
                bad.append((truth, variation, called))
    if bad:
        print(f"more than {FALSE_LIMIT:.0%} false verdicts: {bad}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
