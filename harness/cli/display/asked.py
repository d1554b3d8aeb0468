"""What a scenario asks of every server, before the run: lengths and limits."""

from collections.abc import Iterator
from dataclasses import asdict

from harness.model.measures import measure
from harness.spec.scenario import Scenario


def asked(scenario: Scenario) -> Iterator[str]:
    """`tokens: prefix 512, output 32` by the keys of [prompts], then the limits; files have lengths of their
    own."""
    prompts = asdict(scenario.prompts)
    default = prompts.pop("unknown_output_tokens", None)  # of a file, unless all answers get one length
    for part in (prompts, *prompts.get("classes", ())):
        lengths = [
            f"{key.removesuffix('_tokens').replace('_', ' ')} {n:,}"
            for key, n in part.items()
            if key.endswith("_tokens") and n is not None
        ]
        if default is not None and prompts["output_tokens"] is None:
            lengths.append(f"output as the file says, or {default:,}")
        if lengths:
            yield f"{part['name'] + ' ' if 'name' in part else ''}tokens: {', '.join(lengths)}"
    limits = [
        measure(f"{metric}.{share}").at_most(limit_ms)
        for metric, shares in scenario.slo.items()
        for share, limit_ms in shares.items()
    ]
    if limits:
        yield f"limits: {', '.join(limits)}"
