"""Recognises the tool that wrote a file by its content, whatever its name."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, groupby, islice
from pathlib import Path

import numpy as np

from harness.errors import SpecError, page_address
from harness.imports import (
    aiperf,
    evalscope,
    genai,
    genai_perf,
    guidellm,
    inference_perf,
    inferencex,
    llamabench,
    mlperf,
    report02,
    sglang,
    sums,
    vllm,
)
from harness.imports.source import Document, ReadFile, Source, all_next_to, wrong
from harness.imports.taken import LOAD, UNKNOWN_LOAD, VERSION, WHEN, ZONE, Taken
from harness.imports.yaml_text import YAML, as_json, is_yaml
from harness.model.imported import RESULT_SUFFIXES
from harness.model.numbers import as_given, counted, short
from harness.records.layout import UNKNOWN

PARQUET = b"PAR1"
MOST_ENTRIES = 10_000
_MOST_REPEATED = 16 << 20  # bytes: figures over runs are shorter, and what is longer is not read for them
_READERS = (
    vllm,
    sglang,
    aiperf,
    guidellm,
    inference_perf,
    genai,
    evalscope,
    genai_perf,
    llamabench,
    inferencex,
    mlperf,
    report02,
)
TOOLS = tuple(reader.TOOL for reader in _READERS)
_BY_KEYS: tuple[tuple[set[str], Callable[[Document], Iterator[Taken]]], ...] = (
    (sglang.KEYS, sglang.read),
    (vllm.KEYS, vllm.read),
    (vllm.TURN_KEYS, vllm.read),
    (guidellm.KEYS, guidellm.read),
    (aiperf.SUMMARY_KEYS, aiperf.read_summary),
    (inference_perf.SUMMARY_KEYS, inference_perf.read_summary),
    (genai.KEYS, genai.read),
    (evalscope.SUMMARY_KEYS, evalscope.read_summary),
    (genai_perf.KEYS, genai_perf.read),
    (genai_perf.SUMMARY_KEYS, genai_perf.read_summary),
    (llamabench.KEYS, llamabench.read),
    (inferencex.KEYS, inferencex.read),
    (mlperf.KEYS, mlperf.read),
    (report02.KEYS, report02.read),
)
# Of a folder: the most that is known of a measurement, and then nothing else of that folder.
_BEFORE_OTHERS = (
    aiperf.KEYS,
    aiperf.SUMMARY_KEYS,
    inference_perf.KEYS,
    inference_perf.SUMMARY_KEYS,
    genai.KEYS,
    evalscope.DATABASE_KEYS,
    evalscope.SUMMARY_KEYS,
    genai_perf.KEYS,
    genai_perf.SUMMARY_KEYS,
)
_OF_LISTS: tuple[tuple[set[str], Callable[[Document], Iterator[Taken]]], ...] = (
    (inference_perf.KEYS, inference_perf.read),
    (inferencex.KEYS, inferencex.read_list),
    (llamabench.KEYS, llamabench.read_list),
)


def read(path: Path, tool_version: str | None = None) -> tuple[ReadFile, list[Taken]]:
    """One measurement, or several. `tool_version`: for a file that names none.

    Raises SpecError for a file that is damaged, of no known tool, or of another version than was given.
    """
    source = Source(path, tool_version)
    taken = [_complete(measurement, source) for measurement in _taken(source)]
    if not taken:
        raise wrong("holds no measurement", str(path))
    for measurement in taken:
        sums.check(measurement, str(path))
    return source.file, taken


def _complete(taken: Taken, source: Source) -> Taken:
    """Adds what holds for the files of every tool."""
    if taken.started_unix_ns is None:
        dated = tuple(lack for lack in taken.lacks if lack != ZONE)
        taken = replace(taken, lacks=(*dated, WHEN))
    return _of_version(_capped(taken), source)


def _capped(taken: Taken) -> Taken:
    """Sets a rate, or an unknown load, with a cap on the requests in flight apart from that with another."""
    if taken.load.kind == "concurrency" or not taken.cap:
        return taken
    if taken.load == UNKNOWN_LOAD:
        return replace(taken, variant=f"max{taken.cap}")
    rate = as_given(taken.load.value)
    most = counted(taken.cap, "request")
    sent_ns = taken.records.requests["sent_ns"]
    sent = f"fewer than {rate}/s may have been sent"
    if len(sent_ns) > 1 and (sent_ns != UNKNOWN).all() and (took_ns := int(np.ptp(sent_ns))):
        sent = f"{short((len(sent_ns) - 1) * 1e9 / took_ns)}/s of {rate}/s were sent"
    lack = f"{LOAD}: with at most {most} in flight, {sent}"
    return replace(taken, variant=f"max{taken.cap}", lacks=(*taken.lacks, lack))


def _of_version(taken: Taken, source: Source) -> Taken:
    given = source.tool_version
    if given is None or taken.version == given:
        return taken
    if taken.version is not None:
        hint = f"it names its version: leave out `--tool-version {given}`"
        raise wrong(f"is of {taken.tool} {taken.version}", str(source.path), hint=hint)
    kept = tuple(lack for lack in taken.lacks if not lack.startswith(VERSION))
    return replace(taken, version=given, lacks=kept)


def is_result(path: Path) -> bool:
    """Whether it may be one: JSON, JSON lines, CSV, YAML or SQLite. A run folder's own documents are not.

    Many programs leave SQLite behind, so there the name counts too.
    """
    return path.suffix in RESULT_SUFFIXES and (path.suffix != ".db" or path.name == evalscope.DATABASE)


def _taken(source: Source) -> Iterator[Taken]:
    if source.head.startswith(PARQUET):
        hint = "aiperf's Parquet file has the server's metrics; profile_export.jsonl has the requests"
        raise wrong("is Parquet, in which no tool writes its results", str(source.path), hint=hint)
    if source.head.startswith(llamabench.CSV):
        yield from llamabench.read_csv(source)
        return
    if evalscope.is_database(source):
        yield from evalscope.read(source)
        return
    if is_yaml(source):
        yield from report02.read(as_json(source))
        return
    if source.head.lstrip()[:1] not in (b"{", b"["):
        raise _unknown(str(source.path))
    if source.is_list:
        document, *more = islice(source.documents(), 2)
        if more:
            hint = "write each run of the tool to a file of its own"
            raise wrong("holds more than one list", str(source.path), hint=hint)
        yield from _list_reader(document)(document)
        return
    documents = source.documents()
    first = next(documents)
    keys = first.keys
    if first.place and keys >= aiperf.KEYS:
        yield from aiperf.read(source, chain([first], documents))
        return
    for document in chain([first], documents):
        yield from _reader(document)(document)


def _list_reader(document: Document) -> Callable[[Document], Iterator[Taken]]:
    """Chooses by the keys of the first entry."""
    keys = document.keys_of_first
    for wanted, reader in _OF_LISTS:
        if wanted <= keys:
            return reader
    if keys >= evalscope.PERCENTILE_KEYS:
        hint = f"import {evalscope.SUMMARY} next to it, which takes them in"
        raise wrong(f"has the percentiles of {evalscope.TOOL} alone", document.where, hint=hint)
    raise _unknown(document.where)


def _reader(document: Document) -> Callable[[Document], Iterator[Taken]]:
    keys = document.keys
    of_aiperf = aiperf.kind_of(document, keys)
    if of_aiperf == "runs":
        raise wrong("has figures over several runs of aiperf", document.where, hint="import the runs")
    if keys >= genai.ABOUT_KEYS:
        hint = "import its folder, or the files next to it: one for each scenario and load"
        raise wrong(f"has the settings of {genai.TOOL} and no measurement", document.where, hint=hint)
    if of_aiperf == "request":  # one alone is a line too
        return lambda candidate: aiperf.read(Source(candidate.path), [candidate])
    for wanted, reader in _BY_KEYS:
        if wanted <= keys:
            return reader
    raise _unknown(document.where)


def _unknown(where: str) -> SpecError:
    return wrong(
        "is no result that bench can read",
        where,
        hint=f"it reads files of {', '.join(TOOLS)}; {page_address('import')} has their flags",
    )


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
    kept: list[Path] = []
    for _, files in groupby(found, key=lambda path: path.parent):
        kept += _results(list(files))
    kept = [path for path in kept if not _of_others(path)] or kept
    return kept, [path for path in found if path not in kept]


def _of_others(path: Path) -> bool:
    """Whether it repeats what files in other folders have: a table, figures of a phase or over runs."""
    try:
        phases = path.parent.parent
        if phases.name == aiperf.PHASES and phases.with_name(aiperf.PHASE_LIST).is_file():
            return True
        if path.stat().st_size > _MOST_REPEATED:
            return False
        source = Source(path)
        if path.suffix == ".csv":
            return not source.head.startswith(llamabench.CSV)
        if is_yaml(source) or source.is_list:
            return False
        first = next(source.documents())
        return aiperf.kind_of(first, first.keys) == "runs"
    except (OSError, SpecError):
        return False


def _results(files: list[Path]) -> list[Path]:
    """The results in one folder: tools leave their inputs, settings and summaries there as well."""
    if len(files) == 1:
        return files
    keys = {path: _first_keys(path) for path in files if path.suffix != ".csv"}
    stages = all_next_to(files[0], inference_perf.STAGES)
    for wanted in _BEFORE_OTHERS:
        if wanted == inference_perf.KEYS and len(stages) > 1:
            continue  # the requests of all stages are in one file
        if of_tool := [path for path, (found, _) in keys.items() if found >= wanted]:
            return [path for path in of_tool if path in stages] or of_tool
    of_vllm = {path: is_list for path, (found, is_list) in keys.items() if found >= vllm.KEYS}
    warm = {path for path in of_vllm if path.name == vllm.WARM_UP}
    lists = {path for path, is_list in of_vllm.items() if is_list}
    repeated = warm | (lists if of_vllm.keys() - warm - lists else set())
    return [path for path in keys if path.suffix not in YAML and path not in repeated] or list(keys) or files


def _first_keys(path: Path) -> tuple[frozenset[str], bool]:
    """Keys of the first entry, and whether it is one of a list."""
    try:
        source = Source(path)
        if evalscope.is_database(source):
            return frozenset(evalscope.DATABASE_KEYS), False
        if is_yaml(source):
            return frozenset(), False
        first = next(source.documents())
        return (first.keys_of_first, True) if source.is_list else (first.keys, False)
    except SpecError:
        return frozenset(), False
