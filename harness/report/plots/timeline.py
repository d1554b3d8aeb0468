"""One cell over time: requests, tokens, the engine's queue and cache, CPUs, GPUs, power.

Each request is a bar, in as many lanes as were ever in flight at once; of many, their number is drawn.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from harness.metrics import in_flight
from harness.model import WITHOUT_TEXT, CellResult
from harness.model.numbers import counted
from harness.records.layout import UNKNOWN, Outcome, Phase, Records, with_text
from harness.records.series import Telemetry
from harness.report.plots.panels import Curve, Panel, panels
from harness.report.plots.style import GRID, MUTED, Caption, Drawing, Picture, canvas, finish, legend
from harness.report.view import point_words
from harness.report.wording import plain

MOST_DRAWN = 50  # timelines: each takes a fifth of a second, and nobody opens more
REQUESTS = 400  # more bars than this cannot be distinguished: their numbers are drawn
BINS = 60
LETTER_SHARE = 0.0105  # of the width of the axis: a letter of the names above it
_FEW_TICKS = partial(MaxNLocator, nbins=3, min_n_ticks=2, steps=(1, 2, 5, 10))
LANES_INCHES, PANEL_INCHES, FRAME_INCHES = 2.5, 0.95, 1.3
NO_TELEMETRY = Telemetry()
HEIGHT = 0.8  # of a bar, of 1 from lane to lane
# The next request of a slot is due when the last one ends, and both are clock readings of that moment.
SAME_MOMENT_NS = 1_000

# name, colour, hatch: distinguished in grey too
HELD = ("held back by the client", "#9AA0A6", "")
WAITING = ("waiting for the first token", "#F2C14E", "")
IN_SERVER = ("in the server", "#F2C14E", "")  # of an answer without text, which comes at once
DECODING = ("tokens arriving", "#0072B2", "")
UNANSWERED = ("not answered", "#D55E00", "//////")
ABANDONED = ("the user hung up", "#CC79A7", "......")


def draw(
    cell: CellResult,
    records: Records,
    caption: Caption,
    telemetry: Telemetry = NO_TELEMETRY,
    until_s: float = 0.0,
) -> Drawing | None:
    """None if nothing was sent. Without samples there are only the requests and the tokens of their text.

    The axis goes to `until_s` if the cell ends before it, so that several timelines share one axis.
    """
    sent = _sent(records)
    if not len(sent):
        return None
    bars = sent[np.argsort(sent["intended_ns"], kind="stable")]
    end_s = float(bars["end_ns"].max()) / 1e9
    below = list(panels(cell, telemetry, end_s))
    of_text = cell.conditions.api not in WITHOUT_TEXT
    more = len(below) + of_text
    with canvas(FRAME_INCHES + LANES_INCHES + PANEL_INCHES * more) as figure:
        rows = _rows(figure, more)
        lanes, *rest = rows
        if len(bars) > REQUESTS:
            used = draw_in_flight(lanes, bars, np.linspace(0, end_s, BINS + 1), of_text=of_text)
        else:
            used = draw_lanes(lanes, bars, of_text=of_text)
        if of_text:
            _rate(rest.pop(0), records, end_s)
        for axes, panel in zip(rest, below, strict=True):
            _panel(axes, panel)
        axis_s = max(end_s, until_s)
        _shade(rows, bars, cell, end_s, axis_s)
        lanes.set_ylabel("requests\nin flight")
        lanes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        lanes.grid(False, axis="y")
        rows[-1].set_xlabel("seconds from the start of the cell")
        rows[-1].set_xlim(0, axis_s)
        legend(figure, [patch(style) for style in used])
        verdict = "" if cell.validity.verdict == "VALID" else f" ({cell.validity.verdict})"
        title = f"Timeline of {plain(cell.label, 40)}, {point_words(cell.point)}{verdict}"
        words = [*(["output tokens per second below"] if of_text else []), *(panel.words for panel in below)]
        picture = Picture(f"timeline-{cell.cell}", title, _description(bars, end_s, words), cell.label)
        return finish(figure, picture, caption)


def ended_s(records: Records) -> float:
    """When the last request ended; 0 if nothing was sent."""
    return float(_sent(records)["end_ns"].max(initial=0)) / 1e9


def _sent(records: Records) -> NDArray[np.void]:
    return records.requests[in_flight.held(records.requests)]


def _rows(figure: Figure, more: int) -> list[Axes]:
    heights = [LANES_INCHES] + [PANEL_INCHES] * more
    grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
    rows: list[Axes] = list(grid[:, 0])
    figure.align_ylabels(rows)
    return rows


def _panel(axes: Axes, panel: Panel) -> None:
    if panel.stacked:
        _stack(axes, panel.curves)
    else:
        for curve in panel.curves:
            axes.plot(curve.seconds, curve.values, color=curve.color, linestyle=curve.dash, linewidth=1.3,
                      label=curve.name, drawstyle=curve.style)  # fmt: skip
    axes.set_ylabel(panel.axis)
    axes.set_ylim(0, panel.top or 1.1 * max(float(curve.values.max()) for curve in panel.curves) or 1.0)
    axes.yaxis.set_major_locator(_FEW_TICKS())
    # Above the panel: inside it would cover what it names.
    axes.legend(loc="lower left", bbox_to_anchor=(0, 0.97), ncols=6, fontsize=7.5, borderpad=0,
                borderaxespad=0, handlelength=1.6, columnspacing=1.2)  # fmt: skip


def _stack(axes: Axes, curves: Sequence[Curve]) -> None:
    grid = curves[0].seconds
    floor = np.zeros(len(grid))
    for curve in curves:
        ceiling = floor + np.interp(grid, curve.seconds, curve.values)
        axes.fill_between(grid, floor, ceiling, color=curve.color, alpha=0.75, linewidth=0, label=curve.name)
        floor = ceiling


def _rate(axes: Axes, records: Records, end_s: float) -> None:
    """Spreads each answer's tokens over its text events, as the throughput of the table does."""
    requests, events = records.requests, records.events
    text = events[with_text(events)]
    tokens = np.where(
        requests["output_tokens"] == UNKNOWN, requests["text_events"], requests["output_tokens"]
    )
    weights = np.zeros(records.seq_count)
    weights[requests["seq"]] = tokens / np.maximum(requests["text_events"], 1)
    edges = np.linspace(0, end_s, BINS + 1)
    total, _ = np.histogram(text["stamp_ns"] / 1e9, edges, weights=np.maximum(weights, 0)[text["seq"]])
    axes.stairs(total / (edges[1] - edges[0]), edges, fill=True, color=DECODING[1], alpha=0.75)
    axes.set_ylabel("output\ntokens/s")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(_FEW_TICKS())


def _shade(
    rows: Sequence[Axes], bars: NDArray[np.void], cell: CellResult, end_s: float, axis_s: float
) -> None:
    """Shades what lies outside the window. Names that would cover each other are written as one."""
    letter_s = axis_s * LETTER_SHARE
    names: list[tuple[float, float, str]] = []  # from, to, text
    for start, stop, name, side in _aside(bars, cell, end_s):
        for axes in rows:
            axes.axvspan(start, stop, color=GRID, alpha=0.55, zorder=0, linewidth=0)
        begin = start if side == "left" else stop - letter_s * len(name)
        if names and begin < names[-1][1]:
            begin, _, before = names.pop()
            name = f"{before}, {name}"
        names.append((begin, begin + letter_s * (len(name) + 1), name))
    for begin, _, name in names:
        rows[0].annotate(name, (begin, 1.0), xycoords=("data", "axes fraction"),
                         va="bottom", fontsize=8, color=MUTED)  # fmt: skip


def _aside(
    bars: NDArray[np.void], cell: CellResult, end_s: float
) -> Iterator[tuple[float, float, str, Literal["left", "right"]]]:
    """Stretches outside the window of the rates: the warm-up, up to the first measured send; the ramp, in
    which measured requests are sent that the rates leave out; the drain after the last send.

    Without a measured request the warm-up lasts until its last request ended.
    """
    warmup, measured = (bars[bars["phase"] == phase] for phase in (Phase.WARMUP, Phase.MEASURE))
    first_s = float(measured["sent_ns"].min() if len(measured) else bars["end_ns"].max()) / 1e9
    if len(warmup):
        yield 0.0, first_s, "warm-up", "left"
    start_s = cell.window_start_s
    if start_s is None or cell.window_s is None:
        return
    if first_s < min(start_s, end_s):
        yield first_s, min(start_s, end_s), "ramp", "left"
    window_end_s = start_s + cell.window_s
    if cell.window_kind == "steady" and window_end_s < end_s:
        yield window_end_s, end_s, "drain", "right"


def _description(bars: NDArray[np.void], end_s: float, below: Sequence[str]) -> str:
    without = int(np.count_nonzero(~np.isin(bars["outcome"], (Outcome.OK, Outcome.ABANDONED))))
    lost = f", {without} of them not answered" if without else ""
    requests = f"{counted(len(bars), 'request')}{lost}, over {end_s:.1f} seconds"
    return "; ".join([requests, *below]) + "."


def chosen(cells: Sequence[CellResult]) -> list[CellResult]:
    """One cell per backend, of `MOST_DRAWN`: the first repeat at the highest load, where queueing shows.

    An INVALID cell is chosen only where the backend has no other.
    """
    by_label: dict[str, CellResult] = {}
    for cell in sorted(cells, key=lambda cell: (cell.invalid, -cell.load.value, cell.repeat)):
        by_label.setdefault(cell.label, cell)
    return list(by_label.values())[:MOST_DRAWN]


class Kind(NamedTuple):
    """What some requests did, each from `start` to `stop`, ns."""

    style: tuple[str, str, str]
    start: NDArray[Any]
    stop: NDArray[Any]
    mask: NDArray[np.bool_]  # which of the requests


def _kinds(bars: NDArray[np.void], *, of_text: bool) -> Iterator[Kind]:
    """Yields the kinds that there are."""
    good, left = (bars["outcome"] == outcome for outcome in (Outcome.OK, Outcome.ABANDONED))
    first = np.where(bars["first_text_ns"] == UNKNOWN, bars["end_ns"], bars["first_text_ns"])
    last = np.where(bars["last_text_ns"] == UNKNOWN, bars["end_ns"], bars["last_text_ns"])
    kinds: list[tuple[tuple[str, str, str], NDArray[Any], NDArray[Any], NDArray[np.bool_]]] = [
        (HELD, bars["intended_ns"], bars["sent_ns"], bars["sent_ns"] - bars["intended_ns"] > 1_000_000),
        *(
            [(WAITING, bars["sent_ns"], first, good), (DECODING, first, last, good)]
            if of_text
            else [(IN_SERVER, bars["sent_ns"], bars["end_ns"], good)]
        ),
        (ABANDONED, bars["sent_ns"], bars["end_ns"], left),
        (UNANSWERED, bars["sent_ns"], bars["end_ns"], ~good & ~left),
    ]
    return (Kind(style, start[mask], stop[mask], mask) for style, start, stop, mask in kinds if mask.any())


def draw_in_flight(
    axes: Axes, bars: NDArray[np.void], edges_s: NDArray[np.float64], *, of_text: bool
) -> list[tuple[str, str, str]]:
    """Draws how many requests of each kind were in flight between two edges on average, one above the other.

    Returns the kinds that there are.
    """
    used, floor = [], np.zeros(len(edges_s) - 1)
    for style, start, stop, _ in _kinds(bars, of_text=of_text):
        used.append(style)
        passed_s = [np.clip(edge - start / 1e9, 0, (stop - start) / 1e9).sum() for edge in edges_s]
        top = floor + np.diff(passed_s) / np.diff(edges_s)
        _, color, hatch = style
        axes.stairs(top, edges_s, baseline=floor, fill=True, facecolor=color, hatch=hatch, edgecolor="white",
                    linewidth=0)  # fmt: skip
        floor = top
    axes.set_ylim(0, 1.05 * floor.max() or 1.0)
    return used


def draw_lanes(axes: Axes, bars: NDArray[np.void], *, of_text: bool) -> list[tuple[str, str, str]]:
    """Returns the kinds that there are."""
    lanes, used = lanes_of(bars), []
    for style, start, stop, mask in _kinds(bars, of_text=of_text):
        used.append(style)
        _, color, hatch = style
        corners = _corners(start / 1e9, stop / 1e9, lanes[mask])
        # One artist for all bars of a kind: as many of their own take seconds to draw.
        axes.add_collection(
            PolyCollection(corners, facecolor=color, hatch=hatch, edgecolor="white", linewidth=0.3)
        )
    axes.set_ylim(0.4, lanes.max() + 0.6)
    return used


def _corners(left: NDArray[Any], right: NDArray[Any], lanes: NDArray[np.int64]) -> list[NDArray[Any]]:
    low, high = lanes - HEIGHT / 2, lanes + HEIGHT / 2
    return list(np.stack([np.stack([left, left, right, right], 1), np.stack([low, high, high, low], 1)], 2))


def lanes_of(bars: NDArray[np.void]) -> NDArray[np.int64]:
    """The lowest lane free when a request was due: as many lanes as were ever in flight at once."""
    free: list[int] = []
    lanes = np.zeros(len(bars), np.int64)  # from 1: the top one is the most in flight
    for index, bar in enumerate(bars):
        due = int(bar["intended_ns"])
        lane = next((lane for lane, until in enumerate(free) if until <= due + SAME_MOMENT_NS), len(free))
        free[lane : lane + 1] = [int(bar["end_ns"])]
        lanes[index] = lane + 1
    return lanes


def patch(style: tuple[str, str, str]) -> Patch:
    name, color, hatch = style
    return Patch(facecolor=color, hatch=hatch, edgecolor="white", label=name)
