"""The result of a run on stdout: the first screen, everything with -v, or JSON. Then its page."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness import report
from harness.cli.display.result import Result, Screen, put
from harness.cli.display.streams import UnreadError
from harness.cli.typed import ResultForms
from harness.errors import SetupError, SpecError
from harness.model import Manifest, Summary, as_json
from harness.report.findings.conclude import conclude
from harness.report.text.screen import Sketch, next_lines, screen
from harness.report.text.table import terminal
from harness.store import RunFolder


def show(
    folder: RunFolder,
    form: ResultForms,
    sketch: Sketch | None = None,
    draw: Callable[[RunFolder], Sequence[Path]] = report.build,
) -> None:
    """Prints the answer before `draw` makes the page, which takes seconds, and then where both are.

    JSON comes after the page, because an error of `draw` is the one document then. `sketch`: pictures between
    the table and its conclusion.
    """
    if form.json:
        draw(folder)
        put(Result(document=lambda: as_document(folder)), as_json=True)
        return
    summary, manifest = folder.read_summary(), _manifest(folder)
    page = folder.path / "report.html"
    files: Sequence[Path] = ()
    try:
        try:
            put(Result(lambda screen: (*_lines(summary, form, screen, sketch), "")), flush=True)
        except (UnreadError, SetupError):  # nobody reads it, or it cannot be written: the page may be wanted
            draw(folder)
            raise
        files = draw(folder)
    finally:
        drawn = [f"report:     {page}"] if page in files else []
        put(
            Result(
                lambda screen: (
                    f"run folder: {folder.path}",
                    *drawn,
                    *next_lines(summary, screen.width, str(folder.path), manifest),
                )
            )
        )


def _lines(summary: Summary, form: ResultForms, on: Screen, sketch: Sketch | None) -> Iterator[str]:
    if not form.verbose:
        yield screen(summary, on.width, on.color, sketch).rstrip()
        return
    yield terminal(summary, on.width, on.color).rstrip()
    if sketch:
        yield f"\n{sketch(summary, on.width)}"


def _manifest(folder: RunFolder) -> Manifest | None:
    """None where it cannot be read: the steps then say what to add to the command."""
    try:
        return folder.read_manifest()
    except SpecError:
        return None


def as_document(folder: RunFolder) -> dict[str, object]:
    """summary.json and the conclusion: `concluded.schema.json`."""
    conclusion = as_json(conclude(folder.read_summary(), _manifest(folder)))
    return {**folder.read_json("summary.json"), "conclusion": conclusion}
