"""What is watched while a cell is measured, told to the sampler in its own terms."""

import os
from dataclasses import asdict, fields
from urllib.parse import urlsplit

from harness.engines.session import EngineSession
from harness.engines.started import EngineFacts
from harness.sampling import machine
from harness.sampling.job import Exporter, Watch
from harness.spec.backend import Counters

# What an engine counts up; its gauges (running, waiting) have no difference.
COUNTERS = frozenset(field.name for field in fields(Counters))

_GPU_ENV = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def watch_of(engine: EngineSession, hz: float) -> Watch | None:
    """None where nothing is to be sampled. An engine elsewhere has its metrics read and nothing else."""
    if not hz:
        return None
    address = urlsplit(engine.base_url)
    here = machine.is_this_machine(address.hostname or "")
    return Watch(
        bench_pid=os.getpid(),
        hz=hz,
        exporter=_exporter(engine),
        engine_pid=engine.facts.get("pid") if here else None,
        engine_port=address.port if here else None,
        engine_env=gpu_env(engine.facts),
        engine_here=here,
    )


def gpu_env(facts: EngineFacts) -> dict[str, str]:
    """What says which GPUs the engine was given: of a container those it got, else its environment."""
    container = facts.get("container")
    if container is not None and container["device"] != "rocm":
        return {"NVIDIA_VISIBLE_DEVICES": ",".join(map(str, container["gpus"]))}
    given = {**os.environ, **(facts.get("env") or {})}
    return {name: given[name] for name in _GPU_ENV if name in given}


def _exporter(engine: EngineSession) -> Exporter | None:
    metrics = engine.definition.metrics
    if metrics is None:
        return None
    json = metrics.json
    return Exporter(
        url=engine.base_url + metrics.path,
        headers=engine.headers(),
        counters=_named(asdict(metrics.counters)),
        gauges=_named(asdict(metrics.gauges)),
        prompt_tokens_exclude_cached=metrics.prompt_tokens_exclude_cached,
        json_url=engine.base_url + json.path if json else "",
        json_gauges=_named(asdict(json.gauges)) if json else {},
    )


def _named(series: dict[str, str]) -> dict[str, str]:
    return {name: given for name, given in series.items() if given}
