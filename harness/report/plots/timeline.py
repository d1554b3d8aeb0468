"""One cell as it went: every request a bar in a lane, under it the tokens that came out."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from harness.metrics.throughput import Window, measured_window
from harness.record import GENERATED, UNKNOWN, Outcome, Phase, Records
from harness.report.plots.style import GRID, MUTED, Caption, Picture, canvas, legend, save
from harness.report.text import counted, plain
from harness.report.view import Json, point_of, point_words

REQUESTS = 400  # more bars than this cannot be told apart
BINS = 60

# name, colour, hatch: told apart in grey too
HELD = ("held back by the client", "#9AA0A6", "")
WAITING = ("waiting for the first token", "#F2C14E", "")
DECODING = ("tokens arriving", "#0072B2", "")
UNANSWERED = ("not answered", "#D55E00", "//////")


def draw(cell: Json, records: Records, caption: Caption, folder: Path) -> Picture | None:
    """None where nothing was sent."""
    requests = records.requests
    sent = requests[(requests["sent_ns"] != UNKNOWN) & (requests["end_ns"] != UNKNOWN)]
    if not len(sent):
        return None
    bars = sent[np.argsort(sent["intended_ns"], kind="stable")][:REQUESTS]
    end_s = float(bars["end_ns"].max()) / 1e9
    with canvas(5.0) as figure:
        lanes, tokens = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        used = _bars(lanes, bars)
        _rate(tokens, records, end_s)
        for start, stop, name, side in _aside(bars, measured_window(requests), end_s):
            for axes in (lanes, tokens):
                axes.axvspan(start, stop, color=GRID, alpha=0.55, zorder=0, linewidth=0)
            lanes.annotate(name, (start if side == "left" else stop, 1.0), xycoords=("data", "axes fraction"),
                           ha=side, va="bottom", fontsize=8, color=MUTED)  # fmt: skip
        lanes.set_ylabel("requests in flight")
        lanes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        lanes.grid(False, axis="y")
        tokens.set_ylabel("output\ntokens/s")
        tokens.set_xlabel("seconds from the start of the cell")
        tokens.set_xlim(0, end_s)
        legend(figure, [_patch(style) for style in used])
        cut = f", first {len(bars)} of {len(sent)} requests" if len(bars) < len(sent) else ""
        title = f"Timeline of {plain(cell['label'], 40)}, {point_words(point_of(cell))}{cut}"
        picture = Picture(f"timeline-{cell['cell']}", title, _description(bars, end_s), cell["label"])
        return save(figure, picture, caption, folder)


def _bars(axes: Axes, bars: NDArray[np.void]) -> list[tuple[str, str, str]]:
    """Draws and says which kinds there were."""
    lanes = lanes_of(bars)
    good = bars["outcome"] == Outcome.OK
    first = np.where(bars["first_text_ns"] == UNKNOWN, bars["end_ns"], bars["first_text_ns"])
    last = np.where(bars["last_text_ns"] == UNKNOWN, bars["end_ns"], bars["last_text_ns"])
    kinds: list[tuple[tuple[str, str, str], NDArray[Any], NDArray[Any], NDArray[np.bool_]]] = [
        (HELD, bars["intended_ns"], bars["sent_ns"], bars["sent_ns"] - bars["intended_ns"] > 1_000_000),
        (WAITING, bars["sent_ns"], first, good),
        (DECODING, first, last, good),
        (UNANSWERED, bars["sent_ns"], bars["end_ns"], ~good),
    ]
    used = []
    for style, start, stop, mask in kinds:
        if not mask.any():
            continue
        used.append(style)
        _, color, hatch = style
        axes.barh(lanes[mask], (stop - start)[mask] / 1e9, left=start[mask] / 1e9, height=0.8, color=color,
                  hatch=hatch, edgecolor="white", linewidth=0.3)  # fmt: skip
    axes.set_ylim(0.4, lanes.max() + 0.6)
    return used


def lanes_of(bars: NDArray[np.void]) -> NDArray[np.int64]:
    """The lowest lane free when a request was due: as many lanes as were ever in flight at once."""
    free: list[int] = []
    lanes = np.zeros(len(bars), np.int64)  # from 1: the top one is the most in flight
    for index, bar in enumerate(bars):
        due = int(bar["intended_ns"])
        lane = next((lane for lane, until in enumerate(free) if until <= due), len(free))
        free[lane : lane + 1] = [int(bar["end_ns"])]
        lanes[index] = lane + 1
    return lanes


def _rate(axes: Axes, records: Records, end_s: float) -> None:
    """Each answer's tokens are spread over its text events, as in the throughput of the table."""
    requests, events = records.requests, records.events
    text = events[np.isin(events["kind"], GENERATED)]
    tokens = np.where(
        requests["output_tokens"] == UNKNOWN, requests["text_events"], requests["output_tokens"]
    )
    weights = tokens / np.maximum(requests["text_events"], 1)
    edges = np.linspace(0, end_s, BINS + 1)
    total, _ = np.histogram(text["stamp_ns"] / 1e9, edges, weights=np.maximum(weights, 0)[text["seq"]])
    axes.stairs(total / (edges[1] - edges[0]), edges, fill=True, color=DECODING[1], alpha=0.75)
    axes.set_ylim(bottom=0)


def _aside(
    bars: NDArray[np.void], window: Window | None, end_s: float
) -> Iterator[tuple[float, float, str, Literal["left", "right"]]]:
    """What no rate is made of: before the first measured send, and after the last one."""
    if window is not None and (bars["phase"] == Phase.WARMUP).any():
        yield 0.0, window.start_ns / 1e9, "warm-up", "left"
    if window is not None and window.kind == "steady" and window.end_ns / 1e9 < end_s:
        yield window.end_ns / 1e9, end_s, "drain", "right"


def _patch(style: tuple[str, str, str]) -> Patch:
    name, color, hatch = style
    return Patch(facecolor=color, hatch=hatch, edgecolor="white", label=name)


def _description(bars: NDArray[np.void], end_s: float) -> str:
    without = int(np.count_nonzero(bars["outcome"] != Outcome.OK))
    lost = f", {without} of them not answered" if without else ""
    return f"{counted(len(bars), 'request')}{lost}, over {end_s:.1f} seconds; output tokens per second below."


def chosen(cells: Sequence[Json]) -> list[Json]:
    """One cell per backend: the first repeat at the highest load, where queueing shows."""
    found: dict[str, Json] = {}
    for cell in sorted(cells, key=lambda cell: (-float(cell["load"]["value"]), cell.get("repeat", 0))):
        found.setdefault(cell["label"], cell)
    return list(found.values())
