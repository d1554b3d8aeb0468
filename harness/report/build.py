"""(Re)writes everything a person reads in a run folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import SpecError
from harness.record import Records
from harness.report import plots, table
from harness.report.conditions import caption
from harness.report.samples import Samples, take
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
        summary, samples, _reader(folder), caption(summary, manifest), folder.path / "plots"
    )
    written += [
        folder.path / "plots" / f"{picture.name}.{ending}"
        for picture in pictures
        for ending in ("png", "svg")
    ]
    return written


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
    for cell in manifest.get("order") or ():
        if cell not in complete:
            warnings.append(_warning("cell-missing", f"{cell} was planned and never finished", ""))
    return samples, warnings


def _reader(folder: RunFolder) -> Callable[[str], Records]:
    return lambda cell: folder.read_cell(cell)[0]


def _warning(code: str, text: str, hint: str) -> Mapping[str, Any]:
    return {"code": code, "text": text, "hint": hint}


def _write(path: Path, text: str) -> Path:
    write_bytes(path, text.encode())
    return path
