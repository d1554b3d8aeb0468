"""Tells the sampler what to watch while a cell is measured."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from urllib.parse import urlsplit

from harness.engines.session import EngineSession
from harness.engines.start.started import EngineFacts
from harness.host.address import port_of
from harness.sampling import machine
from harness.sampling.job import Exporter, Watch
from harness.spec.engine_metrics import Counters

# Only these have a difference over a cell; gauges (running, waiting) have none.
COUNTERS = frozenset(field.name for field in fields(Counters))

# NVIDIA_VISIBLE_DEVICES is an order to a container runtime: indices of the host, "void" or a path. A process
# sees what the runtime made of it.
_GPU_ENV = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def watch_of(
    engine: EngineSession, hz: float, up: Sequence[EngineSession] = (), *, duet: bool = False
) -> Watch | None:
    """The order to the sampler; None without sampling.

    Of an engine on another machine only metrics are read. `up`: all engines that are; `duet`: each of them is
    loaded at the same moments.
    """
    if not hz:
        return None
    # All replicas or none: what a part of them used would be shown as the engine's.
    here = _is_here(engine)
    partners = [other for other in up if other is not engine]
    return Watch(
        bench_pid=os.getpid(),
        hz=hz,
        exporters=tuple(_exporters(engine)),
        engine_pid=engine.facts.get("pid") if here else None,
        engine_ports=tuple(map(port_of, engine.urls)) if here else (),
        engine_env=gpu_env(engine.facts),
        engine_here=here,
        apart=bool(engine.roles),
        partner_pids=tuple(pid for other in partners if (pid := other.facts.get("pid")) is not None),
        partner_ports=tuple(
            port_of(url)
            for other in partners
            if other.facts.get("pid") is None and _is_here(other)
            for url in other.urls
        ),
        duet=duet,
    )


def _is_here(engine: EngineSession) -> bool:
    return all(machine.is_this_machine(urlsplit(url).hostname or "") for url in engine.urls)


def gpu_env(facts: EngineFacts) -> dict[str, str]:
    """Variables that say which GPUs the engine was given: those of its container, or of its environment."""
    container = facts.get("container")
    if container is not None and container["device"] != "rocm":
        return {"NVIDIA_VISIBLE_DEVICES": ",".join(map(str, container["gpus"]))}
    own = {name: value for name, value in (facts.get("env") or {}).items() if value is not None}
    given = {**os.environ, **own}
    return {name: given[name] for name in _GPU_ENV if name in given}


def _exporters(engine: EngineSession) -> Iterator[Exporter]:
    for source in engine.counter_sources:
        if (metrics := source.definition.metrics) is not None:
            json = metrics.json
            yield Exporter(
                url=source.base_url + metrics.path,
                access=source.access,
                counters=_named(asdict(metrics.counters)),
                gauges=_named(asdict(metrics.gauges)),
                prompt_tokens_exclude_cached=metrics.prompt_tokens_exclude_cached,
                json_url=source.base_url + json.path if json else "",
                json_gauges=_named(asdict(json.gauges)) if json else {},
            )


def _named(series: dict[str, str]) -> dict[str, str]:
    return {name: given for name, given in series.items() if given}
