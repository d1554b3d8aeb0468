"""The files that a person reads, from the files of a run."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from harness.errors import SpecError
from harness.metrics.peers import TOOLS, View, recompute
from harness.model import Manifest, Probed, RunWarning, Summary
from harness.records.layout import Records
from harness.records.series import Telemetry
from harness.report import plots
from harness.report.charts import Chart, charts
from harness.report.findings.manifest_lines import machine, model
from harness.report.html import Source, page
from harness.report.samples import Samples, take
from harness.report.text import table
from harness.report.wording import listing, plain, were
from harness.store import RunFolder
from harness.validity import notices

TABLE_WIDTH = 100
MISSING_SHOWN = 5  # cells by name in one warning


def build_all(folder: RunFolder) -> list[Path]:
    summary = folder.read_summary()
    manifest, problems = _manifest(folder)
    samples, views, unread, last = _samples(folder, manifest)
    summary = replace(summary, warnings=(*summary.warnings, *problems, *unread))
    written = [
        _write(folder, "table.txt", table.terminal(summary, TABLE_WIDTH, color=False)),
        _write(folder, "table.md", table.markdown(summary, manifest)),
    ]
    drawn = list(charts(summary, samples))
    pictures, files = _pictures(folder, summary, manifest, samples, drawn, last)
    written += files
    source = Source(summary, manifest, samples, drawn, pictures, views, _probes(folder), _raw_files(folder))
    return [*written, _write(folder, "report.html", page(source))]


def _pictures(
    folder: RunFolder,
    summary: Summary,
    manifest: Manifest | None,
    samples: Mapping[str, Samples],
    drawn: Sequence[Chart],
    last: Mapping[str, Records],
) -> tuple[list[tuple[plots.Picture, str]], list[Path]]:
    """The pictures that the page shows, with their SVG, and all files. `last`: a cell that need not be read
    again.

    Removes files of an earlier report, of cells measured again since.
    """
    files = folder.files
    caption = _caption(summary, manifest)
    own = {chart.name for chart in drawn}  # which the page draws itself
    shown, names = [], []
    files.make_folder("plots")

    def recorded(cell: str) -> tuple[Records, Telemetry]:
        return last.get(cell) or folder.read_cell(cell)[0], folder.read_telemetry(cell)

    for drawing in plots.draw(summary, drawn, samples, recorded, caption):
        picture = drawing.picture
        for ending, data in (("png", drawing.png), ("svg", drawing.svg)):
            names.append(f"plots/{picture.name}.{ending}")
            files.write(names[-1], data)
        if picture.name not in own:
            shown.append((picture, drawing.svg.decode()))
    for stale in {*files.names("plots/*.png"), *files.names("plots/*.svg")} - set(names):
        files.remove(stale)
    return shown, [files.path(name) for name in names]


def _caption(summary: Summary, manifest: Manifest | None) -> plots.Caption:
    return plots.Caption(
        scenario=plain(summary.scenario),
        model=model(summary),
        machine=machine(manifest.host if manifest else None, summary),
        simulated=summary.simulated,
    )


def _probes(folder: RunFolder) -> dict[str, Probed]:
    """Probes by backend. A file that cannot be read is left out, like one that was never written."""
    probes: dict[str, Probed] = {}
    for name in folder.files.names("probe-*.json"):
        try:
            label = name.removeprefix("probe-").removesuffix(".json")
            probes[label] = folder.read_probe(label)
        except SpecError:
            continue
    return probes


def _raw_files(folder: RunFolder) -> list[str]:
    """Relative and in a fixed order; without the pictures, which are linked where they are shown."""
    patterns = ("*.json", "table.*", "logs/*.log", "cells/*/*")
    return sorted(name for pattern in patterns for name in folder.files.names(pattern))


def _manifest(folder: RunFolder) -> tuple[Manifest | None, list[RunWarning]]:
    try:
        manifest = folder.read_manifest()
    except SpecError as error:
        return None, [notices.NO_MANIFEST.warning(str(error))]
    return manifest, []


def _samples(
    folder: RunFolder, manifest: Manifest | None
) -> tuple[dict[str, Samples], dict[str, dict[str, View]], list[RunWarning], dict[str, Records]]:
    """Samples of every cell that can be read, the same under other tools' definitions, warnings about the
    rest, and the records of the last cell: an import has no other, and a million requests take seconds to
    read.
    """
    samples: dict[str, Samples] = {}
    last: dict[str, Records] = {}
    views: dict[str, dict[str, View]] = {name: {} for name in TOOLS}
    warnings = []
    complete = folder.cells()
    for cell in complete:
        last = {}  # freed before the next is read
        try:
            records, facts = folder.read_cell(cell)
        except SpecError as error:
            notice = notices.of_cell(error)
            warnings.append(notice.warning(str(error), "it is missing from the pictures"))
        else:
            samples[cell], last = take(records), {cell: records}
            for name, view in recompute(TOOLS.values(), records, facts).items():
                views[name][cell] = view
            del records
    if manifest and (missing := [cell for cell in _due(manifest) if cell not in complete]):
        shown = missing[:MISSING_SHOWN]
        if more := len(missing) - len(shown):
            shown.append(f"{more} more")
        text = f"{listing(shown)} {were(len(missing))} planned and never finished"
        warnings.append(notices.CELL_MISSING.warning(text))
    return samples, views, warnings, last


def _due(manifest: Manifest) -> Iterator[str]:
    """Cells that must exist.

    In a run that its stopping rule ended, these are the repeats before its first look. Later ones are
    measured only if a pair still needs them.
    """
    stopping = manifest.stopping
    if stopping is None or stopping.reason is None:
        yield from manifest.order
        return
    repeats = stopping.looks[0] if stopping.looks and stopping.repeats else 1
    for cell in manifest.order:
        repeat = cell.rpartition("-r")[2]
        if not repeat.isdecimal() or int(repeat) < repeats:
            yield cell


def _write(folder: RunFolder, name: str, text: str) -> Path:
    folder.files.write(name, text.encode())
    return folder.files.path(name)
