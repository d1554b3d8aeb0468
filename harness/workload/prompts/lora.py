"""Assigns an adapter to each request."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, cycle
from random import Random

from harness.records.request_table import BASE, Part
from harness.spec.scenario import LoraMix
from harness.workload.prompts.request import ChatRequest


def assigned(mix: LoraMix, requests: Iterable[ChatRequest], seed: int) -> Iterator[ChatRequest]:
    """Adds an adapter to each request; its name becomes the request's kind.

    Engines keep the prefixes of adapters apart, since their weights give other keys and values.
    """
    numbers = {name: number for number, name in enumerate(mix.names)}
    for request, adapter in zip(requests, _names(mix, seed), strict=False):
        shared = tuple(
            Part(part.id * len(numbers) + numbers[adapter], part.tokens) for part in request.shared
        )
        yield replace(request, adapter=adapter, kind=adapter or BASE, shared=shared)


def _names(mix: LoraMix, seed: int) -> Iterator[str]:
    names = mix.names
    if mix.assignment == "round-robin":
        yield from cycle(names)
    weights = mix.weights or [(rank + 1) ** -mix.zipf_exponent for rank in range(len(names))]
    chances, choice = list(accumulate(weights)), Random(seed)
    while True:
        yield choice.choices(names, cum_weights=chances)[0]
