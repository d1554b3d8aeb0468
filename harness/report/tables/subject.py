"""What a scenario is about, where the first table lacks it: phases of a start, the time of a whole batch."""

from harness.model import Summary
from harness.report.view import groups, point_words
from harness.report.wording import Table, or_unknown, plain

# By scenario: the title, the head, and the paths of the times, in seconds.
_SUBJECTS = {
    "cold-start": (
        "starts",
        ("backend", "starts", "provided s", "loaded s", "first answer s"),
        ("start.provide_s", "start.load_s", "start.first_answer_s"),
    ),
    "offline-batch": ("all answered", ("backend", "repeats", "makespan s"), ("makespan_s",)),
}


def subject_tables(summary: Summary) -> list[Table]:
    """A table per load of median times; none for scenarios that the first table says all about."""
    if summary.scenario not in _SUBJECTS:
        return []
    title, head, paths = _SUBJECTS[summary.scenario]
    tables = []
    for group in groups(summary):
        lines = []
        for row in group.rows:
            spreads = [row.spread(path) for path in paths]
            repeats = max((spread.repeats for spread in spreads if spread), default=0)
            times = (or_unknown(row.median(path)) for path in paths)
            lines.append([plain(row.label), str(repeats), *times])
        tables.append(Table(f"{point_words(group.point)}: {title}, median", head, lines))
    return tables
