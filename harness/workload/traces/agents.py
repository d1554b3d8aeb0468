"""Reads files with sessions of agents: recognises the form of a file, and turns it into a trace."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.host import paths
from harness.workload.traces import otel, tracelab, weka
from harness.workload.traces.documents import Documents
from harness.workload.traces.rows import Source
from harness.workload.traces.sessions import Thread, assemble_sessions, read_columns
from harness.workload.traces.trace import Trace

Reader = Callable[[Iterator[tuple[int, Any]], "Counter[str]", "Counter[str]"], Iterator[Thread]]
# Form -> sets of keys, one of which every document of that form has, and its reader.
READERS: Mapping[str, tuple[tuple[set[str], ...], Reader]] = {
    "weka": ((weka.KEYS,), weka.threads),
    "tracelab": ((tracelab.KEYS,), tracelab.threads),
    "otel": (otel.KEYS, otel.threads),
}


def form_of(value: object) -> str | None:
    """The form of a document by its keys; None if it is not of an agent."""
    names = set(value) if isinstance(value, dict) else set()
    return next((name for name, (sets, _) in READERS.items() if any(keys <= names for keys in sets)), None)


def holds_sessions(path: Path) -> bool:
    """Whether the first document of the file is of an agent. Raises SpecError."""
    return _form(path) is not None


def _form(path: Path) -> str | None:
    """The form of a file; None for a pipe, which can be read only once and has another format."""
    first = next(iter(Documents(path)), None) if paths.entry(path) == "file" else None
    return form_of(first[1]) if first is not None else None


def read_sessions(path: Path, named: str = "auto") -> Trace | None:
    """Reads a file of sessions; None if its first document has none of the forms. Raises SpecError."""
    form = named if named in READERS else _form(path)
    if form is None:
        return None
    documents = Documents(path)
    skipped: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    columns = read_columns(READERS[form][1](iter(documents), skipped, remarks), skipped)
    return assemble_sessions(Source(str(path), form, documents.sha256), columns, skipped, remarks)
