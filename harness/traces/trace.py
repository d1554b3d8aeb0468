"""A trace as arrays: when each request came, how long it was, and which blocks of its prompt it shared."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.errors import SpecError

NS_PER_S = 1_000_000_000

Blocks = tuple[int, ...]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """One entry per request, ascending in time; requests of one moment stand in the file's order."""

    source: str
    format: str
    sha256: str  # of the file's bytes
    lines: int  # requests the file holds, usable or not
    at_ns: Ints  # since the first usable request of the file
    input_tokens: Ints
    output_tokens: Ints
    blocks: tuple[Blocks, ...] = ()  # per request, equal ids are equal text; () where the format has none
    block_tokens: int = 0  # tokens of a block; the last one of a request may be cut short
    skipped: Mapping[str, int] = field(default_factory=dict)  # lines left out, by reason
    remarks: Mapping[str, int] = field(default_factory=dict)  # lines kept, but not as they stood

    def __len__(self) -> int:
        return len(self.at_ns)

    @property
    def offsets_ns(self) -> Ints:
        """Since the first request that is here."""
        return self.at_ns - self.at_ns[0] if len(self) else self.at_ns

    def facts(self) -> dict[str, Any]:
        """What was read and what was done to it, for the run folder."""
        return {
            "file": self.source,
            "format": self.format,
            "sha256": self.sha256,
            "lines": self.lines,
            "requests": len(self),
            "span_s": float(self.offsets_ns[-1]) / NS_PER_S if len(self) else 0.0,
            "block_tokens": self.block_tokens or None,
            "skipped": dict(self.skipped),
            "remarks": dict(self.remarks),
        }


def window(
    trace: Trace, start_s: float = 0.0, end_s: float | None = None, max_requests: int | None = None
) -> Trace:
    """Requests from `start_s` up to, not including, `end_s`, of these the first `max_requests`.

    Seconds of the trace's own time, since its first request. Raises SpecError when nothing is left.
    """
    end_ns = np.inf if end_s is None else end_s * NS_PER_S
    kept = np.flatnonzero((trace.at_ns >= start_s * NS_PER_S) & (trace.at_ns < end_ns))[:max_requests]
    if not len(kept):
        span_s = float(trace.at_ns[-1]) / NS_PER_S
        raise SpecError(
            f"no request between {start_s:g} s and {'its end' if end_s is None else f'{end_s:g} s'}",
            where=trace.source,
            hint=f"the trace has {len(trace)} requests over {span_s:g} s",
        )
    return replace(
        trace,
        at_ns=trace.at_ns[kept],
        input_tokens=trace.input_tokens[kept],
        output_tokens=trace.output_tokens[kept],
        blocks=tuple(trace.blocks[i] for i in kept.tolist()) if trace.blocks else (),
    )


def clip(trace: Trace, max_input_tokens: int | None, max_output_tokens: int | None) -> Trace:
    """Longer requests are cut to the limits, prompts at their end: what they share at the front stays."""
    remarks = dict(trace.remarks)
    cut = {}
    for name, limit in (("input_tokens", max_input_tokens), ("output_tokens", max_output_tokens)):
        lengths = getattr(trace, name)
        cut[name] = lengths if limit is None else np.minimum(lengths, limit)
        if clipped := int(np.count_nonzero(cut[name] != lengths)):
            remarks[f"{name} clipped to {limit}"] = clipped
    blocks = trace.blocks
    if blocks and max_input_tokens is not None:
        needed = (-(-cut["input_tokens"] // trace.block_tokens)).tolist()
        blocks = tuple(ids[:count] for ids, count in zip(blocks, needed, strict=True))
    return replace(trace, **cut, blocks=blocks, remarks=remarks)
