"""Says what images cost before the first token, and how often the engine found one in a cache of its own."""

from collections.abc import Mapping
from statistics import fmean

from harness.metrics.cache_hits import counted_share
from harness.metrics.latency import median_ms
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
        cache_hit_rate=counted_share(cell.facts.server_counters, "image_hits", "image_queries"),
    )
    lacking = {} if fresh else {"image_ms": "no fresh images, or only one count of them, were answered"}
    return Figures(image_ms=fmean(fresh) if fresh else None, images=figures, nulls=lacking)


def _ms_by_sort(cell: CellView, requested: RequestTable) -> dict[str, float | None]:
    """TTFT per image: of requests with the most images less those with the fewest, by their medians."""
    rows = requested.numbers[cell.requests["seq"]]
    kinds = requested.kinds_of(cell.requests["seq"])
    medians: dict[str, dict[int, float]] = {}
    for kind in sorted(set(requested.kinds)):
        if (median := median_ms(cell.part(kinds == kind), "ttft_ms")) is not None:
            count = int(rows["images"][kinds == kind][0])
            medians.setdefault(kind.partition(" x ")[2], {})[count] = median
    without = medians.pop("", {})
    return {sort: _slope({**without, **by_count}) for sort, by_count in medians.items()}


def _slope(medians: Mapping[int, float]) -> float | None:
    least, most = min(medians), max(medians)
    return None if least == most else (medians[most] - medians[least]) / (most - least)
