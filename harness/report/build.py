"""(Re)writes everything a person reads in a run folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import SpecError
from harness.record import Records
from harness.report import plots, table
from harness.report.conditions import machine, model
from harness.report.html import Source, page
from harness.report.samples import Samples, take
from harness.report.text import plain
from harness.report.view import Json
from harness.store import RunFolder
from harness.store.atomic import write_bytes

TABLE_WIDTH = 100


def build(folder: RunFolder) -> list[Path]:
    """Paths of what was written. A missing or broken cell becomes a warning in every one of them.

    Raises SpecError where there is no readable summary.json.
    """
    summary = folder.read_json("summary.json")
    manifest, problems = _manifest(folder)
    samples, unread = _samples(folder, manifest)
    summary = {**summary, "warnings": [*(summary.get("warnings") or ()), *problems, *unread]}
    written = [
        _write(folder.path / "table.txt", table.terminal(summary, TABLE_WIDTH, color=False)),
        _write(folder.path / "table.md", table.markdown(summary)),
    ]
    pictures = plots.draw(
        summary, samples, _reader(folder), _caption(summary, manifest), folder.path / "plots"
    )
    drawn = [(picture, folder.path / "plots" / f"{picture.name}.svg") for picture in pictures]
    written += [path for _, svg in drawn for path in (svg.with_suffix(".png"), svg)]
    embedded = [(picture, svg.read_text(encoding="utf-8")) for picture, svg in drawn]
    source = Source(summary, manifest, samples, embedded, _raw_files(folder))
    return [*written, _write(folder.path / "report.html", page(source))]


def _caption(summary: Json, manifest: Json) -> plots.Caption:
    return plots.Caption(
        scenario=plain(summary.get("scenario") or ""),
        model=model(summary, manifest),
        machine=machine(manifest.get("host") or {}),
        simulated=bool(summary.get("simulated")),
    )


def _raw_files(folder: RunFolder) -> list[str]:
    """Relative and in a fixed order; without the pictures, which are linked where they are shown."""
    patterns = ("*.json", "table.*", "logs/*.log", "cells/*/*")
    found = [path for pattern in patterns for path in folder.path.glob(pattern)]
    return sorted(path.relative_to(folder.path).as_posix() for path in found)


def _manifest(folder: RunFolder) -> tuple[Json, list[Json]]:
    try:
        return folder.read_json("manifest.json"), []
    except SpecError as error:
        return {}, [_warning("no-manifest", str(error), "the conditions of this run are not known")]


def _samples(folder: RunFolder, manifest: Json) -> tuple[dict[str, Samples], list[Json]]:
    samples: dict[str, Samples] = {}
    warnings = []
    complete = folder.cells()
    for cell in complete:
        try:
            records, _ = folder.read_cell(cell)
        except SpecError as error:
            warnings.append(_warning("cell-unreadable", str(error), "it is missing from the pictures"))
        else:
            samples[cell] = take(records)
    missing = [cell for cell in manifest.get("order") or () if cell not in complete]
    warnings += [_warning("cell-missing", f"{cell} was planned and never finished", "") for cell in missing]
    return samples, warnings


def _reader(folder: RunFolder) -> Callable[[str], Records]:
    return lambda cell: folder.read_cell(cell)[0]


def _warning(code: str, text: str, hint: str) -> Mapping[str, Any]:
    return {"code": code, "text": text, "hint": hint}


def _write(path: Path, text: str) -> Path:
    write_bytes(path, text.encode())
    return path
