"""Endpoints and metric series of an engine, from its shipped definition (backends/*.toml).

A dialect adds what no definition says: the content of answers, labels, quirks. The definition is read as
plain tables: importing the types of `harness.spec` takes 65 ms, a third of a simulator's start.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from harness.host import paths
from harness.mockserver.dialect import Dialect, Quantity, Reset, Series, Tokenizer
from harness.mockserver.dialects import DIALECTS

Table = Mapping[str, Any]

# Keys of [metrics.counters] -> what the simulator counts; of the others it counts 0.
_COUNTED: dict[str, Quantity] = {
    "prompt_tokens": "prompt",
    "output_tokens": "generated",
    "image_queries": "image_queries",
    "image_hits": "image_hits",
}
# The same where the counter is the sum of a histogram of requests.
_SUMMED: dict[str, Quantity] = {"prompt_tokens": "input_lengths", "output_tokens": "output_lengths"}
_GAUGES: dict[str, Quantity] = {
    "running": "running",
    "waiting": "waiting",
    "kv_use": "kv_use",
    "cache_hit_rate": "hit_rate",
}


@cache
def declared_dialect(name: str) -> Dialect:
    """The dialect with the endpoints and series of the definition of this name, where one is shipped."""
    dialect = DIALECTS[name]
    file = paths.shipped("backends") / f"{name}.toml"
    if not file.is_file():
        return dialect
    definition = tomllib.loads(file.read_text(encoding="utf-8"))
    server, metrics = definition["server"], definition.get("metrics", {})
    version_path = server.get("version", {}).get("path", "")
    series = {(each.name, each.label): each for each in _series(metrics, dialect.unused_counters)}
    return replace(
        dialect,
        chat_path=definition.get("dialect", {}).get("chat_path", dialect.chat_path),
        health_path=server["ready_path"],
        version_path=version_path,
        info_path=_info_path(server, version_path) if dialect.info else "",
        tokenizer=_tokenizer(server.get("tokenize")),
        reset=_reset(definition.get("prefix_cache", {}).get("reset")),
        metrics_path=metrics.get("path", ""),
        json_metrics_path=metrics.get("json", {}).get("path", ""),
        series=tuple(series.values()),
    )


def _info_path(server: Table, version_path: str) -> str:
    """The first path that says more than the version, without its query."""
    served = (info["path"].partition("?")[0] for info in server.get("info", ()))
    return next((path for path in served if path != version_path), "")


def _tokenizer(table: Table | None) -> Tokenizer | None:
    if table is None:
        return None
    return Tokenizer(
        table["path"], table["text_field"], table.get("tokens_key", "tokens"), table.get("lists", False)
    )


def _reset(table: Table | None) -> Reset | None:
    """A path with a {slot} is served for every one, and whatever the query says."""
    if table is None:
        return None
    return Reset(table["path"].partition("{")[0].partition("?")[0], table.get("method", "POST"))


def _series(metrics: Table, unused: frozenset[str]) -> Iterator[Series]:
    """The series that bench reads, without labels but for the one that tells cached tokens of the host."""
    counters: Table = metrics.get("counters", {})
    on_host = set(_names(counters.get("host_cached_tokens", "")))
    split, _, label = counters.get("host_cached_tokens", "").rstrip("}").partition("{")
    for key, terms in counters.items():
        for name in _names(terms) if key not in unused else ():
            if name.endswith("_sum"):
                yield Series(name.removesuffix("_sum"), "histogram", _SUMMED.get(key, "zero"))
            elif name in on_host:
                yield Series(name, "counter", "host_cached")
            elif key == "cached_prompt_tokens" and label and name == split:
                yield Series(name, "counter", "device_cached", f'{label.partition("=")[0]}="device"')
                yield Series(name, "counter", "host_cached", label)
            elif key == "cached_prompt_tokens":
                yield Series(name, "counter", "device_cached" if on_host else "cached")
            elif key == "prompt_tokens" and metrics.get("prompt_tokens_exclude_cached"):
                yield Series(name, "counter", "uncached")
            else:
                yield Series(name, "counter", _COUNTED.get(key, "zero"))
    for key, terms in metrics.get("gauges", {}).items():
        share, _, whole = terms.partition(" / ")
        yield from (Series(name, "gauge", _GAUGES[key]) for name in _names(share))
        yield from (Series(name, "gauge", "whole") for name in _names(whole))
    for key, terms in metrics.get("histograms", {}).items():
        yield from (Series(name, "histogram", key) for name in _names(terms))


def _names(terms: str) -> list[str]:
    return [term for term in terms.split(" + ") if term and "{" not in term]
