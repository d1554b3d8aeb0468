"""`bench import`: results of other tools as a run folder."""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli import options
from harness.errors import ExitCode, SpecError
from harness.host import paths

if TYPE_CHECKING:
    from harness.imports import Part
    from harness.store import RunFolder

EPILOG = """Reads vllm bench serve, SGLang bench_serving, aiperf, guidellm and llama-bench, by what stands in
the file. Several files of one NAME and load are its repeats, and so are the files of a folder. `bench
report`, `compare` and the other commands take the run folder as any other, and FILE in its place.

What another client measured is not verified: each figure is SUSPECT, and says from which tool it is.

Exit codes: 0 imported; 2 a file that is damaged, of no known tool, or of another model."""

OF_RUN = ("manifest.json", "checksums.json", "cells")
SERVER = "server"
_NAMED = re.compile(r"([A-Za-z][\w.@-]*)=(.+)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "files",
        nargs="+",
        metavar="[NAME=]FILE",
        help=f"result files, or folders of them; NAME of the backend (default: {SERVER})",
    )
    options.add_runs_folder(parser)
    options.add_verbose(parser)
    options.add_json(parser, "print summary.json and its conclusion instead of the table")


def main(arguments: argparse.Namespace) -> int:
    from harness import report
    from harness.cli.results import show

    folder = made(arguments.files, arguments.out)
    report.build(folder)
    if not arguments.json:
        print()
    show(folder, arguments)
    return ExitCode.OK


def made(given: Sequence[str], out: Path) -> "RunFolder":
    """With its summary; what the files had is printed on stderr."""
    from harness.imports import imported
    from harness.summary import summarise_folder

    parts = [part for text in given for part in _parts(text)]
    for line in _had(parts):
        print(line, file=sys.stderr)
    folder = imported(parts, out, ["bench", "import", *given])
    folder.write_summary(summarise_folder(folder))
    return folder


def is_import(name: str) -> bool:
    """Whether a word where a run is wanted names files: a file, or a folder of them without any run."""
    from harness.imports import is_result
    from harness.imports.detect import entries_below

    path = Path(name)
    try:
        if paths.entry(path) == "file":
            return is_result(path) or _is_json(path)
        if paths.entry(path) != "folder":
            return False
        below = entries_below(path)
        of_runs = any(one.name in OF_RUN and len(one.relative_to(path).parts) <= 2 for one in below)
        return not of_runs and any(map(is_result, below))
    except OSError:  # not to be read, or gone meanwhile; whoever opens it as a run says so
        return False


def _is_json(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] in (b"{", b"[")


def _parts(text: str) -> "list[Part]":
    from harness.imports import Part, read
    from harness.imports.detect import files_below
    from harness.untrusted import inert

    named, label, path = _NAMED.fullmatch(text), SERVER, Path(text)
    if named and not paths.entry(path):
        label, path = named[1], Path(named[2])
    kind = paths.entry(path)
    if kind not in ("file", "folder"):
        raise SpecError("no such file", where=str(path), hint="[NAME=]FILE, or a folder of files")
    files, left_out = files_below(path) if kind == "folder" else ([path], [])
    for file in left_out:
        print(inert(f"{file}: left out: the results of its folder are in other files"), file=sys.stderr)
    taken_of = [read(file) for file in files]
    return [Part(label, source, one) for source, taken in taken_of for one in taken]


def _had(parts: "Sequence[Part]") -> Iterator[str]:
    """What was read and what is not there, of files that are alike once."""
    from harness.cli.output import page_width
    from harness.report.text import counted, plain

    alike: dict[tuple[object, ...], list[Part]] = {}
    for part in parts:
        one = part.taken
        alike.setdefault((one.tool, one.version, one.level, one.lacks), []).append(part)
    for same in alike.values():
        first = same[0].taken
        more = f" and {counted(len(same) - 1, 'more measurement')}" if len(same) > 1 else ""
        lacks = f"; not in it: {'; '.join(first.lacks)}" if first.lacks else ""
        name = f"{first.tool} {first.version or '(version not known)'}"
        text = plain(f"{same[0].source.path}{more}: {name}: {first.took}{lacks}", 2000)
        yield from textwrap.wrap(text, page_width(), subsequent_indent="  ")
