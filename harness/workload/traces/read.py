"""Reads traces: Mooncake and plain JSON lines, Azure and BurstGPT tables, run folders, sessions."""

import csv
import hashlib
import io
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from harness.errors import SpecError, reason
from harness.host import paths
from harness.workload.traces import agents, recorded
from harness.workload.traces.agents import READERS, read_sessions
from harness.workload.traces.dates import seconds_of
from harness.workload.traces.documents import MOST_BYTES, long_pipe
from harness.workload.traces.recorded import read_recorded
from harness.workload.traces.rows import BadRow, Row, Source, an_object, assemble, number
from harness.workload.traces.trace import Trace

MOONCAKE_BLOCK_TOKENS = 512
_NEEDED = {  # first the time, then input and output tokens
    "mooncake": ("timestamp", "input_length", "output_length", "hash_ids"),
    "jsonl": ("at_s", "input_tokens", "output_tokens"),
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "burstgpt": ("Timestamp", "Request tokens", "Response tokens"),
}
_BLOCKS = {"mooncake": "hash_ids", "jsonl": "blocks"}

Rows = Iterator[tuple[int, Row | BadRow]]


def read_trace(path: Path, named: str = "auto", block_tokens: int = 16) -> Trace:
    """Reads a trace. `block_tokens` is the size of blocks in JSON lines, which do not state it.

    Raises SpecError for other files.
    """
    if paths.entry(path) == "folder":
        if named not in ("auto", "run"):
            raise SpecError(f"is a folder, and so not of format '{named}'", where=str(path))
        return read_recorded(path)
    if named in ("auto", *READERS) and (sessions := read_sessions(path, named)) is not None:
        return sessions
    data, text = read_text(path)
    kind = _format(text, str(path)) if named == "auto" else named
    blocks = 0
    if kind in ("mooncake", "jsonl"):
        if kind == "mooncake":
            blocks = MOONCAKE_BLOCK_TOKENS
        elif any(isinstance(line, dict) and "blocks" in line for _, line in json_lines(text)):
            blocks = block_tokens
        rows: Rows = ((line_number, _parsed(kind, value)) for line_number, value in json_lines(text))
    elif kind in ("azure", "burstgpt"):
        rows = _read_csv(text, kind, str(path))
    else:
        raise SpecError("is a file; format 'run' reads the folder of a run", where=str(path))
    return assemble(Source(str(path), kind, hashlib.sha256(data).hexdigest(), blocks), rows)


def holds_sessions(path: Path) -> bool:
    """Whether a trace has sessions of agents, by its first document. Raises SpecError."""
    folder = paths.entry(path) == "folder"
    return recorded.holds_sessions(path) if folder else agents.holds_sessions(path)


def read_text(path: Path) -> tuple[bytes, str]:
    """The bytes of a file, and their text in UTF-8. Raises SpecError."""
    try:
        if path.is_char_device():
            raise SpecError("is a device, which may have no end", where=str(path))
        is_file = paths.entry(path) == "file"
        with path.open("rb") as file:
            data = file.read(-1 if is_file else MOST_BYTES + 1)
        if len(data) > MOST_BYTES and not is_file:
            raise long_pipe(path)
        return data, data.decode("utf-8-sig")
    except FileNotFoundError:
        raise SpecError("no such file", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise SpecError(f"is not UTF-8 text: {error.reason} at byte {error.start}", where=str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise SpecError(f"cannot be read: {reason(error)}", where=str(path)) from None


def json_lines(text: str) -> Iterator[tuple[int, Any]]:
    """Yields line numbers from 1 and values, or a BadRow for a line that is not JSON; skips empty lines."""
    for line_number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield line_number, json.loads(line)
            except (ValueError, RecursionError):
                yield line_number, BadRow("not JSON")


def _format(text: str, where: str) -> str:
    """Finds the format from the keys or column names of the first line that is not empty.

    Raises SpecError.
    """
    first = next((line for line in text.split("\n") if line.strip()), "")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        value = None
    names = set(value) if isinstance(value, dict) else {name.strip() for name in first.strip().split(",")}
    for name, needed in _NEEDED.items():
        if names.issuperset(needed):
            return name
    if not first:
        raise SpecError("is empty", where=where)
    known: dict[str, Collection[str]] = {**_NEEDED, **{name: sets[0] for name, (sets, _) in READERS.items()}}
    raise SpecError(
        f"the format is not known from its first line: {first[:80]!r}",
        where=where,
        hint="; ".join(f"{name} has {', '.join(sorted(needed))}" for name, needed in known.items()),
    )


def _read_csv(text: str, kind: str, where: str) -> Rows:
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, quoting=csv.QUOTE_NONE)
    # No value of these formats needs quotes, and a lone one would swallow the rest of the file.
    try:
        missing = set(_NEEDED[kind]).difference(reader.fieldnames or ())
    except csv.Error as error:
        raise SpecError(f"not CSV: {error}", where=where) from None
    if missing:
        raise SpecError(f"has no column {', '.join(sorted(missing))}", where=where)
    while True:
        try:
            values = next(reader, None)
        except csv.Error as error:
            yield reader.line_num, BadRow(f"not CSV: {error}")
            continue
        if values is None:
            return
        yield reader.line_num, _parsed(kind, values)


def _parsed(kind: str, value: object) -> Row | BadRow:
    at, given, asked, *_ = _NEEDED[kind]
    try:
        values = an_object(value)
        at_s = (seconds_of if kind == "azure" else since_start)(values.get(at))
        if kind == "mooncake":
            at_s /= 1e3
        lengths = number(values.get(given)), number(values.get(asked))
        blocks = values.get(_BLOCKS[kind]) if kind in _BLOCKS else None
        shares = kind == "mooncake" or blocks is not None
        return Row(at_s, *lengths, _blocks(blocks) if shares else None)
    except BadRow as bad:
        return bad


def since_start(value: object) -> float:
    """A time since the beginning of a trace, in the unit of the file. Raises BadRow if it is negative."""
    time = number(value)
    if time < 0:
        raise BadRow("a negative time")
    return time


def _blocks(value: object) -> tuple[int, ...]:
    if value is None:
        raise BadRow("a value is missing")
    if not isinstance(value, list) or not all(type(item) is int for item in value):
        raise BadRow("blocks that are not a list of whole numbers")
    return tuple(value)
