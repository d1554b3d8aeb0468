"""What is watched while a cell is measured, told to the sampler in its own terms."""

import os
from urllib.parse import urlsplit

from harness.engines.session import EngineSession
from harness.observe import host
from harness.observe.job import Exporter, Watch

# What an engine counts up; its gauges (running, waiting) have no difference.
COUNTERS = frozenset({"prompt_tokens", "cached_prompt_tokens", "output_tokens"})

_GPU_ENV = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def watch_of(engine: EngineSession, hz: float) -> Watch | None:
    """None where nothing is to be sampled. An engine elsewhere has its metrics read and nothing else."""
    if not hz:
        return None
    address = urlsplit(engine.base_url)
    here = host.is_this_machine(address.hostname or "")
    given = {**os.environ, **(engine.facts.get("env") or {})}
    return Watch(
        bench_pid=os.getpid(),
        hz=hz,
        exporter=_exporter(engine),
        engine_pid=engine.facts.get("pid") if here else None,
        engine_port=address.port if here else None,
        engine_env={name: given[name] for name in _GPU_ENV if name in given},
        gpus=here,
    )


def _exporter(engine: EngineSession) -> Exporter | None:
    metrics = engine.definition.metrics
    if metrics is None:
        return None
    return Exporter(
        url=engine.base_url + metrics.path,
        headers=engine.headers(),
        counters={name: getattr(metrics, name) for name in COUNTERS if getattr(metrics, name)},
        gauges={
            name: getattr(metrics, name)
            for name in ("running", "waiting", "kv_use")
            if getattr(metrics, name)
        },
        prompt_tokens_exclude_cached=metrics.prompt_tokens_exclude_cached,
    )
