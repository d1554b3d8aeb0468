"""How long the cells of a plan take: by their schedule, by a duration, and by earlier runs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from statistics import median

from harness.errors import SpecError
from harness.model import LoadPoint, PlannedCell, Summary
from harness.model.numbers import as_given, counted
from harness.plan import Cell, all_requests, warmup_requests
from harness.run.setup.prepare import Prepared
from harness.run.setup.sending import sending_s
from harness.store import stored_runs
from harness.workload.traces import Trace, window

# Seconds per request in the cells of each run, by backend, launch and load.
History = dict[tuple[str, str, LoadPoint], dict[str, list[float]]]


def expected(prepared: Prepared) -> tuple[tuple[PlannedCell, ...], float | None, bool]:
    """The cells, the seconds of all, and whether these have the warm-ups that come before a duration."""
    history: History = {}
    search_s: float | None = None
    for run, summary in _earlier(prepared):
        _remember(history, run, summary, prepared)
        if prepared.probe_sizes is not None:
            search_s = _searched_s(prepared, summary) or search_s
    plan = [cell for block in prepared.plan for cell in block.cells]
    cells = tuple(_planned(prepared, cell, history) for cell in plan)
    timed = prepared.scenario.load.duration_s is not None
    known = not timed or all(_warm_s(prepared, cell, history) is not None for cell in plan)
    return cells, _all_s(cells) if prepared.probe_sizes is None else search_s, known


def _all_s(cells: Sequence[PlannedCell]) -> float | None:
    known = [cell.expected_s for cell in cells if cell.expected_s is not None]
    return sum(known) if len(known) == len(cells) else None


def _searched_s(prepared: Prepared, summary: Summary) -> float | None:
    """The time of such a search: it measures few of its loads, and which is not known ahead."""
    highest = prepared.plan[0].cells[-1].load
    wanted = {(backend.label, backend.launch.mode) for backend in prepared.backends}
    like = (
        each for each in summary.capacity or () if (each.kind, each.highest) == (highest.kind, highest.value)
    )
    if summary.state not in ("complete", "invalid") or not any(like):
        return None
    cells = [cell for cell in summary.cells if (cell.label, cell.launch) in wanted]
    if len({cell.label for cell in cells}) < len(wanted):
        return None
    return sum(cell.client.wall_s or 0.0 for cell in cells)


def _requests(prepared: Prepared, cell: Cell) -> tuple[int, str]:
    """How many the cell sends at most, and that in words."""
    sizes, source = prepared.probe_sizes, prepared.source
    count = all_requests(prepared.scenario, cell.load, sizes.long(cell.load) if sizes else None)
    if source is not None:
        count = min(count, len(source))
    if not isinstance(source, Trace):
        return count, counted(count, "request")
    sent, held = len(window(source, max_requests=count)), counted(source.lines, "request")
    return count, f"{held if sent == source.lines else f'{sent} of {held}'} of the trace"


def _planned(prepared: Prepared, cell: Cell, history: History) -> PlannedCell:
    load = prepared.scenario.load
    count, requests = _requests(prepared, cell)
    label = prepared.of(cell).label
    words = {
        "concurrency": "in flight",
        "rate": "requests/s",
        "trace": "times the trace's pace",
        "working-set": "times the KV cache",
    }
    point = f"{as_given(cell.load.value)} {words[cell.load.kind]}"
    seen = _seen(prepared, cell, history)
    expected = sending_s(prepared.scenario, cell.load, count, prepared.source)
    if cell.load.kind == "rate":
        basis = f"{requests} at {'a rate that changes' if load.profile else 'this rate'}"
    elif seen and expected is None:
        expected, basis = (
            _request_s(seen) * count,
            f"{counted(len(seen), 'earlier run')} of this scenario in {prepared.options.out}",
        )
    elif cell.load.kind == "working-set" and cell.load.value and load.kv_tokens is None:
        basis = f"{counted(load.requests, 'request')} after one of each prefix"
    else:
        basis = requests
    warm_s = _warm_s(prepared, cell, history)
    closes_s = None if load.duration_s is None else load.duration_s + (warm_s or 0.0)
    if closes_s is not None and (expected is None or expected > closes_s):
        sooner = f", unless {basis} end sooner" if expected is None else ""
        warmup = warmup_requests(prepared.scenario, cell.load)
        after = f" after {counted(warmup, 'request')} of warm-up" if warmup else ""
        expected, basis = closes_s, f"--duration{after}{sooner}"
    return PlannedCell(cell=cell.name, backend=label, load=point, expected_s=expected, basis=basis)


def _warm_s(prepared: Prepared, cell: Cell, history: History) -> float | None:
    """Time before a duration begins; None: how fast the server answers is not known."""
    warmup = warmup_requests(prepared.scenario, cell.load)
    if not warmup:
        return 0.0
    seen = _seen(prepared, cell, history)
    planned_s = sending_s(prepared.scenario, cell.load, warmup, prepared.source)
    return _request_s(seen) * warmup if seen and planned_s is None else planned_s


def _seen(prepared: Prepared, cell: Cell, history: History) -> Mapping[str, list[float]]:
    """Seconds per request of such cells in each earlier run; none where it was not measured."""
    backend = prepared.of(cell)
    return history.get((backend.label, backend.launch.mode, cell.load), {})


def _request_s(seen: Mapping[str, list[float]]) -> float:
    return median(chain(*seen.values()))


def _remember(history: History, run: str, summary: Summary, prepared: Prepared) -> None:
    """Adds the speeds of an earlier run."""
    for cell in summary.cells:
        counts, warmup = cell.requests, cell.requests.warmup
        if cell.point.kind == "working-set" and prepared.scenario.load.kv_tokens is None:
            # No plan knows the prefixes of a cache of unknown size: their time is that of the others.
            warmup = warmup_requests(prepared.scenario, cell.point)
        requests = counts.ok + counts.abandoned + warmup
        if requests and cell.client.wall_s is not None:
            by_run = history.setdefault((cell.label, cell.launch, cell.point), {})
            by_run.setdefault(run, []).append(cell.client.wall_s / requests)


def _earlier(prepared: Prepared) -> Iterator[tuple[str, Summary]]:
    """Yields the earlier runs of this scenario. Of another one, folders can have names that end alike."""
    for folder in stored_runs(prepared.options.out, f"*-{prepared.scenario.name}-*"):
        try:
            summary = folder.read_summary()
        except SpecError:
            continue
        if summary.scenario == prepared.scenario.name:
            yield folder.path.name, summary
