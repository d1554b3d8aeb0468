"""Says what images cost before the first token, and how often the engine found one in a cache of its own."""

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from harness.metrics import latency
from harness.metrics.view import CellView, Figures
from harness.model import ImageFigures
from harness.records.layout import UNKNOWN
from harness.records.request_table import RequestTable

_FRESH = ", fresh"


def compute(cell: CellView) -> Figures:
    """None where no request could have an image."""
    requested = cell.requested
    if requested is None or not (requested.numbers["images"] >= 0).any():
        return Figures(image_ms=None, images=None, nulls={"image_ms": "no requests with images"})
    by_sort = _ms_by_sort(cell, requested)
    fresh = [each for sort, each in by_sort.items() if sort.endswith(_FRESH) and each is not None]
    measured = cell.measured_requests
    asked = requested.numbers[measured["seq"][measured["sent_ns"] != UNKNOWN]]
    figures = ImageFigures(
        sent=int(asked["images"].sum()),
        sent_bytes=int(asked["image_bytes"].sum()),
        ms_by_sort=by_sort,
        cache_hit_rate=_hit_rate(cell.facts.server_counters),
    )
    lacking = {} if fresh else {"image_ms": "no fresh images, or only one count of them, were answered"}
    return Figures(image_ms=fmean(fresh) if fresh else None, images=figures, nulls=lacking)


def _ms_by_sort(cell: CellView, requested: RequestTable) -> dict[str, float | None]:
    """TTFT per image: of requests with the most images less those with the fewest, by their medians."""
    rows = requested.numbers[cell.requests["seq"]]
    kinds = np.array(requested.kinds, object)[cell.requests["seq"]]
    medians: dict[str, dict[int, float]] = {}
    for kind in sorted(set(requested.kinds)):
        values = latency.values_ms(cell.part(kinds == kind))["ttft_ms"]
        values = values[np.isfinite(values)]
        if len(values):
            count = int(rows["images"][kinds == kind][0])
            medians.setdefault(kind.partition(" x ")[2], {})[count] = float(np.median(values))
    without = medians.pop("", {})
    return {sort: _slope({**without, **by_count}) for sort, by_count in medians.items()}


def _slope(medians: Mapping[int, float]) -> float | None:
    least, most = min(medians), max(medians)
    return None if least == most else (medians[most] - medians[least]) / (most - least)


def _hit_rate(counters: Mapping[str, float] | None) -> float | None:
    if not counters or "image_hits" not in counters or not counters.get("image_queries"):
        return None
    return counters["image_hits"] / counters["image_queries"]
