"""Whether the load or the server sets the pace of a cell, how arrivals came, and whether it was steady."""

from harness.metrics.arrivals import compare_cell
from harness.metrics.backlog import backlog
from harness.metrics.state import cell_state
from harness.metrics.steady import steady_state
from harness.metrics.view import CellView, Figures


def compute(cell: CellView) -> Figures:
    load = cell.facts.load
    state = cell_state(cell.timed.requests, load, cell.requested, cell.facts.client.spread_over_ns)
    return Figures(
        arrivals=compare_cell(cell.timed.requests, load, cell.requested),
        state=state.state,
        state_why=str(state.why),
        steady_state=steady_state(cell),
        backlog=backlog(cell.timed, load),
        nulls={"state": state.why} if state.state is None else {},
    )
