"""All that a page is made of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.metrics.peers import View
from harness.model import HostFacts, Manifest, Probed, Summary
from harness.report.charts import Chart
from harness.report.html.svg import mark
from harness.report.html.tags import Html, join, table
from harness.report.plots import Picture
from harness.report.samples import Samples
from harness.report.view import labels


@dataclass(frozen=True)
class Source:
    summary: Summary
    manifest: Manifest | None  # None: missing, or not one
    samples: Mapping[str, Samples]  # by cell name
    charts: Sequence[Chart]
    pictures: Sequence[tuple[Picture, str]]  # timelines, each with the text of its SVG
    views: Mapping[str, Mapping[str, View]]  # tool → cell → what it would have said
    probes: Mapping[str, Probed]  # backend → what was found before its first cell
    files: Sequence[str]  # relative to the run folder

    @property
    def host(self) -> HostFacts | None:
        return self.manifest.host if self.manifest else None

    @cached_property
    def labels(self) -> list[str]:
        return labels(self.summary)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def index(self, label: str) -> int:
        """Index of the backend's colour, here and in every picture."""
        return self._places[label]

    def samples_of(self, label: str) -> list[Samples]:
        """The cells that could be read, in the order in which they were measured."""
        cells = [cell.cell for cell in self.summary.cells if cell.label == label]
        return [self.samples[cell] for cell in cells if cell in self.samples]

    def name(self, label: str) -> Html:
        return join([mark(self.index(label)), label])


def backend_table(
    source: Source,
    caption: str,
    head: Sequence[str],
    rows: Iterable[tuple[str, Sequence[str]]],
    class_: str | None = None,
) -> Html:
    """Each row comes with the label of its backend, by which the legend hides it."""
    owned = list(rows)
    owners = [source.index(label) for label, _cells in owned]
    return table(caption, head, [cells for _label, cells in owned], owners, class_)
