"""What a new run has other than the one before: flags of `bench run`, with their values."""

from collections.abc import Iterable, Mapping

from harness.model.numbers import as_given

BUDGET, DURATION, REQUESTS, SEED, WORKERS = "--budget", "--duration", "--requests", "--seed", "--workers"
REPEATS, MOST, AUTO = "--repeats", "--max-repeats", "auto"
WARMUP = "--set load.warmup_requests"
LOADS = ("--concurrency", "--rate")
LONGER = 4  # times as many requests halve the noise that a cell has by chance

# By flag, of which a key of --set is one. A tuple: all loads of the new run. None: any other than before.
Value = int | float | str | tuple[float, ...] | None
Change = Mapping[str, Value]
Flags = Mapping[str, int | float | None]  # of an advice
FLAGS = (
    "Flags of a new run that the advice asks for, such as --requests or `--set KEY`, with their values; "
    "null: another than before. Not written: the advice is about something else."
)

_REPEATED = frozenset({REPEATS, MOST, BUDGET})
_OF_CELLS = frozenset({REQUESTS, DURATION, SEED, WORKERS, WARMUP})
_FIRST = (*LOADS, REPEATS)


def of_cells(change: Change) -> Change:
    """The part that measures the same better in each cell: cells at other loads need it as well."""
    return {flag: value for flag, value in change.items() if flag in _OF_CELLS}


def alters(change: Change) -> bool:
    """Whether something else would be measured at the same loads: that is the reader's decision."""
    return not _REPEATED.union(_OF_CELLS, LOADS).issuperset(change)


def united(changes: Iterable[Change]) -> dict[str, Value]:
    """One change for all: the most of each number, and all loads."""
    found: dict[str, Value] = {}
    for flag, value in (entry for change in changes for entry in change.items()):
        found[flag] = _more(found.get(flag), value)
    return found


def _more(first: Value, other: Value) -> Value:
    if isinstance(first, tuple) and isinstance(other, tuple):
        return tuple(sorted({*first, *other}))
    if isinstance(first, int | float) and isinstance(other, int | float):
        return max(first, other)
    return first if first == AUTO or other is None else other


def number(change: Change, flag: str) -> float:
    """The number of a flag; 0: it has none."""
    value = change.get(flag)
    return value if isinstance(value, int | float) else 0


def words(change: Change) -> list[str]:
    """The flags as `bench run` takes them."""
    found: list[str] = []
    for flag, value in sorted(change.items(), key=lambda entry: (*_FIRST, entry[0]).index(entry[0])):
        option, _, key = flag.partition(" ")
        text = _text(value) + ("s" if flag == BUDGET else "")
        found += [option, f"{key}={text}" if key else text]
    return found


def _text(value: Value) -> str:
    if isinstance(value, tuple):
        return ",".join(map(as_given, value))
    return "N" if value is None else value if isinstance(value, str) else as_given(value)


def advised(hint: str, change: Change) -> str:
    """The hint with the flags that it asks for."""
    return f"{hint}: {' '.join(words(change))}" if change else hint
