"""A cell as a benchmark report of llm-d (0.2), a row of InferenceX, a summary of MLPerf's endpoints."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from harness import __version__
from harness.model import STATISTICS, CellResult, Fact, Summary
from harness.model.exchanged import (
    FACTS,
    INFERENCEX_LATENCIES,
    KEY,
    MLPERF_LATENCIES,
    REPORT_LATENCIES,
    REPORT_MORE,
    REPORT_RATES,
    Exchanged,
    as_median,
)
from harness.model.json_path import number_at
from harness.model.record import as_json

Document = dict[str, Any]
_NOT_KNOWN = "unknown"


def documents(
    kind: str, summary: Summary, measured_with: str | None = None
) -> Iterator[tuple[str, Document]]:
    """One per cell, with the cell's name. `measured_with`: the version of bench; None: not known."""
    for cell in summary.cells:
        yield cell.cell, FORMATS[kind](summary, cell, measured_with)


def _known(**parts: Any) -> Document:
    return {key: part for key, part in parts.items() if part is not None}


def _paths(cell: CellResult, *metrics: str) -> set[str]:
    return {f"{metric}.{name}" for metric in metrics for name in _latency(cell, metric)}


def _report(summary: Summary, cell: CellResult, measured_with: str | None) -> Document:
    """Format 0.2, which has no place for a figure without `mean`."""
    latencies = {metric: found for metric in REPORT_LATENCIES if "mean" in (found := _latency(cell, metric))}
    figures = _rates(cell)
    placed = _paths(cell, *latencies) | set(figures)
    units = {"ttft_ms": "ms", "e2e_ms": "ms"}
    began = datetime.fromtimestamp(cell.started_unix_ns / 1e9, UTC)
    spent_s = cell.makespan_s or cell.window_s
    ours = _ours(summary, cell, placed, measured_with)
    input_length = lengths = load = requests = None
    if figures.get("requests_per_s") and "input_tokens_per_s" in figures:
        input_length = figures["input_tokens_per_s"] / figures["requests_per_s"]
        lengths = {"units": "count", "mean": input_length}
        load = _load(cell, ours, input_length)
    if _knows(cell, "answers"):
        failures = cell.requests.failed if _knows(cell, "outcomes") else None
        requests = {"total": _issued(cell), "failures": failures, **_known(input_length=lengths)}
    return {
        "version": "0.2.1",
        "run": {
            "uid": hashlib.sha256(f"{summary.run}/{cell.cell}".encode()).hexdigest()[:32],
            "eid": summary.run,
            "time": _known(
                start=began.isoformat(),
                end=(began + timedelta(seconds=spent_s)).isoformat() if spent_s else None,
                duration=f"PT{spent_s:.6f}S" if spent_s else None,
            ),
            "description": f"{summary.scenario}: {cell.cell}",
        },
        "scenario": _known(
            stack=[
                _component(cell.label, cell.backend, cell.engine_version, {"model": ours["model"]}),
                _component(KEY, KEY, ours["version"], {"cell": ours}),
            ],
            load=load,
        ),
        "results": {
            "request_performance": {
                "aggregate": _known(
                    requests=requests,
                    latency={
                        REPORT_LATENCIES[metric]: {"units": units.get(metric, "ms/token"), **found}
                        for metric, found in latencies.items()
                    },
                    throughput={
                        REPORT_RATES[metric]: {
                            "units": "queries/s" if metric == "requests_per_s" else "tokens/s",
                            "mean": value,
                        }
                        for metric, value in figures.items()
                    },
                )
            }
        },
    }


def _load(cell: CellResult, ours: Mapping[str, Any], input_length: float) -> Document:
    return {
        "metadata": {},
        "standardized": _known(
            tool=ours["tool"],
            tool_version=ours["tool_version"] or _NOT_KNOWN,
            source="unknown",
            input_seq_len={"distribution": "other", "value": input_length},
            concurrency=cell.load.slots or None,
            rate_qps=float(cell.load.value) if cell.load.kind == "rate" else None,
        ),
        "native": {},
    }


def _component(label: str, tool: str, version: str | None, more: Mapping[str, Any]) -> Document:
    return {
        "metadata": {"label": label, "cfg_id": hashlib.sha256(label.encode()).hexdigest()[:32]},
        "standardized": {
            "kind": "generic",
            "tool": tool,
            "tool_version": version or _NOT_KNOWN,
            **more,
        },
        "native": {},
    }


def _inferencex(summary: Summary, cell: CellResult, measured_with: str | None) -> Document:
    """Latencies in seconds. Rates are per GPU; null if the engine was seen on none."""
    used = [device for device in cell.gpu.devices if device.index in cell.gpu.engine_gpus] if cell.gpu else []
    gpus = len(used)
    known, placed = _rates(cell), _paths(cell, *INFERENCEX_LATENCIES)
    output, total = known.get("output_tokens_per_s"), None
    if output is not None and "input_tokens_per_s" in known:
        total = output + known["input_tokens_per_s"]
    row: Document = {
        "hw": ", ".join(dict.fromkeys(device.name or _NOT_KNOWN for device in used)) or _NOT_KNOWN,
        "tp": gpus or None,
        "conc": cell.load.slots,
        "model": summary.model.name if summary.model else _NOT_KNOWN,
        "framework": cell.backend,
        "precision": cell.quantisation or _NOT_KNOWN,
        "tput_per_gpu": total / gpus if total is not None and gpus else None,
        "output_tput_per_gpu": output / gpus if output is not None and gpus else None,
    }  # fmt: skip
    for metric, word in INFERENCEX_LATENCIES.items():
        for name, value in _latency(cell, metric).items():
            row[f"{as_median(name)}_{word}"] = value / 1e3
    for name, value in _latency(cell, "tpot_ms").items():
        if value:
            row[f"{as_median(name)}_intvty"] = 1e3 / value
    return row | {KEY: _ours(summary, cell, placed, measured_with)}


def _mlperf(summary: Summary, cell: CellResult, measured_with: str | None) -> Document:
    """result_summary.json; times in ns."""
    known = _rates(cell)
    series = {}
    for metric, word in MLPERF_LATENCIES.items():
        found_ns = {name: value * 1e6 for name, value in _latency(cell, metric).items()}
        percentiles = {name[1:]: value for name, value in found_ns.items() if name != "mean"}
        figures = _known(avg=found_ns.get("mean"), median=found_ns.get("p50"), percentiles=percentiles)
        series[word] = figures if found_ns else {}
    placed = _paths(cell, *MLPERF_LATENCIES) | {"requests_per_s", "output_tokens_per_s"}
    span_s = cell.makespan_s or cell.window_s
    # Requests that --duration left unsent are no interruption.
    whole = span_s is not None and cell.requests.cancelled == 0
    return {
        "version": _NOT_KNOWN,  # of MLPerf's own client, which did not measure this
        "git_sha": None,
        "test_started_at": 0,
        "n_samples_issued": _issued(cell),  # 0 if not known: the format has no null
        "n_samples_completed": cell.requests.ok,
        "n_samples_failed": cell.requests.failed,
        "duration_ns": round((span_s or 0) * 1e9),  # the format has no null
        "state": "complete" if whole else "interrupted",
        "complete": whole,
        **series,
        # Of these and the duration its readers make a rate.
        "output_sequence_lengths": {"total": tokens} if (tokens := cell.output_tokens.total) else {},
        "legacy_loadgen_window_duration_ns": None,
        "qps": known.get("requests_per_s"),
        "tps": known.get("output_tokens_per_s"),
        "run_config": {KEY: _ours(summary, cell, placed, measured_with)},
    }


def _latency(cell: CellResult, metric: str) -> dict[str, float]:
    """Known values by statistic."""
    known = _figures(cell, (f"{metric}.{name}" for name in STATISTICS))
    return {path.rpartition(".")[2]: value for path, value in known.items()}


def _rates(cell: CellResult) -> dict[str, float]:
    return _figures(cell, REPORT_RATES)


def _figures(cell: CellResult, names: Iterable[str]) -> dict[str, float]:
    found = {name: number_at(cell, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _issued(cell: CellResult) -> int:
    """Measured requests that were answered or failed, also before they were sent. Users who hung up and
    cancelled requests are neither: a reader takes what did not fail for answered."""
    return cell.requests.ok + cell.requests.failed


def _knows(cell: CellResult, fact: Fact) -> bool:
    """Whether a fact of the cell is known: the file of another tool may not say it."""
    return cell.imported is None or fact in cell.imported.facts


def _ours(summary: Summary, cell: CellResult, placed: set[str], measured_with: str | None) -> Any:
    """`placed`: paths for which the format itself has a place. `measured_with`: the version of bench."""
    latencies = (f"{metric}.{name}" for metric in REPORT_LATENCIES for name in STATISTICS)
    known = _figures(cell, (*REPORT_RATES, *REPORT_MORE, *latencies))
    ours = Exchanged(
        version=__version__,
        run=summary.run,
        cell=cell.cell,
        label=cell.label,
        repeat=cell.repeat,
        started_unix_ns=cell.started_unix_ns,
        model=summary.model.name if summary.model else None,
        load=cell.load,
        validity=cell.validity,
        requests=cell.requests,
        facts=tuple(fact for fact in FACTS if _knows(cell, fact)),
        simulated=cell.simulated,
        tool=cell.imported.tool if cell.imported else KEY,
        tool_version=cell.imported.version if cell.imported else measured_with,
        definitions=cell.imported.definitions if cell.imported else {},
        figures={path: value for path, value in known.items() if path not in placed},
        estimates=tuple(
            estimate
            for estimate in summary.estimates
            if estimate.label == cell.label and estimate.load == cell.point
        ),
    )
    return as_json(ours)


FORMATS: Mapping[str, Callable[[Summary, CellResult, str | None], Document]] = {
    "report-0.2": _report,
    "inferencex": _inferencex,
    "mlperf": _mlperf,
}
