"""Makes a light steady stream of requests, and heavy ones that disturb it for a while."""

from collections.abc import Iterator
from itertools import islice
from random import Random

from harness.records.request_table import ALONE, BESIDE, HEAVY, SETTLING
from harness.spec.scenario.synthetic import Victim
from harness.workload.prompts.request import ChatRequest
from harness.workload.prompts.text import TextMaker

_NS = 1_000_000_000


def victim(spec: Victim, count: int, random: Random, texts: TextMaker) -> Iterator[ChatRequest]:
    """Yields `count` requests of all classes together, in order of time."""
    planned = list(islice(_times(spec, count), count))
    sizes = {True: (spec.heavy_input_tokens, spec.heavy_output_tokens)}
    lengths = [sizes.get(kind == HEAVY, (spec.input_tokens, spec.output_tokens)) for _, kind in planned]
    stream = texts.stream((given for given, _ in lengths), random)
    for (at_s, kind), (given, asked), text in zip(planned, lengths, stream, strict=True):
        yield ChatRequest((("user", text),), asked, given, kind=kind, at_ns=round(at_s * _NS))


def stretch_s(spec: Victim, count: int) -> float:
    """Returns the time of each of the four stretches that together have about `count` requests."""
    fits = count / (4 / spec.every_s + 2 / spec.heavy_every_s)
    return max(1, round(fits / spec.every_s)) * spec.every_s


def _times(spec: Victim, count: int) -> Iterator[tuple[float, str]]:
    """Yields times and classes of both streams.

    The first heavy request is half-way between two light ones.
    """
    stretch = stretch_s(spec, count)
    light = [(number * spec.every_s, "") for number in range(count)]
    first = stretch + spec.every_s / 2
    heavy = [(first + number * spec.heavy_every_s, HEAVY) for number in range(count)]
    both = [*light, *((at, kind) for at, kind in heavy if at < 3 * stretch)]
    last = max((at for at, kind in both if kind), default=0.0)
    for at, kind in sorted(both):
        quiet = at < stretch or at >= last + spec.settle_s
        yield at, kind or (ALONE if quiet else BESIDE if at < 3 * stretch else SETTLING)
