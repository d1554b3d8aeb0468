"""Recognises the tool that wrote a file by its content, whatever its name."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
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
from harness.imports.reader import Form, Reader
from harness.imports.source import Document, ReadFile, Source, wrong
from harness.imports.taken import LOAD, UNKNOWN_LOAD, VERSION, WHEN, ZONE, Taken, figures_of
from harness.imports.yaml_text import as_json, is_yaml
from harness.model import Fact
from harness.model.numbers import as_given, counted, short
from harness.records.layout import UNKNOWN, Phase

READERS: tuple[Reader, ...] = (
    sglang.READER,  # before vLLM, whose keys its file may have too
    vllm.READER,
    aiperf.READER,
    guidellm.READER,
    inference_perf.READER,
    genai.READER,
    evalscope.READER,
    genai_perf.READER,
    llamabench.READER,
    inferencex.READER,
    mlperf.READER,
    report02.READER,
)
TOOLS = tuple(reader.tool for reader in READERS)
_FORMS = tuple(form for reader in READERS for form in reader.forms)


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
    if taken.level == "summary":
        taken = _of_counts(taken)
    else:
        planned = np.count_nonzero(taken.records.requests["phase"] != Phase.WARMUP)
        taken = replace(taken, planned=int(planned))
    return _of_version(_capped(taken), source)


def _of_counts(taken: Taken) -> Taken:
    """Adds what the counts of answers and failures say, to figures alone."""
    known: tuple[tuple[Fact, int | None], ...] = (("answers", taken.answered), ("outcomes", taken.failed))
    return replace(
        taken,
        took=taken.took or figures_of(taken.answered),
        planned=taken.planned or sum(count or 0 for _, count in known),
        facts=tuple(fact for fact, count in known if count is not None),
    )


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


def _taken(source: Source) -> Iterator[Taken]:
    found = documents(source)
    first = next(found, None)
    if first is None:
        raise _unknown(source.whole.where)
    form = _known(first)
    yield from form.read(first)
    for document in () if form.whole else found:
        yield from _known(document).read(document)


def documents(source: Source) -> Iterator[Document]:
    return iter([as_json(source)]) if is_yaml(source) else source.documents()


def form_of(document: Document) -> Form | None:
    """The first form that it has; None for what no tool writes. Raises SpecError for damaged JSON."""
    is_text = document.head.lstrip()[:1] == b"{"
    keys = document.keys if is_text else frozenset[str]()
    return next((form for form in _FORMS if form.fits(document, keys)), None)


def _known(document: Document) -> Form:
    if (form := form_of(document)) is None:
        raise _unknown(document.where)
    return form


def is_data(head: bytes) -> bool:
    """Whether a file that begins so may be a result, whatever its name."""
    begins = tuple(chain.from_iterable(form.begins for form in _FORMS))
    return head.lstrip()[:1] in (b"{", b"[") or head.startswith(begins)


def _unknown(where: str) -> SpecError:
    return wrong(
        "is no result that bench can read",
        where,
        hint=f"it reads files of {', '.join(TOOLS)}; {page_address('import')} has their flags",
    )
