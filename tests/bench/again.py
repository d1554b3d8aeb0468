"""Another try, for what a busy machine may have delayed."""

from collections.abc import Callable, Iterable

Lines = list[tuple[str, bool]]  # of a table, and whether each is as expected


def again_once(measure: Callable[[], Iterable[tuple[str, bool]]]) -> Lines:
    """Measures a second time where a line of the first is not as expected, whose lines are printed then."""
    lines = list(measure())
    if all(expected for _, expected in lines):
        return lines
    print(*(line for line, _ in lines), "measured again:", sep="\n", flush=True)
    return list(measure())
