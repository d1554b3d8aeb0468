"""Orders recorded sessions of agents, which are trees of calls, and finds what each call waits for.

A thread has the calls of one agent, and the threads of agents that it started. An item waits for those items
of its thread that ended last before it began; for a thread, that means its last calls. So parallel calls and
agents wait for the same call, and the call after them waits for all of them.
"""

import heapq
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from harness.records.request_table import PREVIOUS, After
from harness.workload.traces.rows import FAR, MAX_SPAN_S, BadRow, Row, Source, check, unusable
from harness.workload.traces.trace import NS_PER_S, Calls, Trace, relinked

MAIN, SUBAGENT = "main", "subagent"
MOST_LEVELS = 20  # of agents inside agents
AT_ONCE = "sessions that begin at one moment: --concurrency N keeps N of them going"


class Begins(NamedTuple):
    """Beginning of a prompt: the first `tokens` of the prompt of another call."""

    like: "Call"
    tokens: int


@dataclass(eq=False, slots=True)
class Call:
    """One request to a model. Times are in seconds on the clock of its session."""

    start_s: float
    end_s: float
    input_tokens: int
    output_tokens: int
    tool: bool = False  # it brings the result of a tool, else the message of a person
    wait_s: float | None = None  # as the file gives it; None: since the end of the calls it waits for
    kind: str = MAIN
    begins: Begins | None = None
    number: int = -1  # among all calls of the file
    waits_for: "tuple[Call, ...]" = ()  # (): for the start of the session


@dataclass(eq=False, slots=True)
class Thread:
    """The work of one agent: at least one call, or thread of an agent that it started.

    It lasts from the first start of its items to the last end, unless the file states an earlier start.
    """

    items: "list[Call | Thread]"
    start_s: float
    end_s: float
    levels: int = 1  # of threads, this one included

    @classmethod
    def of(cls, items: "list[Call | Thread]", start_s: float | None = None) -> "Thread":
        first, last = min(item.start_s for item in items), max(item.end_s for item in items)
        levels = 1 + max((item.levels for item in items if isinstance(item, Thread)), default=0)
        return cls(items, first if start_s is None else start_s, last, levels)


Item = Call | Thread


def checked(at_s: float, input_tokens: float, output_tokens: float, duration_s: float = 0.0) -> Row:
    """A row of checked values. Raises BadRow for values that no call can have."""
    check_duration(duration_s)
    return check(Row(at_s, input_tokens, output_tokens), 0)


def check_duration(duration_s: float) -> None:
    """Raises BadRow for a negative duration, or one longer than any trace."""
    if duration_s < 0:
        raise BadRow("a negative time")
    if not duration_s <= MAX_SPAN_S:
        nan = duration_s != duration_s
        raise BadRow("a value is not a number" if nan else "a call that lasts over 400 days")


def lay_out(thread: Thread) -> list[Call]:
    """Sets what the calls of a thread wait for, and returns them in order of their starts."""
    calls: list[Call] = []
    _walk(thread, (), calls)
    calls.sort(key=lambda call: call.start_s)  # stable: `_walk` meets nothing before what it waits for
    return calls


def _walk(thread: Thread, inherited: tuple[Call, ...], calls: list[Call]) -> tuple[Call, ...]:
    """Sets what each call waits for, the first ones for `inherited`; returns calls that none waits for."""
    running: list[tuple[float, int, tuple[Call, ...], float]] = []  # end, number, last calls, start
    frontier: list[tuple[float, float, tuple[Call, ...]]] = []  # ended, with no ended item after them
    last_start = -float("inf")
    items = sorted(thread.items, key=lambda item: item.start_s)
    for number, item in enumerate(items):
        moved = False
        while running and running[0][0] <= item.start_s:
            end, _, last, start = heapq.heappop(running)
            frontier.append((end, start, last))
            last_start, moved = max(last_start, start), True
        if moved:
            frontier = [entry for entry in frontier if entry[0] > last_start or entry[1] == last_start]
        before = tuple(call for _, _, last in frontier for call in last) or inherited
        if isinstance(item, Call):
            item.waits_for = before
            calls.append(item)
            last = (item,)
        else:
            last = _walk(item, before, calls)
        heapq.heappush(running, (item.end_s, number, last, item.start_s))
    latest = max((start for _, _, _, start in running), default=last_start)
    ends = [*frontier, *((end, start, last) for end, _, last, start in running)]
    return tuple(call for end, start, last in ends if end > latest or start == latest for call in last)


@dataclass(slots=True)
class Columns:
    """Calls of the sessions that were read so far, as arrays: a file may have millions."""

    at_ns: "array[int]" = field(default_factory=lambda: array("q"))
    lengths: "array[int]" = field(default_factory=lambda: array("q"))  # input, output
    # Waits for tools and for a person in ns; the call whose prompt it begins with, -1: none; tokens of that.
    links: "array[int]" = field(default_factory=lambda: array("q"))
    after: list[After] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # position of each session's first call
    begun_s: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, thread: Thread, skipped: Counter[str]) -> None:
        """Leaves out calls that no trace can hold together, and counts them in `skipped`."""
        calls = lay_out(thread)
        if calls[-1].start_s - calls[0].start_s > MAX_SPAN_S:
            near = lay_out(Thread.of(_near(thread, calls[len(calls) // 2].start_s)))
            skipped[FAR] += len(calls) - len(near)
            calls = near
        origin_s, start = calls[0].start_s, len(self.kinds)
        self.starts.append(start)
        self.begun_s.append(origin_s)
        for number, call in enumerate(calls, start):
            call.number = number
        for call in calls:
            self.at_ns.append(round((call.start_s - origin_s) * NS_PER_S))
            self.lengths.extend((call.input_tokens, call.output_tokens))
            self.links.extend(_links(call, start, origin_s))
            after = tuple(sorted({call.number - earlier.number for earlier in call.waits_for})) or (0,)
            self.after.append(PREVIOUS if after == PREVIOUS or call.number == start else after)
            self.kinds.append(call.kind)


def _near(thread: Thread, middle_s: float) -> list[Item]:
    """The items of a thread without calls that are too far from the time `middle_s`."""
    items: list[Item] = []
    for item in thread.items:
        if isinstance(item, Thread):
            inner = _near(item, middle_s)
            items += [Thread.of(inner, item.start_s)] if inner else []
        elif abs(item.start_s - middle_s) <= MAX_SPAN_S:
            items.append(item)
    return items


def _links(call: Call, start: int, origin_s: float) -> tuple[int, int, int, int]:
    since_s = max((earlier.end_s for earlier in call.waits_for), default=origin_s)
    wait_s = max(call.start_s - since_s, 0.0) if call.wait_s is None else call.wait_s
    wait_ns = round(wait_s * NS_PER_S) if call.number > start else 0
    like, kept = call.begins or (call, 0)
    base = like.number if kept else -1  # -1 too of a call that is left out
    return *((wait_ns, 0) if call.tool else (0, wait_ns)), base, kept if base >= 0 else 0


def read_columns(threads: Iterable[Thread], skipped: Counter[str]) -> Columns:
    columns = Columns()
    for thread in threads:
        columns.add(thread, skipped)
    return columns


def assemble_sessions(
    source: Source, columns: Columns, skipped: Counter[str], remarks: Counter[str]
) -> Trace:
    """Builds a trace of sessions in order of time. Raises SpecError if most calls are unusable."""
    count = len(columns.kinds)
    lines = count + skipped.total()
    if not count:
        raise unusable(source, lines, skipped, {})
    begun_s = np.array(columns.begun_s)
    sane = np.abs(begun_s - np.median(begun_s)) <= MAX_SPAN_S
    sizes = np.diff([*columns.starts, count])
    if absurd := int(sizes[~sane].sum()):
        skipped[FAR] += absurd
    if skipped.total() > lines / 2:
        raise unusable(source, lines, skipped, {})
    chosen = [int(i) for i in np.argsort(begun_s, kind="stable") if sane[i]]
    order = np.concatenate([np.arange(columns.starts[i], columns.starts[i] + sizes[i]) for i in chosen])
    of_session, own = begun_s[chosen], sizes[chosen]
    begun_ns = np.round((of_session - of_session[0]) * NS_PER_S).astype(np.int64)
    if len(chosen) > 1 and not begun_ns.any():
        remarks[AT_ONCE] += len(chosen)
    lengths, of_file = _table(columns.lengths, 2)[order], _table(columns.links, 4)
    links = of_file[order]
    base, kept = relinked(order, of_file[:, 2], of_file[:, 3])
    session = np.repeat(np.arange(len(chosen)), own)
    first = np.concatenate([[0], np.cumsum(own)[:-1]])
    return Trace(
        source=source.path,
        format=source.format,
        sha256=source.sha256,
        lines=lines,
        at_ns=np.repeat(begun_ns, own) + np.array(columns.at_ns, np.int64)[order],
        input_tokens=lengths[:, 0],
        output_tokens=lengths[:, 1],
        block_tokens=source.block_tokens,
        skipped=dict(skipped),
        remarks={text: count for text, count in remarks.items() if count},
        calls=Calls(
            session=session,
            turn=np.arange(len(order)) - first[session],
            tool_ns=links[:, 0],
            think_ns=links[:, 1],
            base=base,
            kept=kept,
            after=tuple(columns.after[i] for i in order.tolist()),
            kinds=tuple(columns.kinds[i] for i in order.tolist()),
        ),
    )


def _table(values: "array[int]", width: int) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    return np.array(values, np.int64).reshape(-1, width)
