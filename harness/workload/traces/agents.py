"""Files of agents' sessions: which form a file has, and its sessions as a trace."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from harness.errors import SpecError
from harness.workload.traces import otel, tracelab, weka
from harness.workload.traces.documents import Documents
from harness.workload.traces.rows import Source
from harness.workload.traces.sessions import Thread, assemble_sessions, read_columns
from harness.workload.traces.trace import Trace

Reader = Callable[[Iterator[tuple[int, Any]], "Counter[str]", "Counter[str]"], Iterator[Thread]]
# The keys that a document of each form has, of one set or another, and its reader.
READERS: Mapping[str, tuple[tuple[set[str], ...], Reader]] = {
    "weka": ((weka.KEYS,), weka.threads),
    "tracelab": ((tracelab.KEYS,), tracelab.threads),
    "otel": (otel.KEYS, otel.threads),
}


def form_of(value: object) -> str | None:
    """Of a document, by its keys; None for one that is of no agent."""
    names = set(value) if isinstance(value, dict) else set()
    return next((name for name, (sets, _) in READERS.items() if any(keys <= names for keys in sets)), None)


def holds_sessions(path: Path) -> bool:
    """Whether its first document is of an agent. Raises SpecError."""
    first = next(iter(Documents(path)), None)
    return first is not None and form_of(first[1]) is not None


def read_sessions(path: Path, named: str = "auto") -> Trace | None:
    """None where the first document of the file is none of these. Raises SpecError."""
    documents = Documents(path)
    source = iter(documents)
    first = next(source, None)
    form = named if named in READERS else form_of(first[1]) if first is not None else None
    if form is None:
        return None
    if first is None:
        raise SpecError("is empty", where=str(path))
    skipped: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    columns = read_columns(READERS[form][1](chain([first], source), skipped, remarks))
    return assemble_sessions(Source(str(path), form, documents.sha256), columns, skipped, remarks)
