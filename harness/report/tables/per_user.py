"""What each backend carries at equal speed per user, a column per speed."""

from harness.model import Summary
from harness.model.numbers import number, short
from harness.model.per_user import Reach, SpeedFigure
from harness.report.findings.verdict_words import confidence
from harness.report.wording import Table, plain

_OUTSIDE: dict[Reach, str] = {
    "never so fast": "never",
    "faster at every load": "always faster",
    "not in every repeat": "some repeats",
}


def per_user_tables(summary: Summary) -> list[Table]:
    """One for each kind of load with speeds to compare at."""
    return [_table(summary, kind) for kind in dict.fromkeys(level.kind for level in summary.per_user)]


def _table(summary: Summary, kind: str) -> Table:
    levels = [level for level in summary.per_user if level.kind == kind]
    known, ratios = any(figure.interval for level in levels for figure in level.figures), confidence(summary)
    title = (
        f"output tokens/s per {levels[0].per} at equal tokens/s per user (1000 / TPOT p50), interpolated "
        f"between loads{'; 95% intervals' if known else ''}"
        f"{f', those of ratios {ratios}' if known and ratios != '95%' else ''}"
    )
    head = ("backend", *(f"{short(level.tokens_per_s_per_user)} per user" for level in levels))
    rows = [
        [plain(figures[0].label), *map(_figure, figures)]
        for figures in zip(*(level.figures for level in levels), strict=True)
    ]
    return Table(title, head, rows)


def _figure(figure: SpeedFigure) -> str:
    if figure.tokens_per_s is None:
        return _OUTSIDE[figure.reach]
    if figure.interval is None:
        return number(figure.tokens_per_s)
    return f"{number(figure.tokens_per_s)} ({number(figure.interval.low)} to {number(figure.interval.high)})"
