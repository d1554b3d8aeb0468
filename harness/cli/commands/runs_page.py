"""The page of several runs, as `bench report --html` and `bench compare --html` write it."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.display.output import print_note
from harness.errors import SpecError, writing
from harness.host import scratch
from harness.model import RunComparison
from harness.model.grouping import grouped
from harness.untrusted import inert

if TYPE_CHECKING:
    from harness.cli.commands.imports import Found
    from harness.report.blocks.block import Block
    from harness.verdicts.baseline import Run


def add_html(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write one page about all the runs: their verdicts, charts on common axes, and their history",
    )


def check_several(names: Sequence[str]) -> None:
    """Raises SpecError: the page compares runs with another."""
    if len(names) < 2:
        raise SpecError(
            "one run has its own page",
            where="--html",
            hint="leave --html out, or name the runs to draw together",
        )


def opened(names: Sequence[str], results: Path, *, unverified: bool = False) -> "list[Run]":
    """Prints what must be known of their figures on stderr. Raises as `load_run` and `comparable`.

    A file of another tool, or a folder of them, is a run that is discarded afterwards.
    """
    from harness.cli.commands.imports import results_at
    from harness.run.keep.loaded import comparable, load_run

    found = {name: results_at(name) for name in names}
    own = _own_names([name for name, files in found.items() if files])
    loaded = []
    with scratch.folder("import") as imports:
        for index, name in enumerate(names):
            files = found[name]
            source = _imported(files, name, imports / str(index) / own[name]) if files else name
            run = load_run(source, results, unverified=unverified)
            loaded.append(replace(run, samples=dict(run.samples)) if files else run)  # its folder goes
            for note in loaded[-1].notes:
                print_note(inert(f"{'warning' if unverified else 'note'}: {note}"))
        return comparable(loaded)


def _own_names(names: Sequence[str]) -> dict[str, str]:
    """The name by which each file or folder is compared: its own. Those of one name have those of the nearest
    folders around them that tell them apart.
    """
    from harness.store.confined import fitting

    paths = {name: Path(name).resolve() for name in names}
    own = {name: (path.stem if path.is_file() else path.name) or "files" for name, path in paths.items()}
    for alike in grouped((shown, name) for name, shown in own.items()).values():
        around = zip(*(reversed(paths[name].parent.parts[1:]) for name in alike), strict=False)
        differing = [folders for folders in around if len({*folders}) > 1]
        for depth in range(1, len(differing) + 1):
            joined = ["-".join(reversed(folders)) for folders in zip(*differing[:depth], strict=True)]
            if len({*joined}) == len(alike):
                own |= zip(alike, map(fitting, joined), strict=True)
                break
    return own


def _imported(found: "Found", name: str, target: Path) -> str:
    """A run in the folder of that name, by which it is compared."""
    from harness.cli.commands.imports import made

    return str(made([found], target.parent, [name]).path.rename(target))


def write(path: Path, runs: "Sequence[Run]", document: RunComparison, first: "Sequence[Block]" = ()) -> None:
    """Raises SpecError if nothing of the runs can be compared; then nothing is written. `first`: what stands
    before all results.
    """
    from harness.report import page_of_several
    from harness.store import refuse_file_of_run

    refuse_file_of_run(path, f"--html {path}")
    text = page_of_several(runs, document, first)
    with writing(str(path)):
        path.write_text(text, encoding="utf-8")
