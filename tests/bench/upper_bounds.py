"""How often the upper bound of a percentile lies above the truth, beside the percentile itself.

    python -m tests.bench.upper_bounds

Independent lognormal latencies. Exits with 1 where a bound holds in fewer than 95%, less the margin of the
simulation itself.
"""

import argparse
import math
import sys
from statistics import NormalDist

import numpy as np

from harness.metrics.distribution import PERCENTILES, latency_stats, samples_needed

SAMPLES = (50, 100, 299, 500, 1000, 3000)


def above(percentile: int, samples: int, times: int, seed: int) -> tuple[float, float]:
    """Shares of the experiments in which the bound, and the percentile shown, is not below the truth."""
    random = np.random.default_rng(seed)
    truth = math.exp(NormalDist().inv_cdf(percentile / 100))
    hits = [0, 0]
    for _ in range(times):
        found, _ = latency_stats(random.lognormal(0, 1, samples))
        for place, key in enumerate((f"p{percentile}_upper", f"p{percentile}")):
            value = getattr(found, key)
            assert value is not None
            hits[place] += value >= truth
    return hits[0] / times, hits[1] / times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000, help="simulated experiments per case")
    arguments = parser.parse_args()
    cases = sum(samples >= samples_needed(percentile) for percentile in PERCENTILES for samples in SAMPLES)
    # All cases together exit with 1 by chance in one of a hundred seeds.
    errors = NormalDist().inv_cdf(1 - 0.01 / cases)
    margin = errors * math.sqrt(0.95 * 0.05 / arguments.times)
    bad = []
    print(f"{'percentile':>10} {'samples':>8}  bound above the truth  percentile above the truth")
    for percentile in PERCENTILES:
        for samples in SAMPLES:
            if samples < samples_needed(percentile):
                continue
            bound, shown = above(percentile, samples, arguments.times, samples)
            print(f"{f'p{percentile}':>10} {samples:>8,}  {bound:>21.1%}  {shown:>26.1%}", flush=True)
            if bound < 0.95 - margin:
                bad.append((percentile, samples))
    print(f"margin of the simulation ±{margin:.1%}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
