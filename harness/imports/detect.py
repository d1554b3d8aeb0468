"""Which tool wrote a file: by what stands in it, whatever its name is."""

from collections.abc import Callable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path

from harness.errors import SpecError
from harness.imports import aiperf, guidellm, llamabench, sglang, vllm
from harness.imports.source import Document, Source, wrong
from harness.imports.taken import Taken

MOST_ENTRIES = 10_000
TOOLS = (vllm.TOOL, sglang.TOOL, aiperf.TOOL, guidellm.TOOL, llamabench.TOOL)
_BY_KEYS: tuple[tuple[set[str], Callable[[Document], Iterator[Taken]]], ...] = (
    (sglang.KEYS, sglang.read),
    (vllm.KEYS, vllm.read),
    (guidellm.KEYS, guidellm.read),
    (aiperf.SUMMARY_KEYS, aiperf.read_summary),
    (llamabench.KEYS, llamabench.read),
)


def read(path: Path) -> tuple[Source, list[Taken]]:
    """A measurement, or several. Raises SpecError for a file that is damaged or of no known tool."""
    source = Source(path)
    taken = list(_taken(source))
    if not taken:
        raise wrong("holds no measurement", str(path))
    return source, taken


def is_result(path: Path) -> bool:
    """Whether it may be one: JSON, JSON lines or CSV. A run folder's own documents are not."""
    return path.suffix in (".json", ".jsonl", ".csv")


def _taken(source: Source) -> Iterator[Taken]:
    if source.head.startswith((b"build_commit,", b'"build_commit"')):
        yield from llamabench.read_csv(source)
        return
    if source.head.lstrip().startswith(b"["):
        (document,) = source.documents()
        yield from llamabench.read_list(document)
        return
    documents = source.documents()
    first = next(documents)
    keys = first.keys
    if first.place and keys >= aiperf.KEYS:
        yield from aiperf.read(source, chain([first], documents))
        return
    for document in chain([first], documents):
        yield from _reader(document)(document)


def _reader(document: Document) -> Callable[[Document], Iterator[Taken]]:
    keys = document.keys
    if keys >= aiperf.KEYS:  # one request alone is a line too
        return lambda one: aiperf.read(Source(one.path), [one])
    for wanted, reader in _BY_KEYS:
        if wanted <= keys:
            return reader
    raise wrong(
        "is no result that bench can read",
        document.where,
        hint=f"it reads files of {', '.join(TOOLS)}; docs/import.md has their flags",
    )


def entries_below(folder: Path) -> list[Path]:
    """In order. None where there are more than anybody keeps results in, such as in `/`. Raises OSError."""
    found = list(islice(folder.rglob("*"), MOST_ENTRIES + 1))
    return sorted(found) if len(found) <= MOST_ENTRIES else []


def files_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """Results in a folder and below it, in order; and what says the same again: a tool's CSV, or its summary
    next to its requests. Raises SpecError where there is none.
    """
    found = [path for path in entries_below(folder) if path.is_file() and is_result(path)]
    if not found:
        raise SpecError("no result of any tool in this folder", where=str(folder))
    kept: list[Path] = []
    for _, files in groupby(found, key=lambda path: path.parent):
        kept += _results(list(files))
    return kept, [path for path in found if path not in kept]


def _results(files: list[Path]) -> list[Path]:
    """Of one folder. aiperf leaves its inputs, telemetry and summary there as well."""
    jsons = [path for path in files if path.suffix != ".csv"]
    for keys in (aiperf.KEYS, aiperf.SUMMARY_KEYS):
        if of_aiperf := [path for path in jsons if _begins_with(path, keys)]:
            return of_aiperf
    return jsons or files


def _begins_with(path: Path, keys: set[str]) -> bool:
    try:
        return next(Source(path).documents()).keys >= keys
    except SpecError:
        return False
