"""Keys of the scenario that the command line sets: by a flag of their own, by --set, or by --depth."""

import argparse

from harness.errors import SpecError
from harness.model.numbers import counted

DEPTH_OUTPUT_TOKENS = 32  # of each answer of --depth, where --output-tokens does not say
_TEMPLATE_TOKENS = 256  # room for a chat template
_LOOPS = {"load.concurrency", "load.rate", "load.replay_speed"}


def overrides_of(arguments: argparse.Namespace) -> dict[str, object]:
    """Scenario keys, dotted. A loop that is chosen takes the scenario's other one away.

    Raises SpecError for a key of --set that a flag sets too.
    """
    given = {key: value for key, value in vars(arguments).items() if "." in key and value is not None}
    if _LOOPS & given.keys():
        given = {key: [] for key in _LOOPS} | given
    implied: dict[str, object] = {}
    if arguments.depth:
        output = given.pop("prompts.output_tokens", DEPTH_OUTPUT_TOKENS)
        given["prompts.classes"], implied = _depths(arguments.depth, output)
    chosen, others = arguments.overrides, {"verdict.repeats": arguments.repeats}
    others["request.api"] = ",".join(arguments.apis) or None
    flags = {**given, **{key: value for key, value in others.items() if value is not None}}
    for key, value in flags.items():
        by_set = chosen.get(key, value)
        if by_set is not value and by_set != value:  # NaN, which is refused later, is not equal to itself
            raise SpecError(
                "another flag sets it otherwise", where=f"--set {key}", hint="leave one of them out"
            )
    unset = {key: value for key, value in implied.items() if key not in chosen}
    return {**chosen, **unset, **given}


def _depths(depths: list[tuple[str, int]], output: int) -> tuple[object, dict[str, object]]:
    """A class of prompts for each depth; an engine that holds the deepest one with its chat template and is
    ranked by it, where --set does not say otherwise. A single depth has the figures of the whole cell.
    """
    if shallow := next((name for name, tokens in depths if tokens <= output), None):
        raise SpecError(
            f"{shallow} leaves no prompt before an answer of {counted(output, 'token')}",
            where="--depth",
            hint="a deeper context, or fewer --output-tokens",
        )
    classes = [
        {"name": name, "input_tokens": tokens - output, "output_tokens": output} for name, tokens in depths
    ]
    name, most = max(depths, key=lambda depth: depth[1])
    implied: dict[str, object] = {
        "engine_values.context_tokens": most + _TEMPLATE_TOKENS,
        "verdict.primary": f"by_kind.{name}.ttft_ms.p50",
    }
    if len(depths) == 1:
        implied["verdict.primary"] = "ttft_ms.p50"
    return classes, implied
