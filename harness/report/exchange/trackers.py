"""Runs in an experiment tracker: one entry per backend and load point, with its estimates over the repeats.

MLflow and W&B are extras of this package, imported when they are asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import SetupError, extra_hint
from harness.model import CellResult, LoadPoint, Summary
from harness.report.view import kind_and_value


class Entry(NamedTuple):
    name: str
    settings: dict[str, str | float | bool]
    figures: dict[str, float]  # by dotted path; with .low and .high, the ends of the 95% interval


def entries(summary: Summary) -> Iterator[Entry]:
    """None for cells without an estimate."""
    estimates: dict[tuple[str, LoadPoint], dict[str, float]] = {}
    for estimate in summary.estimates:
        names = (f"{estimate.metric}.low", estimate.metric, f"{estimate.metric}.high")
        named = zip(names, estimate.interval, strict=True)
        known = {name: value for name, value in named if value is not None}
        estimates.setdefault((estimate.label, estimate.load), {}).update(known)
    for (label, point), figures in estimates.items():
        cells = [cell for cell in summary.cells if cell.label == label and cell.point == point]
        yield Entry(
            f"{summary.run} {label} {kind_and_value(point)}",
            _settings(summary, cells, point),
            figures,
        )


def _settings(
    summary: Summary, cells: Sequence[CellResult], point: LoadPoint
) -> dict[str, str | float | bool]:
    first = cells[0]
    settings: dict[str, str | float | bool | None] = {
        "run": summary.run,
        "scenario": summary.scenario,
        "model": summary.model.name if summary.model else None,
        "backend": first.label,
        "engine_version": first.engine_version,
        "load_kind": point.kind,
        "load_value": point.value,
        "repeats": len(cells),
        "validity": ", ".join(sorted({cell.validity.verdict for cell in cells})),
        "simulated": first.simulated,
        "currency": first.cost.price.currency if first.cost else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def to_mlflow(logged: Sequence[Entry], files: Sequence[Path], target: str | None, project: str) -> None:
    """`target`: a tracking URI; None: what MLFLOW_TRACKING_URI says."""
    mlflow = _extra("mlflow")
    try:
        if target:
            mlflow.set_tracking_uri(target)
        mlflow.set_experiment(project)
        for entry in logged:
            with mlflow.start_run(run_name=entry.name):
                mlflow.log_params(entry.settings)
                mlflow.log_metrics(entry.figures)
                for file in files:
                    mlflow.log_artifact(str(file))
    except mlflow.exceptions.MlflowException as error:
        raise SetupError(str(error), where="mlflow") from None


def to_wandb(logged: Sequence[Entry], files: Sequence[Path], target: str | None, project: str) -> None:
    """`target`: the folder of its local files; None: ./wandb. WANDB_MODE=offline sends nothing."""
    wandb = _extra("wandb")
    try:
        for entry in logged:
            with wandb.init(
                project=project, name=entry.name, config=entry.settings, dir=target, settings={"silent": True}
            ) as run:
                run.summary.update(entry.figures)
                for file in files:
                    run.save(str(file), base_path=str(file.parent), policy="now")
    except wandb.Error as error:
        raise SetupError(str(error), where="wandb") from None


TRACKERS: dict[str, Callable[[Sequence[Entry], Sequence[Path], str | None, str], None]] = {
    "mlflow": to_mlflow,
    "wandb": to_wandb,
}


def _extra(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise SetupError(f"{name} is not installed", hint=extra_hint(name)) from None
