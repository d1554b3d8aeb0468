"""Chooses the results among the files of folders: tools leave inputs and settings there as well."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby, islice
from pathlib import Path

from harness.errors import SpecError
from harness.imports import aiperf, evalscope
from harness.imports.detect import READERS, documents, form_of
from harness.imports.reader import Form, Seen
from harness.imports.source import Source
from harness.imports.yaml_text import YAML
from harness.model.imported import RESULT_SUFFIXES

MOST_ENTRIES = 10_000
_Look = Callable[[Path], tuple[Form | None, bool]]
_MOST_REPEATED = 16 << 20  # bytes: figures over runs are shorter, and what is longer is not read for them


def is_result(path: Path) -> bool:
    """Whether it may be one: JSON, JSON lines, CSV, YAML or SQLite. A run folder's own documents are not.

    Many programs leave SQLite behind, so there the name counts too.
    """
    return path.suffix in RESULT_SUFFIXES and (path.suffix != ".db" or path.name == evalscope.DATABASE)


def entries_below(folder: Path) -> list[Path]:
    """Sorted entries; none if there are more than anybody keeps results in, as in `/`. Raises OSError."""
    found = list(islice(folder.rglob("*"), MOST_ENTRIES + 1))
    return sorted(found) if len(found) <= MOST_ENTRIES else []


def results_among(entries: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Results by folder, and files that repeat them: a tool's CSV, its summary next to its requests, or its
    figures over several runs.
    """
    found = sorted(
        (path for path in entries if is_result(path) and path.is_file()),
        key=lambda path: (path.parent, path.name),
    )
    seen = cache(_seen)
    kept: list[Path] = []
    for _, files in groupby(found, key=lambda path: path.parent):
        kept += _results(list(files), seen)
    kept = [path for path in kept if not _of_others(path, seen)] or kept
    return kept, [path for path in found if path not in kept]


def _of_others(path: Path, seen: _Look) -> bool:
    """Whether it repeats what files in other folders have: a table, figures of a phase or over runs."""
    try:
        if aiperf.is_of_phase(path):
            return True
        if path.stat().st_size > _MOST_REPEATED:
            return False
        form, _ = seen(path)
        return form.over_runs if form else path.suffix == ".csv"
    except OSError:
        return False


def _results(files: list[Path], seen: _Look) -> list[Path]:
    """The results in one folder."""
    if len(files) == 1:
        return files
    forms, repeated = {path: seen(path) for path in files}, set[Path]()
    for reader in READERS:
        of_tool = {
            path: Seen(reader.forms.index(form), is_list)
            for path, (form, is_list) in forms.items()
            if form in reader.forms
        }
        chosen = set(reader.chosen(of_tool)) if of_tool else set()
        if chosen and reader.alone:
            return [path for path in files if path in chosen]
        repeated |= of_tool.keys() - chosen
    others = [path for path in files if path.suffix != ".csv"]
    return [path for path in others if path.suffix not in YAML and path not in repeated] or others or files


def _seen(path: Path) -> tuple[Form | None, bool]:
    """The form of a file, and whether it is a list. None: it is damaged or of no known tool."""
    try:
        source = Source(path)
        first = next(documents(source), None)
        return (form_of(first) if first else None), source.is_list
    except SpecError:
        return None, False
