"""summary.json as rows: one per cell, one per backend, load and metric, and one per pair of backends.

`bench query`, `bench export` and the DataFrames of llm_servebench all take their columns from here.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from harness.model import METRICS, Estimate, Interval, Manifest, PairVerdict, Summary
from harness.model.json_path import value_at

Row = list[Any]

# Column of `cells` -> its SQL type, and the dotted path of its value in a cell of summary.json.
PLACES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "label": ("varchar", "label"),
        "backend": ("varchar", "backend"),
        "variant": ("varchar", "variant"),
        "weights": ("varchar", "track"),
        "quantisation": ("varchar", "quantisation"),
        "engine_version": ("varchar", "engine_version"),
        "launch": ("varchar", "launch"),
        "simulated": ("boolean", "simulated"),
        "load_kind": ("varchar", "load.kind"),
        "load_value": ("double", "load.value"),
        "repeat": ("integer", "repeat"),
        "api": ("varchar", "conditions.api"),
        "content": ("varchar", "conditions.content"),
        "started_unix_ns": ("bigint", "started_unix_ns"),
        "validity": ("varchar", "validity.verdict"),
        "requests_ok": ("bigint", "requests.ok"),
        "requests_failed": ("bigint", "requests.failed"),
        "window_s": ("double", "window_s"),
        **{path.replace(".", "_"): ("double", path) for metric in METRICS.values() for path in metric.paths},
        "acceptance_rate": ("double", "server.acceptance_rate"),
        "limiter": ("varchar", "limiter.code"),
        "currency": ("varchar", "cost.price.currency"),
        # Of the engine's GPUs together.
        "gpu_power_w": ("double", "energy.gpu_w"),
        "gpu_utilisation_pct": ("double", "gpu.utilisation_pct.mean"),
        "gpu_memory_used_bytes": ("double", "gpu.memory_used_bytes.max"),
    }
)

# SQL type by column, in the order of the rows below.
CELLS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("run", "cell", "scenario", "model", "hardware"), "varchar"),
        "long_probe": "boolean",
        **{name: kind for name, (kind, _path) in PLACES.items()},
    }
)
ESTIMATES: Mapping[str, str] = MappingProxyType(
    {
        "run": "varchar",
        "label": "varchar",
        "load_kind": "varchar",
        "load_value": "double",
        "metric": "varchar",
        **dict.fromkeys(("low", "estimate", "high"), "double"),
        "runs": "bigint",
        "method": "varchar",
    }
)
VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "run": "varchar",
        "load_kind": "varchar",
        "load_value": "double",
        "metric": "varchar",
        "is_primary": "boolean",
        "better": "varchar",
        "a": "varchar",
        "b": "varchar",
        "verdict": "varchar",
        **dict.fromkeys(("ratio_low", "ratio", "ratio_high"), "double"),
        **dict.fromkeys(("difference_low", "difference", "difference_high"), "double"),
        **dict.fromkeys(("runs_a", "runs_b", "measured_a", "measured_b", "failed_a", "failed_b"), "bigint"),
        "method": "varchar",
        "paired": "boolean",
        "smallest_detectable": "double",
        "why": "varchar",
    }
)


def cell_rows(run: str, summary: Summary, manifest: Manifest) -> Iterator[Row]:
    """Rows of CELLS, in plan order. Times have the unit of their column's name; None: not known.

    A long probe is one of --find-capacity that decides, and None in other runs.
    """
    model = summary.model.name if summary.model else None
    hardware = manifest.host.hardware if manifest.host else None
    for cell in summary.cells:
        figures = (value_at(cell, path) for _kind, path in PLACES.values())
        long_probe = cell.repeat >= manifest.repeats if manifest.find_capacity else None
        yield [run, cell.cell, summary.scenario, model, hardware, long_probe, *figures]


def estimate_rows(run: str, estimates: Iterable[Estimate]) -> Iterator[Row]:
    """Rows of ESTIMATES, in the metric's unit. Of a single run `low` and `high` are None."""
    for each in estimates:
        load = each.load
        yield [run, each.label, load.kind, load.value, each.metric, *each.interval, each.runs, each.method]


def verdict_rows(run: str, verdicts: Iterable[PairVerdict]) -> Iterator[Row]:
    """Rows of VERDICTS. The verdict is about `a`; ratio is a / b, difference a - b in the metric's unit."""
    for verdict in verdicts:
        yield [
            run,
            verdict.load.kind,
            verdict.load.value,
            verdict.metric,
            verdict.primary,
            verdict.better,
            verdict.a,
            verdict.b,
            verdict.verdict,
            *_ends(verdict.ratio),
            *_ends(verdict.difference),
            *verdict.runs,
            *verdict.measured,
            *verdict.failed,
            verdict.method,
            verdict.paired,
            verdict.smallest_detectable,
            verdict.why,
        ]


def _ends(interval: Interval | None) -> tuple[float | None, ...]:
    return (None, None, None) if interval is None else tuple(interval)
