"""Sampled series to figures over a window. A figure needs samples over most of it; else it is unknown.

A counter loses nothing between two samples, however far apart they are.
"""

import numpy as np

from harness.metrics.window import Window
from harness.model import Range
from harness.records.series import Samples, unbroken

# Of the window, between the first and the last sample inside or around it.
MIN_COVERED = 0.8
# Times the usual step: samples of a gauge that lie further apart say nothing of the time between.
_GAP_STEPS = 5
_USUAL_FROM = 3  # steps of the window itself: a source may be slower under load than it was before


def describe(samples: Samples, window: Window) -> Range | None:
    """The mean over time and the highest sample of a gauge."""
    clipped = _clipped(samples, window)
    if clipped is None or _covered_ns(samples, clipped) < MIN_COVERED * (window.end_ns - window.start_ns):
        return None
    span = clipped.at_ns[-1] - clipped.at_ns[0]
    mean = float(np.trapezoid(clipped.values, clipped.at_ns) / span) if span else float(clipped.values[0])
    return Range(mean=mean, max=float(clipped.values.max()))


def mean(samples: Samples, window: Window) -> float | None:
    described = describe(samples, window)
    return described.mean if described else None


def rate(samples: Samples, window: Window) -> float | None:
    """Rate of a counter, per second. A fall is a restart, and what it counted since is not lost."""
    clipped = _clipped(Samples(samples.at_ns, unbroken(samples.values)), window)
    if clipped is None or clipped.at_ns[-1] == clipped.at_ns[0]:
        return None
    return float((clipped.values[-1] - clipped.values[0]) / (clipped.at_ns[-1] - clipped.at_ns[0]) * 1e9)


def _clipped(samples: Samples, window: Window) -> Samples | None:
    """Samples inside the window, and values interpolated at its ends; None where too little is covered, or
    where a window of the load has no sample since the first request: those before it are of an idle engine.
    """
    at_ns, values = samples
    if not len(samples.between(0, window.end_ns).at_ns if window.start_ns >= 0 else at_ns):
        return None
    start, end = max(window.start_ns, int(at_ns[0])), min(window.end_ns, int(at_ns[-1]))
    if end < start or end - start < MIN_COVERED * (window.end_ns - window.start_ns):
        return None
    inside = samples.between(start, end)
    edges = np.interp([start, end], at_ns, values)
    return Samples(
        np.concatenate([[start], inside.at_ns, [end]]), np.concatenate([edges[:1], inside.values, edges[1:]])
    )


def _covered_ns(samples: Samples, clipped: Samples) -> float:
    """Time between the ends of `clipped`, less the gaps of `samples` in which its source was not read."""
    start, end = clipped.at_ns[0], clipped.at_ns[-1]
    at_ns = np.unique(samples.at_ns)
    steps = np.diff(at_ns)
    inside = np.maximum(np.minimum(at_ns[1:], end) - np.maximum(at_ns[:-1], start), 0)
    here = steps[inside > 0]
    usual = np.median(here if len(here) >= _USUAL_FROM else steps) if len(steps) else 0.0
    return float(end - start - inside[steps > _GAP_STEPS * usual].sum())
