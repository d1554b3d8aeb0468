"""The highest load at which each backend keeps the scenario's limits, from the cells of several searches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.compare.observed import Cell, labels
from harness.dotted import number_at
from harness.stats.runs import geometric_interval

KNEE = 0.05  # doubling a closed loop's load must bring so much more, an open loop must serve all but so much


@dataclass(frozen=True, slots=True)
class _Found:
    """Of one search: highest load that kept the limits, lowest above it that did not; None where none did."""

    kept: float | None
    failed: float | None

    @property
    def middle(self) -> float | None:
        return None if self.kept is None or self.failed is None else math.sqrt(self.kept * self.failed)


def capacity(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The `capacity` list of summary.json. `interval`: [low, estimate, high], ends null where not reached.

    The estimate is the geometric mean over the searches, between what still kept the limits and what no
    longer did; its interval is Student's t on logarithms, and never narrower than that gap.
    """
    return [_of(label, [cell for cell in cells if cell["label"] == label]) for label in labels(cells)]


def _of(label: str, cells: Sequence[Cell]) -> dict[str, Any]:
    repeats = sorted({cell["repeat"] for cell in cells})
    found = [_search([cell for cell in cells if cell["repeat"] == repeat]) for repeat in repeats]
    tested = list(_tested(cells))
    return {
        "label": label,
        "kind": cells[0]["load"]["kind"],
        "interval": _interval(found),
        "searches": len(found),
        "tested": tested,
        "saturated_from": next((one["value"] for one in tested if one["saturated"]), None),
    }


def kept_limits(cell: Cell) -> bool:
    """An INVALID cell kept nothing: it failed requests, or the load was more than could be sent."""
    return cell["validity"]["verdict"] != "INVALID" and bool((cell.get("slo") or {}).get("met"))


def _search(cells: Sequence[Cell]) -> _Found:
    kept = max((cell["load"]["value"] for cell in cells if kept_limits(cell)), default=None)
    beyond = [
        cell["load"]["value"]
        for cell in cells
        if not kept_limits(cell) and (kept is None or cell["load"]["value"] > kept)
    ]
    return _Found(kept, min(beyond, default=None))


def _interval(found: Sequence[_Found]) -> list[float | None]:
    kept = [one.kept for one in found if one.kept is not None]
    failed = [one.failed for one in found if one.failed is not None]
    middles = np.array([one.middle for one in found if one.middle is not None])
    if len(middles) < len(found):
        # Some search had no end: between what all kept and what all failed is all that is known.
        whole_low = min(kept) if len(kept) == len(found) else None
        return [whole_low, None, max(failed) if len(failed) == len(found) else None]
    low, middle, high = min(kept), float(np.exp(np.log(middles).mean())), max(failed)
    if len(middles) > 1:
        sure = geometric_interval(middles)
        low, high = min(low, sure.low), max(high, sure.high)
    return [low, middle, high]


def _tested(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """By load, ascending."""
    served: dict[float, float] = {}
    for value in sorted({cell["load"]["value"] for cell in cells}):
        here = [cell for cell in cells if cell["load"]["value"] == value]
        rates = [rate for cell in here if (rate := number_at(cell, "requests_per_s")) is not None]
        if rates:
            served[value] = float(np.mean(rates))
        why = _saturated(here[0]["load"]["kind"], value, served, here)
        shares = [share for cell in here if (share := (cell.get("slo") or {}).get("attainment")) is not None]
        yield {
            "value": value,
            "runs": len(here),
            "kept": sum(map(kept_limits, here)),
            "attainment": float(np.mean(shares)) if shares else None,
            "requests_per_s": served.get(value),
            "saturated": why is not None,
            "why": why,
        }


def _saturated(kind: str, value: float, served: Mapping[float, float], cells: Sequence[Cell]) -> str | None:
    """Why more load no longer means more work done; None where it does, or cannot be told."""
    if value not in served:
        return "nothing was answered in time"
    if kind == "rate":
        if served[value] < (1 - KNEE) * value and any(_grows(cell) for cell in cells):
            return f"{served[value]:.3g} of {value:g} requests/s served, and answers take longer and longer"
        return None
    half = [load for load in served if load <= value / 1.9]
    if half and served[value] < (1 + KNEE) * served[max(half)]:
        return f"{served[value]:.3g} requests/s, at {max(half):g} in flight it was {served[max(half)]:.3g}"
    return None


def _grows(cell: Cell) -> bool:
    drift = ((cell.get("steady_state") or {}).get("drift") or {}).get("e2e_ms")
    return drift is not None and drift > 0


def words(one: Mapping[str, Any]) -> str:
    """`vllm: 12.3 requests/s keep the limits (11.0 to 14.1, 3 searches); saturated from 16`."""
    low, middle, high = one["interval"]
    unit = "requests/s" if one["kind"] == "rate" else "in flight"
    searches = f"{one['searches']} search" + ("es" if one["searches"] != 1 else "")
    if middle is not None:
        text = f"{middle:.3g} {unit} keep the limits ({low:.3g} to {high:.3g}, {searches})"
    elif low is not None:
        text = f"at least {low:.3g} {unit} keep the limits: no load that was tried breaks them ({searches})"
    elif high is not None:
        text = f"below {high:.3g} {unit}: no load that was tried keeps the limits ({searches})"
    else:
        text = f"not decided: the searches contradict each other ({searches})"
    knee = one["saturated_from"]
    return f"{one['label']}: {text}" + (f"; saturated from {knee:g}" if knee is not None else "")
