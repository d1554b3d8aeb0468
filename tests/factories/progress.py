"""A run as a display follows it: three cells measured, and one going on."""

from types import SimpleNamespace

from harness.load.job import Progress
from harness.model import LoadPoint
from harness.plan import Cell
from tests.factories import summaries

EIGHT = {"kind": "concurrency", "value": 8}
CELL = Cell("001-llamacpp-c8-r0", 1, LoadPoint(**EIGHT), 0)


def progress(done=16, failed=0):
    return Progress(8.0, 64, done + 8, done, failed, 8, 228.0, 412.0)


def run(
    *cells, labels=("vllm", "llamacpp"), planned=20, looks=(3, 10), last_look="", search=False, provided_s=0.0
):
    backends = [SimpleNamespace(label=label) for label in labels]
    prepared = SimpleNamespace(
        labels=labels,
        of=lambda part: backends[part.backend],
        cells=planned,
        looks=looks,
        scenario=SimpleNamespace(name="first-look"),
        options=SimpleNamespace(find_capacity=search),
    )
    return SimpleNamespace(prepared=prepared, cells=list(cells), progress=last_look, provided_s=provided_s)


SUSPECT = summaries.verdict("SUSPECT", "too-short", "1 s", "10 s", "")
MEASURED = (
    summaries.cell("vllm", EIGHT),
    summaries.cell("vllm", EIGHT, validity=SUSPECT),
    summaries.cell("llamacpp", EIGHT),
)
