"""The Prometheus text format, as far as reading totals, gauges and histograms of known names needs it.

One pass of a compiled pattern: on 60 kB of vLLM's metrics this takes a fraction of a millisecond where
prometheus_client's parser takes tens, and it is done during a measurement.
"""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from harness.model.json_path import number_at

_LABELS = r'\{(?:[^"}\n]|"(?:[^"\\\n]|\\.)*+")*+\}'  # a value in quotes may hold a brace
_LABEL = re.compile(r'([a-zA-Z_]\w*)[ \t]*=[ \t]*"((?:[^"\\\n]|\\.)*+)"', re.ASCII)


def totals(text: str, series: Iterable[str]) -> dict[str, float]:
    """Sum over all label sets of each of `series` that occurs, and has nothing but numbers."""
    return {name: sum(values) for name, values in _samples(text, series).items()}


def read_series(text: str, counters: Mapping[str, str], gauges: Mapping[str, str]) -> dict[str, float]:
    """Values by our names, those present: `counters` and `gauges` map our names to the engine's series.

    A series with a sample that is not a number, or less than 0, counts as not there. `a + b` is a sum, of `a`
    alone where there is no `b`; `a{label="value"}` is 0 where that label of `a` has other values only.
    `a / b` is a quotient, of each label set by itself.
    """
    named = {
        name: [side.split(" + ") for side in series.split(" / ", 1)]
        for name, series in {**counters, **gauges}.items()
    }
    samples = _samples(text, [part for sides in named.values() for side in sides for part in side])
    values = {}
    for name, sides in named.items():
        found, *under = [[value for part in side for value in samples.get(part, ())] for side in sides]
        if under:
            found = _quotients(found, *under)
        if found and sides[0][0] in samples:
            values[name] = together(name, found)
    return {name: value for name, value in values.items() if 0 <= value < math.inf}


def _quotients(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Pairs label sets by their order; empty where a divisor is 0 or the two have unlike numbers of them."""
    if len(over) != len(under) or not all(under):
        return []
    return [part / whole for part, whole in zip(over, under, strict=True)]


def together(name: str, values: Sequence[float]) -> float:
    """A gauge or counter of several engines, or of the ranks of one, which have a label set each.

    A share of each one's own KV cache does not add up, and one that is full holds back.
    """
    if name == "kv_use":
        return max(values)
    return sum(values) / len(values) if name == "cache_hit_rate" else sum(values)


def whole_prompts(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the values with cached tokens in `prompt_tokens`, of an engine that counts them apart.

    Without a counter of the cached ones there is no `prompt_tokens`: the prompts are longer than it says.
    """
    whole = {name: value for name, value in values.items() if name != "prompt_tokens"}
    if values.keys() >= {"prompt_tokens", "cached_prompt_tokens"}:
        whole["prompt_tokens"] = values["prompt_tokens"] + values["cached_prompt_tokens"]
    return whole


def summed(parts: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    """Sums of the values that all engines have; None where one of them did not answer."""
    given = [part for part in parts if part is not None]
    if not given or len(given) < len(parts):
        return None
    names = set(given[0]).intersection(*given)
    return {name: sum(part[name] for part in given) for name in sorted(names)}


class Histogram(TypedDict):
    """`buckets`: (upper bound, how many up to it), bounds ascending, the last one infinite."""

    buckets: list[tuple[float, float]]
    sum: float | None
    count: float | None


def histogram(text: str, series: str, per_unit: float = 1) -> Histogram:
    """Sums the histogram over all label sets; no buckets and null where it does not occur, or has what is
    no number.

    `per_unit`: how many of the engine's units are one of those wanted.
    """
    buckets: dict[float, float] = {}
    for labels, number in _labelled(f"{series}_bucket").findall(text):
        match = re.search(r'\ble="([^"]+)"', labels)
        bound, value = _number(match[1]) if match else None, _number(number)
        if bound is None or value is None or not 0 <= value < math.inf:
            return {"buckets": [], "sum": None, "count": None}
        buckets[bound] = buckets.get(bound, 0.0) + value
    sums = totals(text, [f"{series}_sum", f"{series}_count"])
    total = _finite(sums.get(f"{series}_sum"))
    return {
        "buckets": sorted((bound / per_unit, count) for bound, count in buckets.items()),
        "sum": None if total is None else total / per_unit,
        "count": _finite(sums.get(f"{series}_count")),
    }


def gauge_paths(answer: Any, paths: Mapping[str, str]) -> dict[str, float]:
    """Reads gauges of the last element of a list of objects, or of the one object; `a/b` is a quotient of
    two paths.
    """
    latest = answer[-1] if isinstance(answer, list) and answer else answer
    by_path = {}
    for name, path in paths.items():
        over, _, under = (part.strip() for part in path.partition("/"))
        value, divisor = number_at(latest, over), number_at(latest, under) if under else 1.0
        if value is not None and divisor:
            by_path[name] = value / divisor
    return by_path


def _samples(text: str, series: Iterable[str]) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {}
    broken = set[str]()
    plain = set[str]()

    def add(name: str, written: str) -> None:
        value = _number(written)
        if value is None:
            broken.add(name)
        else:
            samples.setdefault(name, []).append(value)

    for wanted in filter(None, series):
        name, brace, label = wanted.partition("{")
        if not brace:
            plain.add(name)
            continue
        part = dict(_LABEL.findall(label))
        found = [(dict(_LABEL.findall(labels)), number) for labels, number in _labelled(name).findall(text)]
        split = [(labels, number) for labels, number in found if part and part.keys() <= labels.keys()]
        if split:
            for written in [number for labels, number in split if part.items() <= labels.items()] or ["0"]:
                add(wanted, written)
    for name, written in _unlabelled(frozenset(plain)).findall(text) if plain else ():
        add(name, written)
    return {name: values for name, values in samples.items() if name not in broken}


def _number(text: str) -> float | None:
    """None too for NaN, which stands where nothing was measured."""
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@functools.lru_cache(maxsize=64)
def _unlabelled(names: frozenset[str]) -> re.Pattern[str]:
    choice = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    # After the value: a time in ms or s, and what OpenMetrics calls an exemplar.
    rest = r"(?:[ \t]+[-+.\deE]+)?[ \t]*(?:#.*)?\r?$"
    return re.compile(rf"^({choice})(?:{_LABELS})?[ \t]+(\S+){rest}", re.MULTILINE)


@functools.lru_cache(maxsize=64)
def _labelled(name: str) -> re.Pattern[str]:
    return re.compile(rf"^{re.escape(name)}({_LABELS})[ \t]+(\S+)", re.MULTILINE)
