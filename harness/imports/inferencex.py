"""Rows of InferenceX: latencies in seconds, rates per GPU, of its own copy of vLLM's client."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.imports import serving
from harness.imports.exchange import restored
from harness.imports.reader import Form, Reader
from harness.imports.source import Document, finite, plain, wrong
from harness.imports.taken import COUNTS, VERSION, Taken, as_name
from harness.model import STATISTICS, Load
from harness.model.exchanged import INFERENCEX_LATENCIES, KEY, as_median
from harness.model.numbers import short

TOOL = "InferenceX"
_KEYS = {"hw", "framework", "precision", "conc", "tput_per_gpu"}
_MOST_S = 86_400.0
_SETUP = {  # how a label names a setting of the server, or of its workers for prefill and for decode
    "num_workers": "x",
    "tp": "tp",
    "pp": "pp",
    "dcp_size": "dcp",
    "pcp_size": "pcp",
    "ep": "ep",
    "dp_attention": "dpa-",
}


class _Row(msgspec.Struct):
    hw: str
    framework: str
    precision: str
    conc: int | None
    model: str | None = None
    isl: int | None = None
    osl: int | None = None
    tp: int | None = None
    pp: int = 1
    pcp_size: int = 1
    disagg: bool = False
    is_multinode: bool = False
    input_tput_per_gpu: float | None = None
    output_tput_per_gpu: float | None = None

    @property
    def gpus(self) -> int | None:
        """GPUs that its rates were divided by; None: a row of several groups does not say."""
        return None if self.disagg or self.is_multinode or not self.tp else self.tp * self.pp * self.pcp_size


def _read(document: Document) -> Iterator[Taken]:
    row, values, where = document.read_as(_Row, TOOL), document.read_as(dict[str, Any], TOOL), document.where
    reported: dict[str, float] = {}
    for metric, name in INFERENCEX_LATENCIES.items():
        for statistic in STATISTICS:
            word = as_median(statistic)
            value = plain(values.get(f"{word}_{name}"))
            if value is None:
                continue
            if value > _MOST_S:
                raise wrong(f"{word}_{name} is {short(value)} s: other units?", where)
            reported[f"{metric}.{statistic}"] = finite(value * 1e3, f"{word}_{name}", where)
    lacks = [VERSION, "requests", COUNTS]
    if row.gpus is None:
        lacks.append("of how many GPUs its rates are, so no rate is known")
    for what, per_gpu in (("input", row.input_tput_per_gpu), ("output", row.output_tput_per_gpu)):
        if per_gpu is not None and row.gpus:
            reported[f"{what}_tokens_per_s"] = finite(per_gpu * row.gpus, what, where)
    ours = values.get(KEY)
    if row.conc is None and ours is None:
        raise wrong("names no concurrency", where)
    if not reported and ours is None:
        raise wrong("has no figures", where)
    taken = Taken(
        tool=TOOL,
        version=None,
        level="summary",
        took="figures of a row",
        load=Load(kind="concurrency", value=row.conc or 1, think_time_s=0.0),
        model=row.model,
        variant="-".join(as_name(part) for part in _setup(row, values) if part),
        lacks=tuple(lacks),
        definitions=serving.definitions("vllm", reported),
        reported=reported,
    )
    yield restored(taken, ours, where)


def _setup(row: _Row, values: dict[str, Any]) -> Iterator[str]:
    """What a row shares with its repeats: the server as it was set up, and the lengths of its requests."""
    yield from (row.framework, row.hw, row.precision)
    for group in ("", "prefill_", "decode_"):
        for key, name in _SETUP.items():
            if value := _known(values.get(group + key)):
                yield f"{group}{name}{value}"
    yield f"{row.isl}x{row.osl}" if row.isl and row.osl else ""
    yield _known(values.get("spec_decoding"))


def _known(value: object) -> str:
    """Empty for what is not set, such as 1 of a degree of parallelism."""
    text = str(value).lower()
    return "" if text in ("none", "false", "0", "1") else text


READER = Reader(
    tool=TOOL,
    forms=(Form(_KEYS, _read),),
    rows=("InferenceX | rows, as JSON | | summary | its scripts of August 2026",),
)
