"""Turns the rows of a file into a Trace: impossible ones are left out and counted, the others sorted."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.errors import SpecError, page_address
from harness.records.request_table import Part
from harness.workload.traces.trace import NS_PER_S, Parts, Trace, cut_short

# No request of any model is longer, and no trace lasts longer: a larger value is a mistake in the file.
MAX_TOKENS = 10_000_000
MAX_SPAN_S = 400 * 86_400

FAR = f"a time more than {MAX_SPAN_S // 86_400} days from the others"
OUT_OF_ORDER = "came before the line above them, sorted by time"
REPEATED = "equal to the line above in every value, kept"


@dataclass(frozen=True, slots=True)
class Row:
    at_s: float  # any zero point
    input_tokens: float
    output_tokens: float
    # Equal ids are equal text; all of one length, the last may be cut short. None: it shares nothing.
    blocks: tuple[int, ...] | None = None
    parts: Parts = ()  # instead of blocks: stretches of any length


class BadRow(Exception):  # noqa: N818  # never an error of the program: counted, and the next line is read
    """A line that is left out; the message is the reason it is counted under."""


def an_object(value: object) -> dict[str, Any]:
    """What a line holds. Raises the BadRow that the line was read as, and one for anything but an object."""
    if isinstance(value, BadRow):
        raise value
    if not isinstance(value, dict):
        raise BadRow("not a JSON object")
    return value


def number(value: object) -> float:
    """Parses a number from JSON or CSV. Raises BadRow."""
    if value is None or value == "":
        raise BadRow("a value is missing")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadRow("a value is not a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise BadRow("a value is not a number") from None


def check(row: Row, block_tokens: int) -> Row:
    """Raises BadRow for values that no request can have."""
    given, asked = row.input_tokens, row.output_tokens
    if not (math.isfinite(row.at_s) and math.isfinite(given) and math.isfinite(asked)):
        raise BadRow("a value is not a number")
    if given < 0 or asked < 0:
        raise BadRow("a negative length")
    if given != int(given) or asked != int(asked):
        raise BadRow("a length that is not whole")
    if given == 0:
        raise BadRow("no input token")
    if asked == 0:
        raise BadRow("no output token (a request that failed when it was recorded)")
    if max(given, asked) > MAX_TOKENS:
        raise BadRow(f"a length above {MAX_TOKENS:,} tokens")
    if block_tokens and row.blocks is not None and len(row.blocks) != -(-int(given) // block_tokens):
        raise BadRow(f"blocks of {block_tokens} tokens that do not add up to the input")
    return row


@dataclass(frozen=True, slots=True)
class Source:
    path: str
    format: str
    sha256: str
    block_tokens: int = 0


def assemble(source: Source, rows: Iterable[tuple[int, Row | BadRow]]) -> Trace:
    """Builds a trace from rows with their line numbers. Raises SpecError if less than half are usable."""
    skipped: Counter[str] = Counter()
    first_bad: dict[str, int] = {}
    times, numbers = array("d"), array("q")  # of millions of lines
    paths: list[Parts] = []
    known: dict[int, Part] = {}  # whole blocks by id, one object for all that share one
    last, repeated = None, 0
    for line, row in rows:
        try:
            if isinstance(row, BadRow):
                raise row
            checked = check(row, source.block_tokens)
        except BadRow as bad:
            skipped[str(bad)] += 1
            first_bad.setdefault(str(bad), line)
            continue
        repeated += checked == last
        last = checked
        times.append(checked.at_s)
        numbers.extend((int(checked.input_tokens), int(checked.output_tokens)))
        paths.append(_path(source, checked, known))
    at_s = np.array(times)
    sane = np.abs(at_s - np.median(at_s)) <= MAX_SPAN_S if len(at_s) else np.zeros(0, bool)
    if absurd := len(sane) - int(np.count_nonzero(sane)):
        skipped[FAR] += absurd
    kept = np.flatnonzero(sane)
    lines = len(kept) + skipped.total()
    if not len(kept) or skipped.total() > lines / 2:
        raise unusable(source, lines, skipped, first_bad)
    disorder = int(np.count_nonzero(np.diff(at_s[kept]) < 0))
    order = kept[np.argsort(at_s[kept], kind="stable")]
    lengths = np.array(numbers, np.int64).reshape(-1, 2)[order]
    remarks = {OUT_OF_ORDER: disorder, REPEATED: repeated}
    return Trace(
        source=source.path,
        format=source.format,
        sha256=source.sha256,
        lines=lines,
        at_ns=np.round((at_s[order] - at_s[order[0]]) * NS_PER_S).astype(np.int64),
        input_tokens=lengths[:, 0],
        output_tokens=lengths[:, 1],
        parts=tuple(paths[i] for i in order.tolist()) if any(paths) else (),
        block_tokens=source.block_tokens,
        skipped=dict(skipped),
        remarks={text: count for text, count in remarks.items() if count},
    )


def _path(source: Source, row: Row, known: dict[int, Part]) -> Parts:
    if row.blocks is None:
        return row.parts
    whole = tuple(known.setdefault(block, Part(block, source.block_tokens)) for block in row.blocks)
    return cut_short(whole, int(row.input_tokens))


def unusable(source: Source, lines: int, skipped: Counter[str], first: dict[str, int]) -> SpecError:
    if not lines:
        return SpecError("holds no request", where=source.path)
    (reason, count), *_ = skipped.most_common(1)
    return SpecError(
        f"{skipped.total()} of {lines} lines are not usable as {source.format}; {count}: {reason}",
        where=f"{source.path}:{first[reason]}" if reason in first else source.path,
        hint=f"is this the format of the file? {page_address('traces')} shows each",
    )
