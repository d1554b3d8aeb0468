"""Reads traces of coding agents in Weka's form: a conversation per document, with the blocks of prompts.

`hash_ids` name the whole blocks of a prompt from its start; an id also identifies all blocks before it. An
entry of the type `subagent` has the calls of an agent that was started there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from harness.workload.traces.rows import BadRow, an_object, number
from harness.workload.traces.sessions import (
    MAIN,
    MOST_LEVELS,
    SUBAGENT,
    Begins,
    Call,
    Item,
    Thread,
    check_duration,
    checked,
)

KEYS = {"requests", "block_size"}
NO_DURATION = "calls without a duration: the whole time to the next one is waited"
NO_BLOCKS = "calls without hash_ids: they share nothing"
MOVED = "calls with a block that follows another one elsewhere: they share what is before it"


class _Seen:
    """Blocks that were read, each with the first call that had it and the block before it there."""

    def __init__(self) -> None:
        self._calls: dict[int, Call] = {}
        self._before: dict[int, int | str] = {}

    def begins(self, call: Call, ids: Sequence[int], size: int) -> tuple[Begins | None, bool]:
        """The longest beginning that an earlier call had too; None if none had. Then, whether a block follows
        another one than there.

        Remembers the blocks of `call`.
        """
        low, high = 0, len(ids)
        while low < high:  # an id identifies all blocks before it, so known ones come first
            middle = (low + high) // 2
            low, high = (middle + 1, high) if ids[middle] in self._calls else (low, middle)
        before: list[int | str] = ["", *ids]
        if moved := list(map(self._before.get, ids[:low])) != before[:low]:
            low = next(index for index in range(low) if self._before.get(ids[index]) != before[index])
        like = self._calls[ids[low - 1]] if low else None
        for index in range(low, len(ids)):
            self._calls.setdefault(ids[index], call)
            moved |= self._before.setdefault(ids[index], before[index]) != before[index]
        tokens = min(low * size, call.input_tokens, like.input_tokens) if like else 0
        return Begins(like, tokens) if like else None, moved


def threads(
    documents: Iterator[tuple[int, Any]], skipped: Counter[str], remarks: Counter[str]
) -> Iterator[Thread]:
    everywhere = _Seen()
    for _, value in documents:
        try:
            yield _conversation(an_object(value), everywhere, skipped, remarks)
        except BadRow as bad:
            skipped[str(bad)] += 1


def _conversation(
    value: Mapping[str, Any], everywhere: _Seen, skipped: Counter[str], remarks: Counter[str]
) -> Thread:
    size = value.get("block_size")
    if type(size) is not int or size < 1:
        raise BadRow("a block_size that is not a whole number above 0")
    seen = (_Seen(), everywhere) if value.get("hash_id_scope") == "global" else (_Seen(),)
    reader = _Reader(seen, size, skipped, remarks)
    items = reader.items(value.get("requests"), 0.0, MAIN, MOST_LEVELS)
    if not items:
        raise BadRow("a session without a usable call")
    return Thread.of(items)


class _Reader:
    def __init__(
        self, seen: Sequence[_Seen], size: int, skipped: Counter[str], remarks: Counter[str]
    ) -> None:
        self._seen, self._size, self._skipped, self._remarks = seen, size, skipped, remarks

    def items(self, requests: object, origin_s: float, kind: str, levels: int) -> list[Item]:
        if not isinstance(requests, list):
            raise BadRow("requests that are not a list")
        if not levels:
            raise BadRow(f"agents inside agents, more than {MOST_LEVELS} deep")
        items: list[Item] = []
        calls: list[tuple[Call, bool]] = []  # and whether its end is known
        stop = ""
        for value in requests:
            try:
                entry = an_object(value)
                if entry.get("type") == "subagent":
                    items.append(self._agent(entry, origin_s, levels))
                    continue
                call, ends = self._call(entry, origin_s, kind, stop)
            except BadRow as bad:
                self._skipped[str(bad)] += 1
                continue
            stop = str(entry.get("stop", ""))
            if calls and not calls[-1][1] and call.wait_s is not None:
                calls[-1][0].end_s = max(call.start_s - call.wait_s, calls[-1][0].start_s)
                calls[-1] = calls[-1][0], True
            calls.append((call, ends))
            items.append(call)
        self._remarks[NO_DURATION] += sum(not ends for _, ends in calls[:-1])
        return items

    def _agent(self, entry: Mapping[str, Any], origin_s: float, levels: int) -> Thread:
        after_s = number(entry.get("t"))
        began_s = origin_s + after_s
        inner = entry.get("requests")
        if not isinstance(inner, list) or not inner:
            raise BadRow("an agent without calls")
        first = inner[0].get("t") if isinstance(inner[0], dict) else None
        # Times count from the start of the agent; some files have those of the whole session.
        absolute = isinstance(first, int | float) and first >= after_s > 0
        items = self.items(inner, origin_s if absolute else began_s, SUBAGENT, levels - 1)
        if not items:
            raise BadRow("an agent without calls")
        return Thread.of(items, checked(began_s, 1, 1).at_s)

    def _call(self, entry: Mapping[str, Any], origin_s: float, kind: str, stop: str) -> tuple[Call, bool]:
        duration, wait = (entry.get(name) for name in ("api_time", "think_time"))
        at_s = number(entry.get("t"))
        if at_s < 0:
            raise BadRow("a negative time")
        row = checked(
            origin_s + at_s,
            number(entry.get("in")),
            number(entry.get("out")),
            0.0 if duration is None else number(duration),
        )
        wait_s = None if wait is None else number(wait)
        check_duration(wait_s or 0.0)
        end_s = row.at_s + (0.0 if duration is None else number(duration))
        brought = entry.get("input_types")
        tool = "tool_result" in brought if isinstance(brought, list) and brought else stop == "tool_use"
        tool = tool or kind == SUBAGENT  # no person writes to it
        call = Call(row.at_s, end_s, int(row.input_tokens), int(row.output_tokens), tool, wait_s, kind)
        ids = entry.get("hash_ids")
        if ids is None or ids == []:
            self._remarks[NO_BLOCKS] += call.input_tokens >= self._size
        elif not isinstance(ids, list) or set(map(type, ids)) != {int}:
            raise BadRow("hash_ids that are not a list of whole numbers")
        elif len(ids) not in (call.input_tokens // self._size, -(-call.input_tokens // self._size)):
            raise BadRow("blocks that do not add up to the input")
        else:
            begins, moved = zip(*(seen.begins(call, ids, self._size) for seen in self._seen), strict=True)
            # Of equal ones the first, which is of its own session: others may be left out of a run.
            call.begins = max(filter(None, begins), key=attrgetter("tokens"), default=None)
            self._remarks[MOVED] += any(moved)
        return call, duration is not None
