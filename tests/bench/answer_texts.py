"""How often answers of real engines break a rule about texts: the false alarms behind its limits.

    python -m tests.bench.answer_texts FOLDER OF RUNS…

All prompts of a cell are taken to differ. Exits with 1 where a cell breaks a rule.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from harness.metrics.view import RequestView
from harness.model import CellFacts
from harness.records.request_table import RequestTable
from harness.store import RunFolder
from harness.validity import Evidence
from harness.validity.answers import RULES


def cells(runs: Path) -> Iterator[tuple[str, Evidence]]:
    """The cells of measured engines, without simulated and imported ones."""
    for folder in sorted(path for path in runs.iterdir() if (path / "manifest.json").exists()):
        run = RunFolder(folder)
        for name in run.cells():
            records, facts = run.read_cell(name)
            if not facts.identity.simulated and facts.imported is None:
                requested = run.read_requested(facts)
                yield f"{folder.name}/{name}", _evidence(RequestView(records), facts, requested)


def _evidence(view: RequestView, facts: CellFacts, requested: RequestTable | None) -> Evidence:
    differ = replace(facts, workload=replace(facts.workload, equal_prompts=1))
    return Evidence(view, differ, requested=requested)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    judged = answers = broken = 0
    for runs in parser.parse_args().runs:
        for name, cell in cells(runs):
            judged, answers = judged + 1, answers + len(cell.view.answers)
            for rule in RULES:
                for violation in rule.find(cell):
                    broken += 1
                    print(f"{name}: {rule.code}: {violation.measured}", flush=True)
    print(f"{judged} cells, {answers:,} answers: {broken} false alarms")
    return 1 if broken or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
