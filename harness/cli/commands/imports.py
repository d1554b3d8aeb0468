"""`bench import`: results of other tools as a run folder."""

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.cli.display.output import print_note
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import ResultForms
from harness.errors import SpecError
from harness.host import paths
from harness.model.grouping import grouped
from harness.model.imported import SERVER
from harness.model.numbers import counted
from harness.report.wording import plain
from harness.untrusted import inert

if TYPE_CHECKING:
    from harness.imports import Part
    from harness.store import RunFolder

EPILOG = """Reads vllm bench serve, SGLang bench_serving, aiperf, guidellm, inference-perf, genai-bench,
evalscope perf, GenAI-Perf, llama-bench, rows of InferenceX, summaries of MLPerf endpoints and benchmark
reports of format 0.2. The content of a file shows which it is. Several files of one NAME and load are its
repeats, and so are the files of a folder. `bench report`, `compare` and the other commands take the run
folder as any other, and FILE in its place.

What another client measured is not verified: each figure is SUSPECT, and names its tool.

Exit codes: 0 imported; 2 a file that is damaged, of no known tool, or of another model."""

_NAMED = re.compile(r"([A-Za-z][\w.@-]*)=(.+)")


@dataclass(frozen=True)
class Options(ResultForms):
    files: tuple[str, ...]
    tool_version: str | None
    out: Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="[NAME=]FILE",
        help=f"result files, or folders of them; NAME of the backend (default: {SERVER}, or as bench "
        "exported it)",
    )
    parser.add_argument(
        "--tool-version",
        metavar="VERSION",
        help="version of the tool, if its files have none: the meaning of a figure may depend on it",
    )
    options.add_runs_folder(parser)
    options.add_result_forms(parser)


def main(given: Options) -> Result:
    from harness.cli.display.results import show

    found = [_results_named(text) for text in given.files]
    folder = made(found, given.out, given.files, given.tool_version)
    put(Result(""), as_json=given.json)
    show(folder, given)
    return Result()


class Found(NamedTuple):
    """The results that a word names, under the name of their backend."""

    label: str
    files: list[Path]
    left_out: list[Path]


def made(
    found: Sequence[Found], out: Path, given: Sequence[str], tool_version: str | None = None
) -> "RunFolder":
    """The run folder with its summary. Prints what the files had on stderr. `tool_version`: for files that
    name none."""
    from harness.imports import imported
    from harness.summary import summarise_folder

    parts = [part for results in found for part in _parts(results, tool_version)]
    for line in _contents(parts):
        print_note(line)
    folder, records = imported(parts, out, ["bench", "import", *given])
    folder.write_summary(summarise_folder(folder, written=records))
    return folder


def results_at(name: str) -> Found | None:
    """The results of a word where a run is wanted: a file, or a folder of them without any run; None if it is
    a run, a file of one, or their history."""
    from harness.imports import entries_below, is_result, results_among
    from harness.store.find import SEALED, holds_history, run_around

    path = Path(name)
    try:
        kind = paths.entry(path) if name else None
        if kind not in ("file", "folder") or run_around(path) or holds_history(path):
            return None
        if kind == "file":
            return Found(SERVER, [path], []) if is_result(path) or _is_data(path) else None
        below = entries_below(path)
        if any(entry.name in (*SEALED, "cells") and _near(entry, path) for entry in below):
            return None
        files, left_out = results_among(below)
    except OSError:  # not to be read, or gone meanwhile; whoever opens it as a run says so
        return None
    return Found(SERVER, files, left_out) if files else None


def _is_data(path: Path) -> bool:
    """JSON, or what no result is without, whatever its name."""
    from harness.imports import is_data

    with path.open("rb") as file:
        return is_data(file.read(64))


def _results_named(text: str) -> Found:
    """The results of a word of `bench import`. Raises SpecError."""
    from harness.imports import entries_below, results_among
    from harness.store.find import SEALED

    named, label, path = _NAMED.fullmatch(text), SERVER, Path(text)
    if named and not paths.entry(path):
        label, path = named[1], Path(named[2])
    kind = paths.entry(path)
    if kind == "file":
        return Found(label, [path], [])
    if kind != "folder":
        raise SpecError("no such file", where=str(path), hint="[NAME=]FILE, or a folder of files")
    below = entries_below(path)
    if {*SEALED} <= {entry.name for entry in below if _near(entry, path)}:
        hint = "`bench compare` and the other commands take a run folder as it is"
        raise SpecError("holds runs of bench, which need no import", where=str(path), hint=hint)
    files, left_out = results_among(below)
    if not files:
        raise SpecError("no result of any tool in this folder", where=str(path))
    return Found(label, files, left_out)


def _near(entry: Path, folder: Path) -> bool:
    """Whether it is in the folder, or in one of its folders."""
    return len(entry.relative_to(folder).parts) <= 2


def _parts(found: Found, tool_version: str | None) -> "Iterator[Part]":
    from harness.imports import Part, read

    of_name = Counter(file.name for file in found.left_out)
    for name, count in of_name.items():
        first = next(file for file in found.left_out if file.name == name)
        more = f" and {count - 1} more of that name" if count > 1 else ""
        print_note(inert(f"{first}{more}: left out: other files have the results"))
    for file in found.files:
        source, taken = read(file, tool_version)
        for measurement in taken:
            yield Part(found.label, source, measurement)


def _contents(parts: "Sequence[Part]") -> Iterator[str]:
    """What was read and what is missing, once for files that are alike."""
    alike = grouped(
        ((part.taken.tool, part.taken.version, part.taken.level, part.taken.lacks), part) for part in parts
    )
    for same in alike.values():
        first = same[0].taken
        more = f" and {counted(len(same) - 1, 'more measurement')}" if len(same) > 1 else ""
        lacks = f"; not in it: {'; '.join(first.lacks)}" if first.lacks else ""
        name = f"{first.tool} {first.version or '(version not known)'}"
        yield plain(f"{same[0].source.path}{more}: {name}: {first.took}{lacks}", 2000)
