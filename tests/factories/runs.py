"""Run folders with generated records, for the tests of the report. Every one is marked simulated."""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np

from harness.model import (
    CellFacts,
    ClientStats,
    LoadPoint,
    Plan,
    PlanBlock,
    PlanCell,
    Quantiles,
    Summary,
    as_json,
    from_json,
)
from harness.records.layout import EVENT_DTYPE, EventKind, Outcome, Phase, Records, empty_requests
from harness.store import RunFolder
from harness.summary import summarise_folder
from tests.factories.documents import changed

MS = 1_000_000
SHA = "5f2b1c9e" * 8
PURPOSE = "Many users under a few shared system prompts: what prefix caching is worth."
WARMUP, PREFIX, QUESTION = 4, 512, 32

LAGS_MS = Quantiles(samples=3, p50=0.02, p90=0.324, p95=0.362, p99=0.3924, max=0.4)
QUIET_CLIENT = ClientStats(
    stamp_source="kernel",
    stamp_uncertainty_ms=0.001,
    tick_ms=0.0,
    workers=1,
    lost_workers=0,
    merged_share=0.0,
    held_at_cap=0,
    cpu_s=0.4,
    busy_share=0.04,
    wall_s=9.0,
    send_lag_ms=LAGS_MS,
    loop_lag_ms=LAGS_MS,
    connections=4,
    connect_ms=LAGS_MS,
    peak_rss_bytes=60_000_000,
    gc_collections=0,
    notes=[],
)


@dataclass(frozen=True)
class Engine:
    """A made-up engine: first token after `prefill_ms` times the crowd, then a token every `step_ms`."""

    label: str
    title: str = "Made-up engine"
    prefill_ms: float = 40.0
    step_ms: float = 8.0
    crowd: float = 0.25  # how much one more request in flight slows every other
    hit_rate: float | None = 0.92
    track: str = "gguf-q4_1"
    version: str | None = "1.2.3"
    failing: tuple[int, ...] = ()
    text: str = "The capital of France is Paris."


TWO = (
    Engine("llamacpp", "llama.cpp", 14.0, 9.0, version="b11549"),
    Engine("llamacpp@no-prefix-cache", "llama.cpp", 160.0, 9.2, hit_rate=0.0, version="b11549"),
)
EIGHT = (
    Engine("vllm", "vLLM", 30, 7, 0.05, track="bf16", version="0.32.0"),
    Engine("sglang", "SGLang", 26, 6.5, 0.06, track="bf16", version="0.5.9"),
    Engine("tgi", "TGI", 42, 8, 0.08, None, "bf16", "3.3.7"),
    Engine("lmdeploy", "LMDeploy", 35, 6.1, 0.07, 0.88, "bf16", "0.12.0"),
    Engine("trtllm", "TensorRT-LLM", 21, 5.5, 0.05, 0.9, "bf16", "1.2.0"),
    Engine("aphrodite", "Aphrodite", 39, 7.6, 0.06, 0.91, "bf16", None),
    Engine("llamacpp", "llama.cpp", 33, 6.9, 0.5, 0.93, "gguf-q4_1", "b11549"),
    Engine("ollama", "Ollama", 61, 7.2, 0.6, None, "gguf-q4_1", "0.15.1"),
)


@dataclass(frozen=True)
class Shape:
    engines: Sequence[Engine] = TWO
    concurrency: Sequence[float] = (1, 4)
    rates: Sequence[float] = ()
    repeats: int = 1
    requests: int = 32
    output_tokens: int = 32

    @property
    def sent(self) -> int:
        return WARMUP + self.requests


SMALL = Shape(concurrency=(2,), requests=6, output_tokens=4)


def make_run(root: Path, shape: Shape | None = None) -> RunFolder:
    """A run of this shape, to be changed. One of the same shape that the process made before is copied."""
    return copy_of(_made(shape or Shape()), root)


@cache
def _room() -> TemporaryDirectory[str]:
    """For the runs that are copied, until the process ends."""
    return TemporaryDirectory()


@cache
def _made(shape: Shape) -> RunFolder:
    root = Path(mkdtemp(dir=_room().name))
    folder = RunFolder(root / "20261120T051744Z-shared-prefix-a1b2c3")
    for name in ("cells", "logs"):
        (folder.path / name).mkdir(parents=True)
    points = [("concurrency", value) for value in shape.concurrency] + [
        ("rate", value) for value in shape.rates
    ]
    order: list[str] = []
    blocks: list[PlanBlock] = []
    for repeat in range(shape.repeats):
        engines = list(enumerate(shape.engines))
        for index, engine in engines[::-1] if repeat % 2 else engines:
            planned: list[PlanCell] = []
            for kind, value in points:
                name = f"{len(order):03d}-{file_name(engine.label)}-{kind[0]}{value:g}-r{repeat}"
                order.append(name)
                load = {"kind": kind, "value": value}
                planned.append(PlanCell(cell=name, load=LoadPoint(kind, value)))
                seed = [repeat, int(value * 8)]  # arrivals are the same for every engine, answers are not
                arrivals = np.cumsum(np.random.default_rng(seed).exponential(1e9 / value, shape.sent))
                records = make_records(engine, load, arrivals, np.random.default_rng([index, *seed]), shape)
                folder.write_cell(records, cell_facts(engine, name, load, repeat, shape))
            blocks.append(PlanBlock(backend=engine.label, repeat=repeat, cells=tuple(planned)))
    folder.write_json("manifest.json", manifest_of(folder.run_id, shape, order))
    folder.write_plan(Plan(blocks=tuple(blocks)))
    folder.write_summary(summarise_folder(folder))
    return folder


def copy_of(folder: RunFolder, into: Path) -> RunFolder:
    """A copy under the same name, to be changed."""
    return RunFolder(Path(shutil.copytree(folder.path, into / folder.path.name)))


def file_name(label: str) -> str:
    return re.sub(r"[^\w.@-]", "_", label)[:60]


def make_records(
    engine: Engine, load: Mapping[str, Any], arrivals: np.ndarray, random: np.random.Generator, shape: Shape
) -> Records:
    tokens = shape.output_tokens
    rows = empty_requests(shape.sent)
    rows["phase"][:WARMUP] = Phase.WARMUP
    closed = load["kind"] == "concurrency"
    free = np.zeros(int(load["value"]) if closed else 0, np.int64)
    in_flight = load["value"] if closed else load["value"] * tokens * engine.step_ms / 1000
    slower = 1 + engine.crowd * max(0.0, in_flight - 1)
    events = []
    for seq, row in enumerate(rows):
        slot = int(free.argmin()) if closed else 0
        intended = int(free[slot]) if closed else int(arrivals[seq])
        cold = 3.0 if seq < WARMUP else 1.0
        steps = random.gamma(25, engine.step_ms * slower / 25, tokens) * MS
        steps[0] = random.gamma(12, engine.prefill_ms * slower * cold / 12) * MS
        sent = intended + int(random.gamma(2, 0.05) * MS)
        stamps = sent + np.cumsum(steps).astype(np.int64)
        failing = seq in engine.failing
        end = stamps[0] if failing else stamps[-1] + MS
        row["intended_ns"], row["sent_ns"], row["headers_ns"], row["end_ns"] = intended, sent, sent + MS, end
        row["start_ns"], row["attempts"] = sent if closed else intended, 1
        row["connect_ns"], row["prompt_tokens"] = 0, PREFIX + QUESTION + seq % 5
        if failing:
            row["outcome"], row["http_status"] = Outcome.HTTP_ERROR, 500
        else:
            row["outcome"], row["http_status"], row["output_tokens"] = Outcome.OK, 200, tokens
            row["first_text_ns"], row["last_text_ns"], row["text_events"] = stamps[0], stamps[-1], tokens
            if engine.hit_rate is not None:
                row["cached_tokens"] = int(engine.hit_rate * row["prompt_tokens"])
            row["output_chars"] = 4 * tokens
            events += [(seq, EventKind.TEXT, 4, 120, stamp) for stamp in stamps]
        if closed:
            free[slot] = end
    failed = rows["outcome"] != Outcome.OK
    return Records(
        requests=rows,
        events=np.array(events, EVENT_DTYPE),
        texts=["" if bad else engine.text for bad in failed],
        finish_reasons=["" if bad else "length" for bad in failed],
        errors=["HTTP 500: out of memory" if bad else "" for bad in failed],
    )


def cell_facts(engine: Engine, name: str, load: Mapping[str, Any], repeat: int, shape: Shape) -> CellFacts:
    label, _, variant = engine.label.partition("@")
    share = PREFIX / (PREFIX + QUESTION)
    found = {
        "cell": name,
        "identity": {
            "cell": name,
            "backend": label,
            "variant": variant or None,
            "label": engine.label,
            "title": engine.title,
            "simulated": True,
            "track": engine.track,
            "quantisation": engine.track.rpartition("-")[2].upper(),
            "engine_version": engine.version,
            "launch": "process",
            "repeat": repeat,
        },
        "load": dict(load),
        "workload": {
            "sha256": SHA,
            "exact_lengths": True,
            "output_tokens": shape.output_tokens,
            "exact_output": True,
            "content_tokens_mean": float(PREFIX + QUESTION),
            "ideal_hit_rate": share,
            "shared_share": share,
            "cold_cache": True,
        },
        "planned": shape.requests,
        "unsent": 0,
        "interrupted": False,
        "cache": {"requested": "cold", "reset": True, "description": "restarted"},
        "t0_unix_ns": 1_795_065_464_000_000_000,
        "t0_monotonic_ns": 1_000,
        "server_counters": None,
        "engine_exited": None,
        "engine_log": None,
        "client": QUIET_CLIENT,
    }
    return from_json(as_json(found), CellFacts)


def manifest_of(run: str, shape: Shape, order: list[str]) -> dict[str, Any]:
    labels = ",".join(engine.label for engine in shape.engines)
    return {
        "run": run,
        "state": "complete",
        "created_utc": "2026-11-20T05:17:44Z",
        "command": ["bench", "run", "--scenario", "shared-prefix", "--backends", labels],
        "host": {
            "hostname": "generated",
            "system": "Linux",
            "kernel": "6.1",
            "machine": "x86_64",
            "python": "3.11.7",
            "cpu": "Generated CPU",
            "cpus": 2,
            "cpus_usable": 2,
            "cpu_governor": None,
            "memory_bytes": 25_769_803_776,
            "load_average_1min": 0.1,
            "gpus": None,
        },
        "packages": {"numpy": "2.4.6", "matplotlib": "3.11.2"},
        "git": {"revision": "c40d734", "dirty": False},
        "model": {"name": "smollm2-135m-instruct", "title": "SmolLM2 135M Instruct"},
        "scenario": {
            "scenario": {"name": "shared-prefix", "purpose": PURPOSE},
            "prompts": {
                "generator": "shared-prefix",
                "groups": 2,
                "prefix_tokens": PREFIX,
                "question_tokens": QUESTION,
                "output_tokens": shape.output_tokens,
            },
            "load": {
                "concurrency": list(shape.concurrency),
                "rate": list(shape.rates),
                "requests": shape.requests,
                "warmup_requests": WARMUP,
            },
        },
        "scenario_sha256": SHA[::-1],
        "backends": {engine.label: _backend(engine) for engine in shape.engines},
        "seeds": {"run": 0, "dimensions": ["prompts", "arrivals"]},
        "repeats": shape.repeats,
        "order": order,
        "workload_sha256": SHA,
        "exact_lengths": True,
        "failures": [],
        "warnings": [],
    }


def _backend(engine: Engine) -> dict[str, Any]:
    label, _, variant = engine.label.partition("@")
    return {
        "backend": label,
        "variant": variant or None,
        "url": None,
        "definition_sha256": SHA,
        "launch": {"mode": "process", "why": "no Docker on this machine"},
        "track": engine.track,
        "engine": {
            "version": engine.version,
            "pid": len(engine.label),
            "command": ["serve", "--model", "m.gguf", "--port", "8100"],
            "weights_sha256": SHA,
            "simulated": True,
            "cache_prompt": variant != "no-prefix-cache",
        },
    }


def edit_summary(folder: RunFolder, **changes: Any) -> Summary:
    """The summary with these top-level keys, on disk and returned."""
    summary = changed(folder.read_summary(), **changes)
    folder.write_summary(summary)
    return summary
