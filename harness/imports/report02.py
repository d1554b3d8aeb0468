"""The benchmark report of llm-d, format 0.2, as JSON or YAML: figures of whatever tool measured."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.imports import serving
from harness.imports.exchange import restored
from harness.imports.reader import Form, Reader
from harness.imports.source import Document, Percentiles, finite, wrong
from harness.imports.taken import (
    LOAD,
    REQUESTS,
    UNKNOWN_LOAD,
    Taken,
    figures_of,
    of_reported,
    unix_ns,
    without_zone,
)
from harness.metrics.peers import TOOLS, tool_named
from harness.model import STATISTICS
from harness.model.exchanged import KEY, REPORT_LATENCIES, REPORT_RATES

TOOL = "benchmark report"
_KEYS = {"version", "run", "results"}
_MS = {"ms": 1.0, "s": 1e3, "ms/token": 1.0, "s/token": 1e3}
_PER_S = {"queries/s", "tokens/s"}
_PEERS = {"vllm-benchmark": "vllm"}  # its names of tools; others are named as here


class _Statistics(Percentiles, frozen=True, kw_only=True):
    units: str
    mean: float


class _Requests(msgspec.Struct):
    total: int
    failures: int | None = None


class _Aggregate(msgspec.Struct):
    requests: _Requests | None = None
    latency: dict[str, _Statistics | None] | None = None
    throughput: dict[str, _Statistics | None] | None = None


class _Performance(msgspec.Struct):
    aggregate: _Aggregate | None = None


class _Results(msgspec.Struct):
    request_performance: _Performance | None = None


class _LoadStandard(msgspec.Struct):
    tool: str
    tool_version: str = ""
    rate_qps: float | None = None
    concurrency: float | None = None


class _Load(msgspec.Struct):
    standardized: _LoadStandard


class _Component(msgspec.Struct):
    standardized: dict[str, Any]


class _Scenario(msgspec.Struct):
    stack: list[_Component] | None = None
    load: _Load | None = None


class _File(msgspec.Struct):
    version: str
    run: dict[str, Any]
    results: _Results
    scenario: _Scenario | None = None


def _read(document: Document) -> Iterator[Taken]:
    file, where = document.read_as(_File, TOOL), document.where
    if not file.version.startswith("0.2"):
        raise wrong(f"format {file.version} of the {TOOL}; 0.2 is read", where)
    performance = file.results.request_performance
    aggregate = (performance.aggregate if performance else None) or _Aggregate()
    reported = dict(_figures(aggregate, where))
    if not reported:
        raise wrong("has no figures of requests", where)
    scenario = file.scenario or _Scenario()
    requests = aggregate.requests
    failed = (requests.failures or 0) if requests else None
    answered = requests.total - (failed or 0) if requests else None
    stated = scenario.load.standardized if scenario.load else None
    tool = stated.tool if stated else TOOL
    version = stated.tool_version if stated and stated.tool_version not in ("", "unknown") else None
    most = _limit(stated.concurrency) if stated else None
    rate = _limit(stated.rate_qps) if stated else None
    cap = int(most) if most else None
    load = serving.load(rate, cap)
    lacks = [REQUESTS, LOAD] if load == UNKNOWN_LOAD else [REQUESTS]
    peer = _PEERS.get(tool, tool)
    meant = (
        serving.definitions(_as_of(peer, version or document.tool_version), reported)
        if peer in TOOLS
        else of_reported({}, tool, reported)
    )
    time = file.run.get("time")
    start = time.get("start") if isinstance(time, dict) else None
    taken = Taken(
        tool=tool,
        version=version,
        level="summary",
        took=f"{figures_of(answered)}, from a {TOOL} {file.version}",
        load=load,
        cap=cap,
        started_unix_ns=unix_ns(start),
        model=_model(scenario),
        lacks=(*lacks, *without_zone(start)),
        definitions=meant,
        reported=reported,
        answered=answered,
        failed=failed,
    )
    yield restored(taken, _ours(scenario), where)


def _as_of(peer: str, version: str | None) -> str:
    """The tool of that version; as it was checked where the version is not known, or is none."""
    try:
        return tool_named(f"{peer}@{version}").name if version else peer
    except ValueError:
        return peer


def _figures(aggregate: _Aggregate, where: str) -> Iterator[tuple[str, float]]:
    for metric, name in REPORT_LATENCIES.items():
        if (figure := (aggregate.latency or {}).get(name)) is None:
            continue
        if figure.units not in _MS:
            raise wrong(f"{name} in '{figure.units}'", where, hint=f"known: {', '.join(_MS)}")
        for statistic in STATISTICS:
            if (value := getattr(figure, statistic)) is not None:
                yield f"{metric}.{statistic}", finite(value * _MS[figure.units], name, where)
    for metric, name in REPORT_RATES.items():
        if (figure := (aggregate.throughput or {}).get(name)) is None:
            continue
        if figure.units not in _PER_S:
            raise wrong(f"{name} in '{figure.units}'", where, hint=f"known: {', '.join(sorted(_PER_S))}")
        yield metric, finite(figure.mean, name, where)


def _limit(value: float | None) -> float | None:
    """None for an infinite one."""
    return value if value and value < 1e9 else None


def _model(scenario: _Scenario) -> str | None:
    for component in scenario.stack or ():
        match component.standardized.get("model"):
            case str(name) | {"name": str(name)}:
                return name
    return None


def _ours(scenario: _Scenario) -> object:
    components = (
        component.standardized
        for component in scenario.stack or ()
        if component.standardized.get("tool") == KEY
    )
    return next((component.get("cell") for component in components), None)


READER = Reader(
    tool=TOOL,
    forms=(Form(_KEYS, _read),),
    rows=("benchmark report of llm-d | YAML or JSON | format 0.2 | summary | `llmd-benchmark-report` 0.2.1",),
)
