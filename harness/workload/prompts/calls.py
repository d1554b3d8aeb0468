"""Makes requests from a trace of sessions: each prompt is the beginning of an earlier one and a new text."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from harness.workload.prompts.request import CallPlace, ChatRequest
from harness.workload.prompts.text import TextMaker
from harness.workload.traces import Calls, Trace

_AT_ONCE = 4096  # rows converted to Python numbers together

Ints = NDArray[np.int64]


def json_bytes(text: str) -> int:
    """The bytes of the text inside a string of JSON, where quotes and ends of lines take two."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2


def replay_calls(trace: Trace, calls: Calls, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    own = trace.input_tokens - calls.kept
    cuts = _Cuts.of(calls.base, calls.kept, own)
    opening = texts.stream(cuts.lengths(opening=True), Random(random.random()))
    more = texts.stream(cuts.lengths(opening=False), Random(random.random()), continuing=True)
    columns = (
        *(calls.session, calls.turn, trace.at_ns, trace.output_tokens, own),
        *(calls.tool_ns, calls.think_ns, calls.base, calls.kept, cuts.of_request),
    )
    for row, (session, turn, at_ns, asked, new, tool_ns, think_ns, base, kept, cut) in enumerate(
        _rows(*columns)
    ):
        start = int(cuts.front_bytes[cut]) if cut >= 0 else 0
        pieces: list[str] = []
        length = start
        for number, (_, at) in enumerate(cuts.stretches(row)):
            pieces.append(next(more if number or kept else opening))
            length += json_bytes(pieces[-1])
            if at >= 0:
                cuts.front_bytes[at] = length
        yield ChatRequest(
            (("user", "".join(pieces)),),
            asked,
            content_tokens=new,
            kind=calls.kinds[row],
            session=session,
            turn=turn,
            at_ns=at_ns,
            call=CallPlace(calls.after[row], tool_ns, think_ns, base, kept, start),
        )


def _rows(*columns: Ints) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(columns[0]), _AT_ONCE):
        yield from zip(*(column[start : start + _AT_ONCE].tolist() for column in columns), strict=True)


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Places in a request's own text at which other prompts depart from it: there it is cut to the token."""

    own: Ints  # tokens of each request's own text
    kept: Ints
    first: Ints  # index of the first cut of each request, then the number of all cuts
    tokens: Ints  # of each cut, from the start of the own text
    front_bytes: Ints  # of the prompt in front of each cut, as JSON has it; known once that text is made
    of_request: Ints  # the cut at which its prompt departs from an earlier one; -1: it begins like none

    @classmethod
    def of(cls, base: Ints, kept: Ints, own: Ints) -> "_Cuts":
        owner = np.arange(len(base)) - base
        while (early := (kept > 0) & (kept[owner] >= kept)).any():  # an earlier prompt has all that is kept
            owner[early] -= base[owner[early]]
        leaves = np.flatnonzero(kept > 0)
        pairs = np.stack([owner[leaves], kept[leaves] - kept[owner[leaves]]], axis=1)
        found, which = np.unique(pairs, axis=0, return_inverse=True)
        of_request = np.full(len(base), -1, np.int64)
        of_request[leaves] = which.reshape(-1)
        first = np.searchsorted(found[:, 0], np.arange(len(base) + 1))
        return cls(own, kept, first, found[:, 1].copy(), np.zeros(len(found), np.int64), of_request)

    def stretches(self, count: int) -> Iterator[tuple[int, int]]:
        """Yields tokens of each part of a request's own text, and the cut at its end; -1: none."""
        length, numbers = int(self.own[count]), range(int(self.first[count]), int(self.first[count + 1]))
        ends = [(int(self.tokens[number]), number) for number in numbers]
        if length and (not ends or ends[-1][0] < length):
            ends.append((length, -1))
        for (before, _), (end, number) in pairwise([(0, -1), *ends]):
            yield end - before, number

    def lengths(self, *, opening: bool) -> Iterator[int]:
        """Yields lengths in tokens of the parts that open a prompt, or of all others."""
        for row, (kept,) in enumerate(_rows(self.kept)):
            for number, (tokens, _) in enumerate(self.stretches(row)):
                if (number == 0 and not kept) == opening:
                    yield tokens
