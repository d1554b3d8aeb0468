"""llama-bench, as JSON, JSON lines or CSV: one test of the library in each entry, with its repetitions."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from harness.imports.reader import Form, Reader
from harness.imports.source import Document, finite, wrong
from harness.imports.taken import Taken, agree, mean, unix_ns
from harness.model import Load

TOOL = "llama-bench"
_KEYS = {"build_commit", "n_prompt", "n_gen", "avg_ts"}
_CSV = (b"build_commit,", b'"build_commit"')  # how its CSV begins
# Begin the keys of results, of the test, and of what identifies the model and the program.
_NO_SETTINGS = (
    "avg_",
    "stddev_",
    "samples_",
    "test_time",
    "n_prompt",
    "n_gen",
    "n_depth",
    "build_",
    "model_filename",
)
_METRICS = ("ttft_ms", "tpot_ms", "e2e_ms", "input_tokens_per_s", "output_tokens_per_s")


class _Test(msgspec.Struct):
    n_prompt: int
    n_gen: int
    avg_ts: float  # tokens of prompt and answer together
    avg_ns: float | None = None
    build_commit: str = ""
    build_number: int | str = ""
    model_filename: str = ""
    n_depth: int = 0
    samples_ts: list[float] = []
    test_time: str | None = None


def _read(document: Document) -> Iterator[Taken]:
    yield from _taken(document.read_as(_Test, TOOL), document.read_as(dict[str, Any], TOOL), document.where)


def _read_csv(document: Document) -> Iterator[Taken]:
    for line, row in enumerate(csv.DictReader(io.StringIO(document.text)), 2):
        where = f"{document.where}:{line}"
        try:
            test = msgspec.convert(row, _Test, strict=False)
        except msgspec.ValidationError as error:
            raise wrong(f"is not what {TOOL} writes: {str(error).replace('`', chr(39))}", where) from None
        yield from _taken(test, row, where)


def _taken(test: _Test, values: Mapping[str, Any], where: str) -> Iterator[Taken]:
    """A repetition is a repeat. CSV has only their means."""
    name = "".join(f"{kind}{size}" for kind, size in (("pp", test.n_prompt), ("tg", test.n_gen)) if size)
    if not name:
        raise wrong("a test of no tokens", where)
    if test.n_depth:
        name += f"-d{test.n_depth}"
    agree("avg_ts", test.avg_ts, mean(test.samples_ts), where)
    what = f"{TOOL}: {name}, the library in one process, without a server"
    tokens = test.n_prompt + test.n_gen
    repetitions = [(speed, 1e3 * tokens / speed if speed > 0 else None) for speed in test.samples_ts]
    settings = {
        key: str(int(value) if isinstance(value, bool) else value)  # as CSV has it
        for key, value in values.items()
        if not key.startswith(_NO_SETTINGS)
    }
    whole = None if test.avg_ns is None else test.avg_ns / 1e6
    for speed, took_ms in repetitions or [(test.avg_ts, whole)]:
        yield Taken(
            tool=TOOL,
            version=str(test.build_number or test.build_commit) or None,
            level="summary",
            took=f"the speed of test {name}",
            load=Load(kind="concurrency", value=1, think_time_s=0.0),
            model=test.model_filename.rpartition("/")[2] or None,
            variant=name,
            settings=settings,
            started_unix_ns=unix_ns(test.test_time),
            lacks=("requests: it sends none",) + (() if repetitions else ("its repetitions",)),
            # A test is a work of its own: only the same of another file is compared with it.
            definitions=dict.fromkeys(_METRICS, what),
            reported=_figures(test, finite(speed, "a speed", where), took_ms, alone=bool(repetitions)),
        )


def _figures(test: _Test, speed: float, took_ms: float | None, *, alone: bool) -> dict[str, float]:
    """`alone`: of one repetition, which is its own median."""
    tokens = test.n_prompt + test.n_gen
    found = {}
    if test.n_prompt:
        found["input_tokens_per_s"] = speed * test.n_prompt / tokens
    if test.n_gen:
        found["output_tokens_per_s"] = speed * test.n_gen / tokens
    if took_ms is None:
        return found
    kind = "ttft_ms" if not test.n_gen else "e2e_ms" if test.n_prompt else "tpot_ms"
    for statistic in ("mean", "p50") if alone else ("mean",):
        found[f"{kind}.{statistic}"] = took_ms / (test.n_gen if kind == "tpot_ms" else 1)
    return found


READER = Reader(
    tool=TOOL,
    forms=(
        Form(_KEYS, _read),
        Form(frozenset(), _read_csv, begins=_CSV, whole=True),
    ),
    rows=(
        "llama-bench | JSON, JSON lines, CSV | `-o json` | summary | llama.cpp of llama-cpp-python 0.3.36",
    ),
)
