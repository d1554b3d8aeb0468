"""The JSON schemas of the documents, made from their types: `python -m harness.model.schema` writes them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.model.cell_facts import CellFacts
from harness.model.conclusion import Concluded
from harness.model.doctor import DoctorResult
from harness.model.history import HistoryEntry
from harness.model.manifest import Manifest
from harness.model.plan import DryRun, Plan
from harness.model.probe import Probed
from harness.model.record import Record
from harness.model.summary import Summary
from harness.model.workload import WorkloadCards

RUN_FORMAT = 2  # of the documents of a run folder; harness.store.migration reads older ones
HISTORY_FORMAT = 1
DOCTOR_FORMAT = 1
FOLDER = Path(__file__).parent.parent / "store"


class Document(NamedTuple):
    kind: type[Record]
    title: str
    version: int | None  # of its format; None: in no file


DOCUMENTS = {
    "cell": Document(CellFacts, "cell.json of a run", RUN_FORMAT),
    "concluded": Document(Concluded, "What `bench run --json` and `bench report --json` print", RUN_FORMAT),
    "doctor": Document(DoctorResult, "doctor.json, which `bench doctor` stores and prints", DOCTOR_FORMAT),
    "dry-run": Document(DryRun, "What `bench run --dry-run --json` prints", None),
    "history": Document(HistoryEntry, "A line of history/runs.jsonl", HISTORY_FORMAT),
    "manifest": Document(Manifest, "manifest.json of a run", RUN_FORMAT),
    "plan": Document(Plan, "plan.json of a run", RUN_FORMAT),
    "probe": Document(Probed, "probe.json of a run", RUN_FORMAT),
    "summary": Document(Summary, "summary.json of a run", RUN_FORMAT),
    "workload": Document(WorkloadCards, "workload.json of a run", RUN_FORMAT),
}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(kind: str) -> dict[str, Any]:  # JSON for others
    """JSON Schema that describes every key, with its unit if the name has none."""
    document = DOCUMENTS[kind]
    (result,), components = msgspec.json.schema_components([document.kind], ref_template="#/$defs/{name}")
    root = _plain(components.pop(result["$ref"].rpartition("/")[2]))
    defs = {name: _plain(part) for name, part in sorted(components.items())}
    document_schema = {"$schema": _DIALECT, **root, "title": document.title, "$defs": defs}
    if document.version is not None:
        version = {"const": document.version, "description": "Version of the format."}
        document_schema["properties"] = {"schema": version, **document_schema["properties"]}
        document_schema["required"] = ["schema", *document_schema["required"]]
    return document_schema


def text(kind: str) -> str:
    return json.dumps(schema(kind), indent=1, ensure_ascii=False) + "\n"


def path(kind: str) -> Path:
    return FOLDER / f"{kind}.schema.json"


def _plain(node: Any) -> Any:
    """Drops defaults, which serve files of older versions, and merges `int | float` into `number`."""
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
