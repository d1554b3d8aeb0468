"""Starts of engines, phase by phase: what the scenario `cold-start` is about."""

from harness.model import Summary
from harness.report.view import groups, point_words
from harness.report.wording import Table, or_unknown, plain

SCENARIO = "cold-start"
_PHASES = ("provide_s", "load_s", "first_answer_s")
_HEAD = ("backend", "starts", "provided s", "loaded s", "first answer s")


def start_tables(summary: Summary) -> list[Table]:
    """A table per load of the median times of the engines' starts; none for other scenarios."""
    if summary.scenario != SCENARIO:
        return []
    tables = []
    for group in groups(summary):
        lines = []
        for row in group.rows:
            phases = [row.spread(f"start.{phase}") for phase in _PHASES]
            starts = max((phase.repeats for phase in phases if phase), default=0)
            times = (or_unknown(phase.median if phase else None) for phase in phases)
            lines.append([plain(row.label), str(starts), *times])
        tables.append(Table(f"{point_words(group.point)}: starts, median", _HEAD, lines))
    return tables
