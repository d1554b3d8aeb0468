"""Every request a bar, in as many lanes as were ever in flight at once; of many, how many there were."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch
from numpy.typing import NDArray

from harness.records.layout import UNKNOWN, Outcome

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
