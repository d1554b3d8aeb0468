"""The style of every picture: one palette, one caption, one way to PNG and SVG. Drawn without a display."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from harness.model.lines import wrap
from harness.report.wording import capital, plain

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType  # of matplotlib 3.11

# Okabe and Ito's colours, distinguished with any colour vision. Their yellow is too pale for a thin line on
# white and is darkened; their black is left to the text.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#A89B00", "#7A5195")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))

INK, MUTED, GRID, PAPER = "#1A1A1A", "#5F6368", "#D9DBDE", "#FFFFFF"
WIDTH, HEIGHT = 6.4, 3.9  # inches: a column and a half of a paper
TITLE_SIZE, TITLE_FITS = 11.5, 62  # points; so many characters fill the width
CAPTION_SIZE, CAPTION_FITS = 8, 98
LEGEND_FITS, HANDLE_TAKES = 92, 7  # characters of a row; of the line and the gaps next to a name
LEGEND_ROWS, ROW_INCHES = 5, 0.19  # rows that a picture has room for; what each more takes

_STYLE: "dict[RcKeyType, Any]" = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "font.size": 9.5,
    "text.parse_math": False,  # a `$` in a name is a `$`
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "figure.dpi": 160,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",  # text stays text: searchable, and small
    "svg.hashsalt": "report",  # the same ids for the same picture
}


@dataclass(frozen=True, slots=True)
class Look:
    """Colour, marker and dash of one backend, the same in every picture."""

    index: int

    @property
    def color(self) -> str:
        return PALETTE[self.index % len(PALETTE)]

    @property
    def marker(self) -> str:
        return MARKERS[self.index % len(MARKERS)]

    @property
    def dash(self) -> Any:
        return DASHES[self.index % len(DASHES)]


@dataclass(frozen=True, slots=True)
class Caption:
    """Says below a picture what was measured, and where."""

    scenario: str
    model: str
    machine: str
    simulated: bool

    @property
    def line(self) -> str:
        loud = "SIMULATED" if self.simulated else ""
        known = filter(None, (loud, self.scenario, self.model, self.machine))
        return plain(" · ".join(known), CAPTION_FITS)


@dataclass(frozen=True, slots=True)
class Picture:
    name: str  # file name without its ending
    title: str
    description: str  # for those who cannot see it
    backend: str = ""  # label, of a picture of that one alone
    drawn: str = ""  # what its marks and bars are


@dataclass(frozen=True, slots=True)
class Drawing:
    """The bytes of its two files."""

    picture: Picture
    png: bytes
    svg: bytes


@contextmanager
def canvas(height: float = HEIGHT) -> Iterator[Figure]:
    """Has the common style, whatever the reader's own matplotlib settings."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        # A name in a script that the font lacks is drawn as boxes; the SVG and the tables still have it.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield Figure(figsize=(WIDTH, height))


def finish(
    figure: Figure, picture: Picture, caption: Caption, last: Callable[[], None] | None = None
) -> Drawing:
    """Empty lines of the title keep room for the caption, which the layout does not know.

    `last` draws what needs the layout to be done, such as labels that avoid each other.
    """
    size = min(TITLE_SIZE, TITLE_SIZE * TITLE_FITS / len(picture.title))
    below = [caption.line, *wrap(capital(picture.drawn), CAPTION_FITS)]
    title = picture.title + "\n" * len(below)
    figure.suptitle(title, x=0.01, ha="left", fontsize=size, fontweight="bold")
    below_title = 1 - 0.3 / figure.get_figheight()
    words = "\n".join(below)
    figure.text(0.0105, below_title, words, fontsize=CAPTION_SIZE, color=MUTED, va="top")
    if caption.simulated:
        figure.text(0.5, 0.5, "SIMULATED", fontsize=54, fontweight="bold", color=MUTED, alpha=0.13,
                    rotation=20, ha="center", va="center")  # fmt: skip
    png, svg = BytesIO(), BytesIO()
    # Once, for both: of a figure that has a layout engine, `savefig` would find it again each time.
    ConstrainedLayoutEngine().execute(figure)
    if last:
        last()
    figure.savefig(png, format="png", metadata={"Software": None})
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return Drawing(picture, png.getvalue(), svg.getvalue())


def legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Goes below the axes, so that it never covers data; as many columns as the names leave room for.

    Many rows make the picture higher: they would leave no room for the axes.
    """
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, min(4, len(handles), LEGEND_FITS // (longest + HANDLE_TAKES)))
    more_rows = max(0, -(-len(handles) // columns) - LEGEND_ROWS)
    figure.set_figheight(figure.get_figheight() + more_rows * ROW_INCHES)
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, columnspacing=1.4, handlelength=2.8
    )
