"""The backends of a run in words: marks of their names, versions and weights, caveats."""

from collections.abc import Iterator

from harness.model import Summary
from harness.report.findings.notes import odd_tracks, simulated
from harness.report.view import first_cells, labels
from harness.report.wording import listing, plain, short_names
from harness.verdicts.ranking import caveats_of


def marks(summary: Summary) -> dict[str, str]:
    """Suffixes of a backend's name: `*` for other weights; a simulated one among real ones says so."""
    odd, made_up = odd_tracks(summary), simulated(summary)
    names = labels(summary)
    mixed = len(made_up) < len(names)
    return {
        label: ("*" if label in odd else "") + (" SIMULATED" if mixed and label in made_up else "")
        for label in names
    }


def marked_names(summary: Summary, limit: int) -> dict[str, str]:
    """The name of each backend, cut where it is longer, with its marks."""
    marked = marks(summary)
    return {label: name + marked[label] for label, name in short_names(marked, limit).items()}


def engine_words(summary: Summary) -> dict[str, str]:
    """Each backend by its label, with every version that served a cell of it."""
    words = {}
    for label, cell in first_cells(summary).items():
        mine = (other.engine_version for other in summary.cells if other.label == label)
        versions = listing(list(dict.fromkeys(version or "version not reported" for version in mine)))
        division = f", division {cell.division}" if cell.division in ("tuned", "custom") else ""
        words[label] = plain(f"{cell.title or cell.backend} {versions}, "
                             f"{cell.track or 'weights not reported'}, "
                             f"launch {cell.launch}{division}")  # fmt: skip
    return words


def caveats(summary: Summary) -> Iterator[str]:
    """`sglang: native torch kernels, CPU: no verdict on its GPU speed follows.`, for each backend that has
    one."""
    for label, caveat in caveats_of(summary.cells).items():
        yield plain(f"{label}: {caveat}.")
