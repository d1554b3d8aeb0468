"""A run of our own as a trace: the requests of its first cell, when they were meant to leave."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from harness.errors import SpecError
from harness.record import UNKNOWN, Phase
from harness.store import RunFolder
from harness.traces.rows import BadRow, Row, Source, assemble
from harness.traces.trace import Trace


def read_recorded(path: Path) -> Trace:
    """A run folder, or the folder of one of its cells. Raises SpecError for any other folder.

    A server counts its chat template's tokens into the prompt; their mean is taken off again.
    """
    run, cell = _cell(path)
    records, facts = run.read_cell(cell)
    data = (run.cell_path(cell) / "requests.parquet").read_bytes()
    rows = records.requests[records.requests["phase"] == Phase.MEASURE]
    counted = rows["prompt_tokens"][rows["prompt_tokens"] != UNKNOWN]
    template = 0
    if len(counted) and facts["workload"]["exact_lengths"]:
        template = max(round(float(counted.mean()) - facts["workload"]["content_tokens_mean"]), 0)

    def read() -> Iterator[tuple[int, Row | BadRow]]:
        moments, prompts = rows["intended_ns"].tolist(), rows["prompt_tokens"].tolist()
        for row in zip(rows["seq"].tolist(), moments, prompts, rows["output_tokens"].tolist(), strict=True):
            seq, intended_ns, prompt, output = row
            if UNKNOWN in (intended_ns, prompt, output):
                yield seq, BadRow("not answered, or without token counts")
            else:
                yield seq, Row(intended_ns / 1e9, prompt - template, output)

    source = Source(str(run.cell_path(cell)), "run", hashlib.sha256(data).hexdigest())
    return assemble(source, read())


def _cell(path: Path) -> tuple[RunFolder, str]:
    if (path / "cell.json").is_file():
        return RunFolder(path.resolve().parent.parent), path.resolve().name
    run = RunFolder(path)
    cells = run.cells()
    if not cells:
        raise SpecError("is not the folder of a run, or of a cell of one", where=str(path))
    return run, cells[0]
