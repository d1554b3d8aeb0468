"""A trace as arrays: when each request came, how long it was, and which blocks of its prompt it shared."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from harness.errors import SpecError
from harness.records.request_table import Part

NS_PER_S = 1_000_000_000

Parts = tuple[Part, ...]
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
    parts: tuple[Parts, ...] = ()  # per request, how it begins; () where the format does not tell
    block_tokens: int = 0  # of a part, but the last one of a request; 0 where they have their own lengths
    skipped: Mapping[str, int] = field(default_factory=dict)  # lines left out, by reason
    remarks: Mapping[str, int] = field(default_factory=dict)  # lines kept, but not as they stood

    def __len__(self) -> int:
        return len(self.at_ns)

    @property
    def offsets_ns(self) -> Ints:
        """Since the first request that is here."""
        return self.at_ns - self.at_ns[0] if len(self) else self.at_ns

    @property
    def span_s(self) -> float:
        return float(self.offsets_ns[-1]) / NS_PER_S if len(self) else 0.0

    @property
    def rate_per_s(self) -> float:
        """Mean; 0 for requests of one moment."""
        return (len(self) - 1) / self.span_s if self.span_s else 0.0

    def facts(self) -> dict[str, object]:
        """What was read and what was done to it, for the run folder."""
        return {
            "file": self.source,
            "format": self.format,
            "sha256": self.sha256,
            "lines": self.lines,
            "requests": len(self),
            "span_s": self.span_s,
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
        parts=tuple(trace.parts[i] for i in kept.tolist()) if trace.parts else (),
    )


def clip(trace: Trace, max_input_tokens: int | None, max_output_tokens: int | None) -> Trace:
    """Longer requests are cut to the limits, prompts at their end: what they share at the front stays."""
    remarks = dict(trace.remarks)
    cut = {}
    for name, limit in (("input_tokens", max_input_tokens), ("output_tokens", max_output_tokens)):
        lengths = getattr(trace, name)
        cut[name] = lengths if limit is None else np.minimum(lengths, limit)
        if clipped := int(np.count_nonzero(cut[name] != lengths)):
            remarks[f"{name} above {limit}, cut"] = clipped
    parts = trace.parts
    if max_input_tokens is not None:
        parts = tuple(cut_short(path, max_input_tokens) for path in parts)
    return replace(trace, **cut, parts=parts, remarks=remarks)


def cut_short(path: Parts, tokens: int) -> Parts:
    """The beginning of a path that has so many tokens."""
    kept = []
    for part in path:
        if tokens <= 0:
            break
        kept.append(Part(part.id, min(part.tokens, tokens)))
        tokens -= part.tokens
    return tuple(kept)
