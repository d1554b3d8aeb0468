"""What a replay kept of a trace: the trace's own rows against the records of the server that was asked."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.factories.replays import BLOCK

Record = Mapping[str, Any]  # of the scripted server's ledger
CACHE_BLOCK = 16


@dataclass
class Asked:
    """A request of a trace. `shared`: tokens at the front that earlier ones began with, as its ids say."""

    at_s: float
    prompt: int
    answer: int
    shared: int
    after: Sequence["Asked"] = ()  # that it waits for; (): for its time
    wait_s: float = 0.0
    end_s: float = 0.0


@dataclass
class Kept:
    """The trace's side and the server's of each request that was found in the ledger. Times in ms."""

    found: list[tuple[Asked, Record]]
    others: int  # requests with an answer that no request of the trace is left for
    late: list[float] = field(default_factory=list)
    early: int = 0  # came before the last token of what they wait for was written
    wait_errors: list[float] = field(default_factory=list)


def mooncake(path: Path) -> list[Asked]:
    seen: set[int] = set()
    asked = []
    for row in sorted(map(json.loads, path.read_text().splitlines()), key=lambda row: row["timestamp"]):
        shared = _shared(row["hash_ids"], seen, BLOCK, row["input_length"])
        asked.append(Asked(row["timestamp"] / 1e3, row["input_length"], row["output_length"], shared))
    return asked


def weka(path: Path) -> list[Asked]:
    """Calls of one agent follow each other; the next one waits for the agents that it started, too."""
    asked: list[Asked] = []
    for document in map(json.loads, path.read_text().splitlines()):
        calls: list[tuple[Asked, Sequence[int]]] = []
        _walk(document["requests"], 0.0, (), calls)
        seen: set[int] = set()
        for call, ids in sorted(calls, key=lambda pair: pair[0].at_s):
            call.shared = _shared(ids, seen, document["block_size"], call.prompt)
            asked.append(call)
    return asked


def _walk(
    requests: Sequence[Record],
    origin_s: float,
    before: tuple[Asked, ...],
    calls: list[tuple[Asked, Sequence[int]]],
) -> tuple[Asked, ...]:
    """Adds the calls of an agent; returns those that ended last."""
    agents: tuple[Asked, ...] = ()
    for entry in requests:
        if entry["type"] == "subagent":
            agents += _walk(entry["requests"], entry["t"], before, calls)
            continue
        after, at_s = agents or before, origin_s + entry["t"]
        wait_s = at_s - max(one.end_s for one in after) if after else 0.0
        call = Asked(at_s, entry["in"], entry["out"], 0, after, wait_s, at_s + entry["api_time"])
        calls.append((call, entry["hash_ids"]))
        before, agents = (call,), ()
    return agents or before


def _shared(ids: Sequence[int], seen: set[int], block: int, prompt: int) -> int:
    """In whole blocks of the server's cache. `ids` are seen from now on."""
    known = next((number for number, one in enumerate(ids) if one not in seen), len(ids))
    seen.update(ids)
    return min(known * block, prompt) // CACHE_BLOCK * CACHE_BLOCK


def kept(asked: Sequence[Asked], records: Sequence[Record]) -> Kept:
    """Requests are known by the lengths of their answers, equal ones in the order of their times.

    Lateness counts from the request that was least late: a delay that all share is not seen. Of a call whose
    predecessors were not all found, neither wait nor order is known. Errors of waits have no sign.
    """
    waiting = defaultdict(list)
    for one in sorted(asked, key=lambda one: -one.at_s):
        waiting[one.answer].append(one)
    found = [
        (left.pop(), record)
        for record in sorted(records, key=lambda record: record["received_ns"])
        if (left := waiting[record["planned_tokens"]])
    ]
    by_call = {id(one): record for one, record in found}
    result = Kept(found, len(records) - len(found))
    for one, record in found:
        before = [by_call[id(earlier)] for earlier in one.after if id(earlier) in by_call]
        if not one.after:
            result.late.append(record["received_ns"] / 1e6 - one.at_s * 1e3)
        elif len(before) == len(one.after):
            waited_ms = (record["received_ns"] - max(earlier["ended_ns"] for earlier in before)) / 1e6
            result.early += any(
                record["received_ns"] < max(earlier["write_ns"], default=0) for earlier in before
            )
            result.wait_errors.append(abs(waited_ms - one.wait_s * 1e3))
    least = min(result.late, default=0.0)
    result.late = [late - least for late in result.late]
    return result
