"""A trace as arrays: when each request came, its lengths, and the blocks of its prompt that it shared."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from harness.errors import SpecError
from harness.records.request_table import After, Part

NS_PER_S = 1_000_000_000

Parts = tuple[Part, ...]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Calls:
    """Links between the requests of a trace of sessions, an entry per request.

    Requests of a session are consecutive, each after those it waits for. Sessions are in order of time.
    """

    session: Ints
    turn: Ints  # place in the session
    tool_ns: Ints  # wait for tools before it
    think_ns: Ints  # wait for a person before it
    base: Ints  # distance back to the request whose prompt it begins with; 0: it begins with none
    kept: Ints  # tokens of that beginning
    after: tuple[After, ...]
    kinds: tuple[str, ...]

    @property
    def begins(self) -> Ints:
        """Number of the request whose prompt each one begins with; -1: it begins with none."""
        return np.where(self.base > 0, np.arange(len(self.base)) - self.base, -1)

    def only(self, chosen: Ints) -> "Calls":
        """Keeps chosen sessions, or their beginnings, and what their prompts share with one another."""
        rows = chosen.tolist()
        base, kept = relinked(chosen, self.begins, self.kept)
        return Calls(
            session=np.unique(self.session[chosen], return_inverse=True)[1].astype(np.int64),
            turn=self.turn[chosen],
            tool_ns=self.tool_ns[chosen],
            think_ns=self.think_ns[chosen],
            base=base,
            kept=kept,
            after=tuple(self.after[i] for i in rows),
            kinds=tuple(self.kinds[i] for i in rows),
        )


def relinked(order: Ints, begins: Ints, kept: Ints, session: Ints | None = None) -> tuple[Ints, Ints]:
    """`base` and `kept` of the requests at `order`, as distances back in that order.

    `begins` and `kept` are of all requests, and name any of them. With `session` (of those at `order`), a
    request begins with none of another session.
    """
    places = np.full(len(begins), len(begins), np.int64)
    places[order] = now = np.arange(len(order))
    linked = begins[order] >= 0
    base_at = np.where(linked, places[np.maximum(begins[order], 0)], now)
    lost = linked & (base_at >= now)
    if session is not None:
        lost |= session[np.minimum(base_at, len(order) - 1)] != session
    if lost.any():
        return _linked_again(order, begins, kept, session)
    return now - base_at, np.where(linked, kept[order], 0)


def _linked_again(order: Ints, begins: Ints, kept: Ints, session: Ints | None) -> tuple[Ints, Ints]:
    """Links each request to the first before it in `order` whose prompt has most of its beginning.

    Two that begin like a third one, which may be missing in `order`, begin alike as far as both have of it.
    """
    links = list(zip(begins.tolist(), kept.tolist(), strict=True))
    found = np.zeros((2, len(order)), np.int64)
    # By request of the file: tokens of its prompt that requests so far begin with, each time more of them,
    # and which request that is.
    holders: dict[int, list[tuple[float, int]]] = {}
    for at, number in enumerate(order.tolist()):
        if session is not None and at and session[at] != session[at - 1]:
            holders.clear()
        like, tokens = number, inf
        while like >= 0 and like not in holders:
            before, shared = links[like]
            if tokens > shared:  # else all of it is of those before
                holders[like] = [(tokens, at)]
            like, tokens = before, min(tokens, shared)
        if like >= 0:
            steps = holders[like]
            most, holder = steps[min(bisect_left(steps, (tokens,)), len(steps) - 1)]
            if most < tokens:
                steps.append((tokens, at))
            found[:, at] = at - holder, min(most, tokens)
    return found[0], found[1]


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace with one entry per request, in order of time; equal times keep the order of the file."""

    source: str
    format: str
    sha256: str  # of the file's bytes
    lines: int  # requests the file holds, usable or not
    at_ns: Ints  # since the first usable request of the file
    input_tokens: Ints
    output_tokens: Ints
    parts: tuple[Parts, ...] = ()  # per request, how it begins; () if the format does not say
    block_tokens: int = 0  # of each part but the last of a request; 0: parts have lengths of their own
    skipped: Mapping[str, int] = field(default_factory=dict)  # lines left out, by reason
    # Lines kept with a change, by what changed, and those that were not asked for.
    remarks: Mapping[str, int] = field(default_factory=dict)
    calls: Calls | None = None  # of a trace of sessions
    within: int | None = None  # requests in its window, of which these are the first; None: all of them

    def __len__(self) -> int:
        return len(self.at_ns)

    @property
    def held(self) -> int:
        """Requests that there are to choose from."""
        return len(self) if self.within is None else self.within

    @property
    def offsets_ns(self) -> Ints:
        """Times since the first request of this trace, in ns."""
        return self.at_ns - self.at_ns[0] if len(self) else self.at_ns

    @property
    def span_s(self) -> float:
        return float(self.offsets_ns.max(initial=0)) / NS_PER_S

    @property
    def rate_per_s(self) -> float:
        """Mean rate; 0 if all requests came at once."""
        return (len(self) - 1) / self.span_s if self.span_s else 0.0

    def facts(self) -> dict[str, object]:
        """The file and what was read from it, for the manifest of a run."""
        return {
            "file": self.source,
            "format": self.format,
            "sha256": self.sha256,
            "lines": self.lines,
            "requests": len(self),
            "sessions": None if self.calls is None else int(self.calls.session[-1]) + 1,
            "span_s": self.span_s,
            "block_tokens": self.block_tokens or None,
            "skipped": dict(self.skipped),
            "remarks": dict(self.remarks),
        }


def window(
    trace: Trace, start_s: float = 0.0, end_s: float | None = None, max_requests: int | None = None
) -> Trace:
    """Requests from `start_s` up to, not including, `end_s`, and of these the first `max_requests`.

    Both are seconds of the trace since its first request. A session belongs to the window that it begins in,
    and is taken whole, unless it is the only one. What is left out is counted in `remarks`. Raises SpecError
    if nothing is left.
    """
    end_ns = np.inf if end_s is None else end_s * NS_PER_S
    begun_ns = trace.at_ns if trace.calls is None else trace.at_ns[_first_of(trace.calls.session)]
    inside = np.flatnonzero((begun_ns >= start_s * NS_PER_S) & (begun_ns < end_ns))
    kept = inside[:max_requests]
    if trace.calls is not None and len(kept) == max_requests:
        kept = _whole(trace.calls.session, kept)
    if not len(kept):
        span_s = float(trace.at_ns.max()) / NS_PER_S
        raise SpecError(
            f"no request between {start_s:g} s and {'its end' if end_s is None else f'{end_s:g} s'}",
            where=trace.source,
            hint=f"the trace has {len(trace)} requests over {span_s:g} s",
        )
    left_out = {
        "requests before start_s or from end_s on, left out": len(trace) - len(inside),
        f"requests after the first {len(kept)}, left out": len(inside) - len(kept),
    }
    counted = {what: count for what, count in left_out.items() if count}
    within = len(inside) if trace.within is None else trace.within
    return replace(only(trace, kept), remarks={**trace.remarks, **counted}, within=within)


def only(trace: Trace, kept: Ints) -> Trace:
    """The trace with only these requests, which are whole sessions or their beginnings."""
    if len(kept) == len(trace):
        return trace
    return replace(
        trace,
        at_ns=trace.at_ns[kept],
        input_tokens=trace.input_tokens[kept],
        output_tokens=trace.output_tokens[kept],
        parts=tuple(trace.parts[i] for i in kept.tolist()) if trace.parts else (),
        calls=None if trace.calls is None else trace.calls.only(kept),
    )


def _first_of(session: Ints) -> Ints:
    """Position of the first request of each request's session."""
    return np.searchsorted(session, session)


def _whole(session: Ints, kept: Ints) -> Ints:
    """Drops a last session that is cut short, unless it is the only one."""
    last = session[kept[-1]]
    cut = int(kept[-1]) + 1 < len(session) and session[kept[-1] + 1] == last
    whole: Ints = kept[session[kept] != last] if cut else kept
    return whole if len(whole) else kept


def clip(trace: Trace, max_input_tokens: int | None, max_output_tokens: int | None) -> Trace:
    """Cuts longer requests to the limits. Prompts are cut at their end, so that shared beginnings stay.

    A session ends before its first longer prompt, because its later prompts would all be cut to the same
    text. Raises SpecError if no session is left.
    """
    remarks = dict(trace.remarks)
    if trace.calls is not None and max_input_tokens is not None:
        trace = _ended_before(trace, trace.input_tokens > max_input_tokens, max_input_tokens, remarks)
    cut = {}
    limits = (("prompts", "input_tokens", max_input_tokens), ("answers", "output_tokens", max_output_tokens))
    for what, name, limit in limits:
        lengths = getattr(trace, name)
        cut[name] = lengths if limit is None else np.minimum(lengths, limit)
        if clipped := int(np.count_nonzero(cut[name] != lengths)):
            remarks[f"{what} above {limit} tokens, cut (prompts.max_{name})"] = clipped
    parts = trace.parts
    if max_input_tokens is not None:
        parts = tuple(cut_short(path, max_input_tokens) for path in parts)
    return replace(trace, **cut, parts=parts, remarks=remarks)


def _ended_before(trace: Trace, longer: NDArray[np.bool_], limit: int, remarks: dict[str, int]) -> Trace:
    assert trace.calls is not None
    session = trace.calls.session
    so_far = np.cumsum(longer)
    kept = np.flatnonzero(so_far == (so_far - longer)[_first_of(session)])
    if not len(kept):
        raise SpecError(
            f"no session begins with a prompt of {limit} tokens or fewer",
            where=trace.source,
            hint="--set prompts.max_input_tokens=N allows longer ones, up to the model's context",
        )
    if len(kept) < len(trace):
        what = f"calls from the first prompt above {limit} tokens on, left out (prompts.max_input_tokens)"
        remarks[what] = len(trace) - len(kept)
    return only(trace, kept)


def cut_short(path: Parts, tokens: int) -> Parts:
    """The beginning of a path with up to `tokens` tokens."""
    kept = []
    for part in path:
        if tokens <= 0:
            break
        kept.append(part if part.tokens <= tokens else Part(part.id, tokens))
        tokens -= part.tokens
    return tuple(kept)


def with_sessions(trace: Trace, max_wait_s: float | None, *, unique: bool) -> Trace:
    """Cuts waits of sessions to the limit. With `unique`, no session begins like another one."""
    calls = trace.calls
    if calls is None:
        return trace
    remarks = dict(trace.remarks)
    if max_wait_s is not None:
        limit_ns = round(max_wait_s * NS_PER_S)
        waits = {name: getattr(calls, name) for name in ("tool_ns", "think_ns")}
        if longer := sum(int(np.count_nonzero(values > limit_ns)) for values in waits.values()):
            remarks[f"waits above {max_wait_s:g} s, cut"] = longer
        calls = replace(calls, **{name: np.minimum(values, limit_ns) for name, values in waits.items()})
    if unique:
        base, kept = relinked(np.arange(len(trace)), calls.begins, calls.kept, calls.session)
        calls = replace(calls, base=base, kept=kept)
    return replace(trace, calls=calls, remarks=remarks)
