"""--launch simulate: the scripted server in a backend's dialect stands in for the engine.

Every backend is given the same timing, so that nothing can be read into a difference.
"""

import dataclasses
from collections.abc import Collection, Sequence

from harness.errors import SpecError
from harness.mockserver.dialects import DIALECTS
from harness.mockserver.faults import Fault
from harness.spec.backend import BackendRef, Engine, Process
from harness.spec.strict import nearest
from harness.spec.template import placeholders

TIMING = ("--ttft-ms", "20", "--gap-ms", "5", "--prefill-us-per-token", "50", "--loading-s", "0.2",
          "--image-ms", "30", "--image-cache", "64", "--audio-ms-per-s", "20")  # fmt: skip

CACHE_TOKENS = 262_144  # of its prefix cache, where nobody says otherwise


def simulated(ref: BackendRef, faults: Sequence[str]) -> BackendRef:
    """The same backend, started as its simulator. Raises SpecError where none speaks its dialect."""
    definition = ref.definition
    dialect = definition.backend.simulator or definition.name
    if dialect not in DIALECTS:
        raise SpecError(
            f"nothing simulates '{dialect}'",
            where=f"--launch simulate, backend {ref.label}",
            hint=nearest(dialect, DIALECTS),
        )
    if ref.version:
        raise SpecError(
            "a simulated engine has no versions",
            where=f"--launch simulate, backend {ref.label}",
            hint=f"use {definition.name}",
        )
    args = ["--host", "{host}", "--port", "{port}", "--model-name", "{served_name}", "--dialect", dialect]
    args += TIMING
    if "max_sequences" in definition.engine.values:
        args += ["--max-running", "{max_sequences}"]
    if not definition.prefix_cache.enabled:
        args.append("--no-prefix-cache")
    args += [part for fault in faults for part in ("--fault", fault)]
    args += ["--cache-tokens", "{cache_tokens}"]
    values = {**definition.engine.values, "cache_tokens": CACHE_TOKENS}
    if "lora_adapters" in values:
        args += ["--adapters", "{lora_adapters}", "--adapter-swap-ms", "100"]
        args += ["--adapter-slots", "{lora_slots}" if "lora_slots" in values else "1000"]
    # What it takes no notice of would be kept with the run as if it had an effect.
    used = set(placeholders(args))
    values = {key: value for key, value in values.items() if key in used}
    tunable = {key: allowed for key, allowed in definition.engine.tunable.items() if key in used}
    lora = definition.lora and dataclasses.replace(definition.lora, args=(), each=())
    metrics = definition.metrics and dataclasses.replace(definition.metrics, own_port=False)
    standing_in = dataclasses.replace(
        definition,
        backend=dataclasses.replace(definition.backend, weights="none", simulated=True),
        server=dataclasses.replace(definition.server, effective={}),  # it has settings of its own
        engine=Engine(args=tuple(args), values=values, tunable=tunable),
        process=Process(program=("{harness_python}", "-P", "-m", "harness", "truth")),
        lora=lora,  # its adapters are names alone
        metrics=metrics,  # which it serves besides its API
    )
    return dataclasses.replace(ref, definition=standing_in)


def parse_faults(given: Sequence[str], known: Collection[str]) -> dict[str, list[str]]:
    """`NAME=FAULT` of --simulate-fault, by name. Raises SpecError for a name that is not `known`."""
    faults: dict[str, list[str]] = {}
    for text in given:
        label, equals, fault = text.partition("=")
        where = f"--simulate-fault {text}"
        if not equals:
            raise SpecError("is not BACKEND=FAULT", where=where, hint="such as tgi=503:at=4:times=3")
        if label not in known:
            raise SpecError(f"'{label}' is not one of the backends", where=where, hint=nearest(label, known))
        try:
            Fault.parse(fault)
        except ValueError as error:
            raise SpecError(str(error), where=where) from None
        faults.setdefault(label, []).append(fault)
    return faults
