"""Requests from a trace of sessions: a prompt is the beginning of an earlier one, and a text of its own."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from harness.workload.prompts.request import CallPlace, ChatRequest
from harness.workload.prompts.text import TextMaker
from harness.workload.traces import Calls, Trace


def replay_calls(trace: Trace, calls: Calls, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    given, kept = trace.input_tokens.tolist(), calls.kept.tolist()
    owners, cuts = _owners(calls.base.tolist(), kept)
    stretches = [_stretches(given[i] - kept[i], cuts.get(i, ())) for i in range(len(trace))]
    opening = texts.stream(
        (lengths[0] for lengths, start in zip(stretches, kept, strict=True) if lengths and not start),
        Random(random.random()),
    )
    more = texts.stream(
        (one for lengths, start in zip(stretches, kept, strict=True) for one in lengths[not start :]),
        Random(random.random()),
        continuing=True,
    )
    chars: dict[tuple[int, int], int] = {}  # of a prompt up to where another one leaves it
    columns = (
        *(calls.session, calls.turn, calls.tool_ns, calls.think_ns, calls.base),
        *(trace.at_ns, trace.output_tokens),
    )
    for place, (session, turn, tool_ns, think_ns, base, at_ns, asked) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        start = chars.get((owners[place], kept[place]), 0)
        pieces: list[str] = []
        tokens, length = kept[place], start
        for number, count in enumerate(stretches[place]):
            pieces.append(next(more if number or kept[place] else opening))
            tokens, length = tokens + count, length + len(pieces[-1])
            chars[place, tokens] = length
        yield ChatRequest(
            (("user", "".join(pieces)),),
            asked,
            content_tokens=given[place] - kept[place],
            kind=calls.kinds[place],
            session=session,
            turn=turn,
            at_ns=at_ns,
            call=CallPlace(
                calls.after[place],
                tool_ns,
                think_ns,
                base,
                kept[place],
                start,
            ),
        )


def _owners(base: list[int], kept: list[int]) -> tuple[list[int], dict[int, set[int]]]:
    """Of each prompt the one whose own text holds the end of what it keeps; by owner where that is cut."""
    owners = list(range(len(base)))
    cuts: dict[int, set[int]] = {}
    for place, tokens in enumerate(kept):
        if not tokens:
            continue
        owner = place - base[place]
        while kept[owner] >= tokens:
            owner -= base[owner]
        owners[place] = owner
        cuts.setdefault(owner, set()).add(tokens - kept[owner])
    return owners, cuts


def _stretches(length: int, cuts: "set[int] | tuple[int, ...]") -> list[int]:
    """Lengths of the parts that a text of `length` tokens is divided into."""
    ends = sorted({0, *(cut for cut in cuts if cut < length), length})
    return [stop - start for start, stop in pairwise(ends)]
