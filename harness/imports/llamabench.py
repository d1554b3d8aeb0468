"""llama-bench, as JSON, JSON lines or CSV: one test of the library in each entry, with its repetitions."""

import csv
import io
from collections.abc import Iterator

import msgspec

from harness.imports.source import Document, Source, finite, wrong
from harness.imports.taken import Rows, Taken
from harness.model import Load

TOOL = "llama-bench"
KEYS = {"build_commit", "n_prompt", "n_gen", "avg_ts"}
_WHAT = "llama-bench: the library in one process, without a server"


class _Test(msgspec.Struct):
    n_prompt: int
    n_gen: int
    avg_ts: float
    build_commit: str = ""
    build_number: int | str = ""
    model_filename: str = ""
    n_depth: int = 0
    samples_ts: list[float] = []


def read(document: Document) -> Iterator[Taken]:
    yield from _taken(document.read_as(_Test, TOOL), document.where)


def read_list(document: Document) -> Iterator[Taken]:
    for test in document.read_as(list[_Test], TOOL):
        yield from _taken(test, document.where)


def read_csv(source: Source) -> Iterator[Taken]:
    for line, row in enumerate(csv.DictReader(io.StringIO(source.text)), 2):
        where = f"{source.path}:{line}"
        try:
            test = msgspec.convert(row, _Test, strict=False)
        except msgspec.ValidationError as error:
            raise wrong(f"is not what {TOOL} writes: {str(error).replace('`', chr(39))}", where) from None
        yield from _taken(test, where)


def _taken(test: _Test, where: str) -> Iterator[Taken]:
    """A repetition is a repeat. CSV has none, only their mean."""
    name = "".join(f"{kind}{size}" for kind, size in (("pp", test.n_prompt), ("tg", test.n_gen)) if size)
    if not name:
        raise wrong("a test of no tokens", where)
    depth = f"-d{test.n_depth}" if test.n_depth else ""
    for speed in test.samples_ts or [test.avg_ts]:
        finite(speed, "a speed", where)
        reported = {"output_tokens_per_s": speed} if test.n_gen else {"input_tokens_per_s": speed}
        if test.n_gen and not test.n_prompt and speed > 0:
            reported["tpot_ms.mean"] = 1000 / speed
        yield Taken(
            tool=TOOL,
            version=str(test.build_number or test.build_commit) or None,
            level="summary",
            took=f"the speed of test {name}{depth}",
            load=Load(kind="concurrency", value=1, think_time_s=0.0),
            records=Rows(where).records(),
            model=test.model_filename.rpartition("/")[2] or None,
            variant=f"{name}{depth}",
            lacks=("requests: it sends none",) + (() if test.samples_ts else ("its repetitions",)),
            definitions={path.partition(".")[0]: _WHAT for path in reported},
            reported=reported,
        )
