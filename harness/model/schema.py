"""The JSON schemas of the documents, made from their types: `python -m harness.model.schema` writes them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.model.cell_facts import CellFacts
from harness.model.doctor import DoctorResult
from harness.model.history import HistoryEntry
from harness.model.manifest import Manifest
from harness.model.plan import DryRun, Plan
from harness.model.probe import Probed
from harness.model.record import Record
from harness.model.summary import Summary
from harness.model.workload import WorkloadCards

FOLDER = Path(__file__).parent.parent / "store"


class Document(NamedTuple):
    kind: type[Record]
    title: str
    stored: bool = True  # in a file, with the version of its format


DOCUMENTS = {
    "cell": Document(CellFacts, "cell.json of a run"),
    "doctor": Document(DoctorResult, "doctor.json, which `bench doctor` stores and prints"),
    "dry-run": Document(DryRun, "What `bench run --dry-run --json` prints", stored=False),
    "history": Document(HistoryEntry, "A line of history/runs.jsonl"),
    "manifest": Document(Manifest, "manifest.json of a run"),
    "plan": Document(Plan, "plan.json of a run"),
    "probe": Document(Probed, "probe.json of a run"),
    "summary": Document(Summary, "summary.json of a run"),
    "workload": Document(WorkloadCards, "workload.json of a run"),
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VERSION = {"const": 1, "description": "Of the format."}


def schema(kind: str) -> dict[str, Any]:  # JSON for others
    """With what every key means, and its unit where the name has none."""
    document = DOCUMENTS[kind]
    (made,), components = msgspec.json.schema_components([document.kind], ref_template="#/$defs/{name}")
    root = _plain(components.pop(made["$ref"].rpartition("/")[2]))
    defs = {name: _plain(part) for name, part in sorted(components.items())}
    document_schema = {"$schema": _DIALECT, **root, "title": document.title, "$defs": defs}
    if document.stored:
        document_schema["properties"] = {"schema": _VERSION, **document_schema["properties"]}
        document_schema["required"] = ["schema", *document_schema["required"]]
    return document_schema


def text(kind: str) -> str:
    return json.dumps(schema(kind), indent=1, ensure_ascii=False) + "\n"


def path(kind: str) -> Path:
    return FOLDER / f"{kind}.schema.json"


def _plain(node: Any) -> Any:
    """Without defaults, which are for files of older versions; `int | float` as a number."""
    if isinstance(node, list | tuple):
        return [_plain(part) for part in node]
    if not isinstance(node, dict):
        return node
    plain = {key: _plain(part) for key, part in node.items() if key != "default"}
    if isinstance(words := plain.get("description"), str):
        plain["description"] = " ".join(words.split())
    options = plain.get("anyOf", ())
    if options and all(set(option) == {"type"} for option in options):
        del plain["anyOf"]
        types = [option["type"] for option in options]
        kinds = [option for option in types if option != "integer" or "number" not in types]
        plain["type"] = kinds[0] if len(kinds) == 1 else kinds
    return plain


if __name__ == "__main__":
    for kind in DOCUMENTS:
        path(kind).write_text(text(kind), encoding="utf-8")
