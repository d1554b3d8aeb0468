"""Cumulative distributions by backend at one load point: what share of requests was at least this fast."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from harness.report.plots.style import (
    Caption,
    Look,
    Picture,
    canvas,
    legend,
    log_ticks,
    logarithmic,
    mark,
    save,
)
from harness.report.samples import Samples
from harness.report.text import number, plain
from harness.report.view import Group, Row, point_words

Floats = NDArray[np.float64]

POINTS = 400  # of a curve: more cannot be seen
TAIL = 99.9  # the axis ends here, so that one stray gap does not flatten every curve


@dataclass(frozen=True, slots=True)
class Measure:
    name: str
    field: Literal["ttft_ms", "itl_ms"]
    title: str
    axis: str
    share: str


MEASURES = (
    Measure("ttft-cdf", "ttft_ms", "Time to first token", "time to first token from the intended send, ms",
            "share of requests, %"),
    Measure("itl-cdf", "itl_ms", "Inter-token latency", "gap between successive text events, ms",
            "share of gaps, %"),
)  # fmt: skip


def draw(
    measure: Measure,
    group: Group,
    samples: Mapping[str, Samples],
    looks: Mapping[str, Look],
    caption: Caption,
    folder: Path,
) -> Picture | None:
    """None where nothing valid was measured. Thin lines are the single repeats of a thick one."""
    curves = {row.label: found for row in group.rows if (found := _values(row, samples, measure.field))}
    if not curves:
        return None
    everything = [np.concatenate(found) for found in curves.values()]
    with canvas() as figure:
        axes = figure.add_subplot()
        _scale(axes, everything)
        for (label, repeats), pooled in zip(curves.items(), everything, strict=True):
            _backend(axes, label, repeats if len(repeats) > 1 else [], pooled, looks[label])
        axes.set_ylim(0, 101)
        axes.set_xlabel(measure.axis)
        axes.set_ylabel(measure.share)
        legend(figure, axes.get_legend_handles_labels()[0])
        picture = Picture(
            f"{measure.name}-{group.point.label}",
            f"{measure.title}, {point_words(group.point)}",
            _description(curves, everything),
        )
        return save(figure, picture, caption, folder)


def _values(row: Row, samples: Mapping[str, Samples], field: Literal["ttft_ms", "itl_ms"]) -> list[Floats]:
    found: list[Floats] = [
        getattr(samples[cell["cell"]], field) for cell in row.usable if cell["cell"] in samples
    ]
    return [values for values in found if np.isfinite(values).any()]


def _backend(axes: Axes, label: str, repeats: Sequence[Floats], pooled: Floats, look: Look) -> None:
    thin = [axes.plot(*curve(values), color=look.color, linewidth=0.7, alpha=0.45)[0] for values in repeats]
    # Markers start at another height for each backend, so that close curves do not hide each other's.
    places = (0.05 + 0.02 * (look.index % 8), 0.22)
    (thick,) = axes.plot(*curve(pooled), color=look.color, linestyle=look.dash, marker=look.marker,
                         markevery=places, label=plain(label, 40))  # fmt: skip
    mark([*thin, thick], look)


def curve(values: Floats) -> tuple[Floats, Floats]:
    """Values never reached are infinite: their curve ends below 100 %."""
    ordered = np.sort(values)
    share = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
    chosen = np.unique(np.linspace(0, len(ordered) - 1, POINTS).astype(int))
    chosen = chosen[np.isfinite(ordered[chosen])]
    first = ordered[chosen[:1]]
    return np.concatenate([first, ordered[chosen]]), np.concatenate([[0.0], share[chosen]])


def _scale(axes: Axes, everything: Sequence[Floats]) -> None:
    finite = [values[np.isfinite(values)] for values in everything]
    low = min(float(np.percentile(values, 1)) for values in finite)
    high = max(float(np.percentile(values, TAIL)) for values in finite)
    if logarithmic(low, high):
        log_ticks(axes, axes.xaxis)
        axes.set_xlim(low * 0.8, high * 1.25)
    else:
        axes.set_xlim(0, high * 1.05)


def _description(curves: Mapping[str, Sequence[Floats]], everything: Sequence[Floats]) -> str:
    parts = [
        f"{plain(label, 40)}: median {number(float(np.quantile(values, 0.5, method='higher')))} ms"
        for label, values in zip(curves, everything, strict=True)
    ]
    return f"Cumulative distribution, one curve per backend. {'; '.join(parts)}."
