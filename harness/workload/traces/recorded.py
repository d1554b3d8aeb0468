"""Reads a run of bench as a trace: requests of one cell, when they were due, and what they shared."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.errors import SpecError
from harness.model import CellFacts
from harness.records.layout import GENERATED, UNKNOWN, EventKind, Outcome, Phase, Records
from harness.records.request_table import PREVIOUS, Part, RequestTable
from harness.store import RunFolder
from harness.workload.traces.rows import BadRow, Row, Source, assemble
from harness.workload.traces.sessions import Begins, Call, Thread, assemble_sessions, read_columns
from harness.workload.traces.trace import NS_PER_S, Calls, Parts, Trace, only

NOT_BEGUN = "of a session that had not begun, or of the warm-up"
NO_BEGINNING = "of a chat of which an earlier turn is left out"
NOT_ANSWERED = "not answered, or without token counts"


def read_recorded(path: Path) -> Trace:
    """Reads the first cell of a run folder, or the folder of a cell. Raises SpecError for others."""
    run, cell = _cell(path)
    records, facts = run.read_cell(cell)
    trace = _read(run, cell, records, facts)
    had = {
        "images": facts.workload.images,
        "LoRA adapters": facts.workload.adapters,
        "constraints": facts.request.shapes,
        "tools": facts.request.tools,
    }
    if without := ", ".join(what for what, known in had.items() if known):
        remark = f"requests as their text alone, without the {without} of the run"
        trace = replace(trace, remarks={**trace.remarks, remark: len(trace)})
    return trace


def _read(run: RunFolder, cell: str, records: Records, facts: CellFacts) -> Trace:
    requested = run.read_requested(facts)
    if requested is not None and requested.has_calls():
        return _as_sessions(run, cell, records.requests, requested)
    sha256 = run.files.sha256(f"cells/{cell}/requests.parquet")
    source = Source(str(run.cell_path(cell)), "run", sha256)
    if requested is not None and _all_chats(requested):
        skipped: Counter[str] = Counter()
        columns = read_columns(_chats(records, requested, skipped), skipped)
        return assemble_sessions(source, columns, skipped, Counter())
    rows = _as_asked(records.requests, requested) if requested else _as_counted(records.requests, facts)
    return assemble(source, rows)


def holds_sessions(path: Path) -> bool:
    """Whether the run replayed recorded sessions. Raises SpecError as `read_recorded` does."""
    run, cell = _cell(path)
    requested = run.read_requested(run.read_cell(cell)[1])
    return requested is not None and requested.has_calls()


def _as_sessions(run: RunFolder, cell: str, requests: NDArray[np.void], requested: RequestTable) -> Trace:
    """The sessions that had begun in the measured part, whole, as they were asked for."""
    numbers = requested.numbers
    begun_ns = np.full(len(requested), UNKNOWN, np.int64)
    begun_ns[requests["seq"]] = np.where(requests["phase"] == Phase.MEASURE, requests["intended_ns"], UNKNOWN)
    first = np.searchsorted(numbers["session"], numbers["session"])
    kept = np.flatnonzero(begun_ns[first] != UNKNOWN)
    if not len(kept):
        raise SpecError("holds no measured session", where=str(run.cell_path(cell)))
    calls = Calls(
        session=numbers["session"],
        turn=numbers["turn"],
        tool_ns=numbers["tool_ns"],
        think_ns=numbers["think_ns"],
        base=numbers["base"],
        kept=numbers["kept"],
        after=tuple(requested.after) or (PREVIOUS,) * len(requested),
        kinds=tuple(requested.kinds),
    )
    trace = Trace(
        source=str(run.cell_path(cell)),
        format="run",
        sha256=run.files.sha256(f"cells/{cell}/requests.parquet"),
        lines=len(requested),
        at_ns=begun_ns[first] - begun_ns[first[kept[0]]],
        input_tokens=numbers["kept"] + numbers["content_tokens"],
        output_tokens=numbers["max_tokens"],
        skipped={NOT_BEGUN: len(requested) - len(kept)} if len(kept) < len(requested) else {},
        calls=calls,
    )
    return only(trace, kept)


def _all_chats(requested: RequestTable) -> bool:
    numbers = requested.numbers
    return bool((numbers["session"] >= 0).all() and (numbers["turn"] > 0).any())


def _chats(records: Records, requested: RequestTable, skipped: "Counter[str]") -> Iterator[Thread]:
    """Yields measured chats as sessions. A turn has the turn before it, the answer to that, and new text."""
    chats: dict[int, list[Call]] = {}
    openings: dict[Parts, Call] = {}
    carried: dict[int, int] = {}  # tokens of each chat that its next prompt has: no reasoning
    for row, thoughts in zip(records.requests, _reasoning_tokens(records), strict=True):
        seq, output = int(row["seq"]), int(row["output_tokens"])
        numbers = requested.numbers[seq]
        chat = int(numbers["session"])
        calls = chats.setdefault(chat, [])
        if row["phase"] != Phase.MEASURE:
            continue
        if row["outcome"] != Outcome.OK or UNKNOWN in (int(row["intended_ns"]), output):
            skipped[NOT_ANSWERED] += 1
            continue
        if len(calls) != numbers["turn"]:
            skipped[NO_BEGINNING] += 1
            continue
        given, before = int(numbers["content_tokens"]) + carried.get(chat, 0), calls[-1] if calls else None
        carried[chat] = given + max(output - thoughts, 0)
        call = Call(
            int(row["intended_ns"]) / NS_PER_S,
            int(row["end_ns"]) / NS_PER_S,
            given,
            output,
            tool=_brings_a_result(requested, seq) if before else False,
        )
        call.begins = (
            Begins(before, before.input_tokens) if before else _opening(requested.shared[seq], openings)
        )
        calls.append(call)
        for parts in range(len(requested.shared[seq])):
            openings.setdefault(requested.shared[seq][: parts + 1], call)
    yield from (Thread.of(list(calls)) for calls in chats.values() if calls)


def _reasoning_tokens(records: Records) -> list[int]:
    """Tokens of reasoning in each answer: as the server counts them, else by their part of the letters."""
    rows, letters = records.requests, np.zeros((2, records.seq_count))
    for block in records.event_blocks():
        for row, kinds in zip(letters, ((EventKind.REASONING,), GENERATED), strict=True):
            text = block[np.isin(block["kind"], kinds)]
            row += np.bincount(text["seq"], text["text_chars"], minlength=records.seq_count)
    reasoning, whole = letters[:, rows["seq"]]
    counted = rows["reasoning_tokens"]
    by_letters = np.rint(rows["output_tokens"] * reasoning / np.maximum(whole, 1))
    tokens: list[int] = np.where(counted == UNKNOWN, by_letters, counted).astype(np.int64).tolist()
    return tokens


def _brings_a_result(requested: RequestTable, seq: int) -> bool:
    """Whether the turn before was to call a tool, so that this one brings its result."""
    expected = int(requested.numbers["expected"][seq - 1])
    return expected >= 0 and requested.expectations[expected].check == "tool_call"


def _opening(path: Parts, openings: dict[Parts, Call]) -> Begins | None:
    """The beginning that a chat shares with an earlier one; None if it shares none."""
    known = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in openings), ())
    return Begins(openings[known], sum(part.tokens for part in known)) if known else None


def _cell(path: Path) -> tuple[RunFolder, str]:
    folder = path.resolve()
    of_cell = RunFolder(folder.parent.parent)
    if folder.parent.name == "cells" and of_cell.has(f"cells/{folder.name}/cell.json"):
        of_cell.files.check()
        return of_cell, folder.name
    run = RunFolder(path)
    run.files.check()
    cells = run.cells()
    if not cells:
        raise SpecError("is not the folder of a run, or of a cell of one", where=str(path))
    return run, cells[0]


def _as_asked(requests: NDArray[np.void], requested: RequestTable) -> Iterator[tuple[int, Row | BadRow]]:
    """Yields requests with the lengths that were asked for.

    A later turn has the earlier one and its answer. A request on which its user hung up has the answer that
    it asked for.
    """
    unused = count(1 + max((part.id for path in requested.shared for part in path), default=0))
    history: dict[int, Parts] = {}
    numbers = requested.numbers
    for row in requests:
        seq, output = int(row["seq"]), int(row["output_tokens"])
        if row["outcome"] == Outcome.ABANDONED:
            output = int(numbers["max_tokens"][seq])
        measured = row["phase"] != Phase.WARMUP
        if UNKNOWN in (int(row["intended_ns"]), output):
            if measured:
                yield seq, BadRow(NOT_ANSWERED)
            continue
        session, own = int(numbers["session"][seq]), int(numbers["content_tokens"][seq])
        path, new = requested.shared[seq], own
        if numbers["turn"][seq] > 0:
            path = history.get(session, ())
        else:
            new -= sum(part.tokens for part in path)
        if session >= 0:
            path = (*path, Part(next(unused), new))
            history[session] = (*path, Part(next(unused), output))
            length = sum(part.tokens for part in path)
        else:
            length = own
        if measured:
            yield seq, Row(int(row["intended_ns"]) / 1e9, length, output, parts=path)


def _as_counted(requests: NDArray[np.void], facts: CellFacts) -> Iterator[tuple[int, Row | BadRow]]:
    """Yields requests with the lengths that the server counted, less the mean of its chat template."""
    rows = requests[requests["phase"] != Phase.WARMUP]
    counted = rows["prompt_tokens"][rows["prompt_tokens"] != UNKNOWN]
    template = 0
    if len(counted) and facts.workload.exact_lengths:
        template = max(round(float(counted.mean()) - facts.workload.content_tokens_mean), 0)
    for row in rows:
        keys = ("intended_ns", "prompt_tokens", "output_tokens")
        intended_ns, prompt, output = (int(row[key]) for key in keys)
        if UNKNOWN in (intended_ns, prompt, output):
            yield int(row["seq"]), BadRow(NOT_ANSWERED)
        else:
            yield int(row["seq"]), Row(intended_ns / 1e9, prompt - template, output)
