"""What cell.json says of a cell but its figures: engine, workload, request and load."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.engines.session import EngineSession
from harness.engines.speak.dialect import common_fields, unsupported_fields
from harness.engines.start.started import EngineFacts
from harness.load.job import LoadResult
from harness.metrics.prefix import ideal_hit_rate, reusable
from harness.model import (
    UNSET,
    Abandonment,
    AnsweredModel,
    CellFacts,
    CellRequest,
    CellWorkload,
    EngineFound,
    Identity,
    Load,
    LoadPoint,
    Minimum,
    ProbeSize,
    RateSegment,
    UnsetType,
    WorkingSet,
)
from harness.model.json_path import value_at
from harness.plan import Cell, prefixes, slots_of, start_of, warmup_requests
from harness.records.layout import Phase
from harness.records.request_table import FREE
from harness.run.setup.division import division
from harness.run.setup.prepare import Prepared
from harness.spec.scenario import Scenario, SharedPrefix
from harness.workload.prompts.content import content_of
from harness.workload.prompts.workload import Workload

# In an environment that is made again their version is today's; no engine computes with them.
_INSTALLERS = ("pip", "setuptools", "wheel")


def facts_of(
    prepared: Prepared, cell: Cell, workload: Workload, engine: EngineSession, **observed: Any
) -> CellFacts:
    """`observed`: fields that the client, the engine and the sampler gave over the window."""
    scenario, definition = prepared.scenario, prepared.of(cell).ref.definition
    probe, request = cell.probe, _request(prepared, cell, workload)
    values = engine.facts.get("values")
    return CellFacts(
        cell=cell.name,
        identity=_identity(prepared, cell, engine),
        load=_load(scenario, cell.load, engine.kv_tokens()),
        workload=_workload(prepared, cell, workload, request),
        request=request,
        random_weights=prepared.model.random_weights or _is_dummy(engine.facts.get("command") or ()),
        prefix_cache=definition.prefix_cache.enabled,
        habits=asdict(definition.dialect.habits),
        engine_values=None if values is None else dict(values),
        engine=_found(engine.facts),
        start=engine.facts.get("start"),
        planned=len(workload) - warmup_requests(scenario, cell.load),
        slo=scenario.slo,
        probe=None if probe is None else ProbeSize(**asdict(probe)),
        minimum=_minimum(prepared, cell),
        engine_log=engine.facts.get("log"),
        metrics_urls=prepared.of(cell).ref.metrics_urls or UNSET,
        urls=engine.urls if len(engine.urls) > 1 else UNSET,
        balance=(prepared.options.balance or "round-robin") if len(engine.urls) > 1 else UNSET,
        prices=prepared.options.prices,
        **observed,
    )


def engine_version(facts: EngineFacts) -> str | None:
    """Version of the engine's package, with the server's own if that differs; None if neither is known."""
    package, server = facts.get("package_version"), facts["server_version"]
    return f"{package} (server: {server})" if package and server and package != server else package or server


def _found(facts: EngineFacts) -> EngineFound:
    installed = sorted((facts.get("packages") or {}).items())
    packages = [f"{name}=={version}\n" for name, version in installed if name not in _INSTALLERS]
    return EngineFound(
        served_name=facts.get("served_name"),
        image_digest=value_at(facts, "container.image.digest"),
        weights_sha256=value_at(facts, "weights.sha256"),
        packages_sha256=hashlib.sha256("".join(packages).encode()).hexdigest() if packages else None,
        info=facts.get("info", {}),
    )


def _is_dummy(command: Sequence[str]) -> bool:
    """Whether an engine was asked to draw its weights, as by vLLM's and SGLang's `--load-format dummy`."""
    words = " ".join(command).replace("=", " ").replace("_", "-").split()
    return ("--load-format", "dummy") in pairwise(words)


def _load(scenario: Scenario, point: LoadPoint, kv_tokens: int | None) -> Load:
    """The load point, with the settings that its arrivals are tested against."""
    load, start = scenario.load, start_of(scenario, point)
    drawn = point.kind == "rate"
    return Load(
        kind=point.kind,
        value=point.value,
        arrival=load.arrival if drawn else "trace" if point.kind == "trace" else None,
        burstiness=load.burstiness if drawn and load.arrival == "gamma" else None,
        profile=tuple(RateSegment(**asdict(part)) for part in load.profile),
        over_cap=None if start else load.over_cap,
        think_time_s=load.think_time_s,
        abandonment=Abandonment(share=load.abandon_share, after_s=load.abandon_after_s)
        if load.abandon_share
        else UNSET,
        start=start,
        start_declared=load.start if start else None,
        working_set=_working_set(scenario, point, kv_tokens),
    )


def _working_set(scenario: Scenario, point: LoadPoint, kv_tokens: int | None) -> WorkingSet | UnsetType:
    load, prompts = scenario.load, scenario.prompts
    slots = slots_of(load, point)
    if point.kind != "working-set" or slots is None or not isinstance(prompts, SharedPrefix):
        return UNSET
    return WorkingSet(
        prefixes=prefixes(scenario, point),
        held_tokens=prompts.held_tokens,
        kv_tokens=kv_tokens,
        in_flight=slots,
        rest_s=load.rest_s,
    )


def _minimum(prepared: Prepared, cell: Cell) -> Minimum:
    """The least that the scenario declares enough; nothing for a capacity search, whose probes have sizes."""
    if cell.probe is not None:
        return Minimum(seconds=0, answers=0)
    scenario, source = prepared.scenario, prepared.source
    load, warmup = scenario.load, warmup_requests(scenario, cell.load)
    return Minimum(
        seconds=load.min_seconds,
        answers=load.min_answers,
        coverage=load.min_coverage,
        duration_s=load.duration_s,
        after_warmup=load.duration_s is not None and warmup > 0,
        requests=load.requests,
        held=None if source is None else source.held - warmup,
    )


def _request(prepared: Prepared, cell: Cell, workload: Workload) -> CellRequest:
    """Settings that all requests share, in the engine's own fields, and those it has no field for."""
    definition, request = prepared.of(cell).ref.definition, prepared.scenario.request
    constraints = workload.constraints
    return CellRequest(
        api=definition.dialect.api,
        temperature=request.temperature,
        top_p=request.top_p,
        seed=request.seed if request.temperature else None,
        thinking=request.thinking,
        exact_output=request.exact_output,
        fields=common_fields(
            definition, request, int(workload.requested.numbers["max_tokens"][0]), shaped=bool(constraints)
        ),
        own_fields=request.fields or UNSET,
        shapes=tuple(sorted(constraint.shape for constraint in constraints)),
        tools=workload.tools,
        unsupported=unsupported_fields(
            definition, request, constraints, tools=workload.tools, adapters=prepared.scenario.lora.adapters
        ),
    )


def _same(values: NDArray[np.int64]) -> int | None:
    """The value that all have; None if they differ."""
    return int(values[0]) if (values == values[0]).all() else None


def _workload(prepared: Prepared, cell: Cell, workload: Workload, request: CellRequest) -> CellWorkload:
    measured = slice(warmup_requests(prepared.scenario, cell.load), None)
    definition = prepared.of(cell).ref.definition
    return CellWorkload(
        sha256=workload.sha256,
        exact_lengths=workload.exact,
        in_stretches=FREE in workload.requested.kinds,
        output_tokens=_same(workload.requested.numbers["max_tokens"]),
        exact_output=bool(request.exact_output and definition.dialect.exact_output and not request.shapes),
        content_tokens_mean=float(reusable(workload.requested)[1].mean()),
        ideal_hit_rate=ideal_hit_rate(workload.requested, measured),
        shared_share=ideal_hit_rate(workload.requested, measured, state="warm"),
        adapters=prepared.scenario.lora.adapters,
        cold_cache=prepared.scenario.cache.state == "cold",
        content=content_of(prepared.scenario),
        images=prepared.scenario.images.words or None,
        output_spread=getattr(prepared.scenario.prompts, "output_spread", None),
        equal_prompts=workload.equal_prompts,
    )


def _identity(prepared: Prepared, cell: Cell, engine: EngineSession) -> Identity:
    backend = prepared.of(cell)
    ref, track = backend.ref, backend.track
    return Identity(
        cell=cell.name,
        backend=ref.definition.name,
        variant=ref.variant,
        label=backend.label,
        title=ref.definition.backend.title,
        simulated=bool(engine.facts["simulated"]),
        track=track,
        quantisation=prepared.model.tracks[track].quantisation if track else None,
        engine_version=engine_version(engine.facts),
        launch=backend.launch.mode,
        division=division(prepared, backend),
        repeat=cell.repeat,
        start_number=UNSET if cell.start is None else cell.start,
        cores=prepared.cores_of(cell) or UNSET,
    )


def answered_models(
    result: LoadResult, prepared: Prepared, workload: Workload, served_name: str | None
) -> tuple[AnsweredModel, ...]:
    """Names in the measured answers of each model requested, in the order in which they came."""
    rows, found = result.records.requests, []
    every_seq = np.ascontiguousarray(rows["seq"])  # a server may name a model for each answer
    for answered, seqs in result.models.items():
        ours = rows[np.searchsorted(every_seq, seqs)]
        ours = ours[ours["phase"] == Phase.MEASURE]
        requested = [served_name or ""] * len(ours)
        if prepared.scenario.lora.adapters:
            requested = [workload.requested.kinds[seq] for seq in ours["seq"].tolist()]
        sent_ns: dict[str, list[int]] = {}
        for name, at_ns in zip(requested, ours["sent_ns"].tolist(), strict=True):
            sent_ns.setdefault(name, []).append(at_ns)
        found += [
            AnsweredModel(requested=name, answered=answered, requests=len(sent), first_s=min(sent) / 1e9)
            for name, sent in sent_ns.items()
        ]
    return tuple(sorted(found, key=lambda model: model.first_s))
