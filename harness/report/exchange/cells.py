"""The part of a cell that each format takes."""

from collections.abc import Iterable

from harness import __version__
from harness.model import STATISTICS, CellResult, Fact, Summary
from harness.model.exchanged import (
    FACTS,
    KEY,
    REPORT_LATENCIES,
    REPORT_MORE,
    REPORT_RATES,
    Exchanged,
)
from harness.model.json_path import number_at


def latency(cell: CellResult, metric: str) -> dict[str, float]:
    """Known values by statistic."""
    known = _known(cell, (f"{metric}.{name}" for name in STATISTICS))
    return {path.rpartition(".")[2]: value for path, value in known.items()}


def rates(cell: CellResult) -> dict[str, float]:
    return _known(cell, REPORT_RATES)


def _known(cell: CellResult, names: Iterable[str]) -> dict[str, float]:
    found = {name: number_at(cell, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def issued(cell: CellResult) -> int:
    """Measured requests that were answered or failed, also before they were sent. Users who hung up and
    cancelled requests are neither: a reader takes what did not fail for answered."""
    return cell.requests.ok + cell.requests.failed


def knows(cell: CellResult, fact: Fact) -> bool:
    """Whether a fact of the cell is known: the file of another tool may not say it."""
    return cell.imported is None or fact in cell.imported.facts


def exchanged(summary: Summary, cell: CellResult, placed: set[str], measured_with: str | None) -> Exchanged:
    """`placed`: paths for which the format itself has a place. `measured_with`: the version of bench."""
    latencies = (f"{metric}.{name}" for metric in REPORT_LATENCIES for name in STATISTICS)
    known = _known(cell, (*REPORT_RATES, *REPORT_MORE, *latencies))
    return Exchanged(
        version=__version__,
        run=summary.run,
        cell=cell.cell,
        label=cell.label,
        repeat=cell.repeat,
        started_unix_ns=cell.started_unix_ns,
        model=summary.model.name if summary.model else None,
        load=cell.load,
        validity=cell.validity,
        requests=cell.requests,
        facts=tuple(fact for fact in FACTS if knows(cell, fact)),
        simulated=cell.simulated,
        tool=cell.imported.tool if cell.imported else KEY,
        tool_version=cell.imported.version if cell.imported else measured_with,
        definitions=cell.imported.definitions if cell.imported else {},
        figures={path: value for path, value in known.items() if path not in placed},
        estimates=tuple(
            estimate
            for estimate in summary.estimates
            if estimate.label == cell.label and estimate.load == cell.point
        ),
    )
