"""Which APIs were seen on real engines: the record behind the table of docs/apis.md.

`python -m tests.engines.seen RUN…` adds what run folders show. `measured` counts requests of cells where each
was answered; `differs` those findings of its probe that matter and are not as declared, null where none ran.
"""

import json
import sys
from pathlib import Path
from typing import TypedDict

from harness.store import RunFolder

RECORD = Path(__file__).with_name("seen.json")


class Seen(TypedDict):
    version: str
    measured: int
    differs: int | None


Record = dict[str, dict[str, Seen]]  # by engine and API


def recorded() -> Record:
    record: Record = json.loads(RECORD.read_text("utf-8"))
    return record


def seen_in(folder: RunFolder) -> Record:
    """Of simulated engines nothing."""
    found: Record = {}
    for cell in folder.read_summary().cells:
        if cell.simulated or cell.requests.ok != cell.requests.planned:
            continue
        differs = None
        if (folder.path / f"probe-{cell.label}.json").is_file():
            differs = sum(finding.matters for finding in folder.read_probe(cell.label).mismatches)
        one = Seen(version=str(cell.engine_version), measured=cell.requests.ok, differs=differs)
        found.setdefault(cell.backend, {})[cell.conditions.api] = one
    return found


def assert_recorded(folder: RunFolder) -> None:
    """Of the same versions: a newer engine is to be looked at again."""
    record, stale = recorded(), f"run: python -m tests.engines.seen {folder.path}"
    for engine, apis in seen_in(folder).items():
        for api, one in apis.items():
            known = record.get(engine, {}).get(api)
            assert known is not None, stale
            assert known["version"] == one["version"], stale


def main(paths: list[str]) -> None:
    record = recorded() if RECORD.is_file() else {}
    for path in paths:
        for engine, apis in seen_in(RunFolder(Path(path))).items():
            record.setdefault(engine, {}).update(apis)
    lines = {engine: dict(sorted(apis.items())) for engine, apis in sorted(record.items())}
    RECORD.write_text(json.dumps(lines, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
