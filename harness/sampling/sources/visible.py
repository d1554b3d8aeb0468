"""The GPUs that an engine was given, by its environment."""

from collections.abc import Mapping, Sequence

from harness.host.nvml import named_gpus

# The first that is set decides. An order of devices other than the bus's (CUDA's default is fastest first)
# is not known here: where processes are listed, those say which GPUs were used.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def visible(
    env: Mapping[str, str], uuids: Sequence[str], parents: Mapping[str, int]
) -> tuple[list[int], str]:
    """Indices into `uuids`, and the reason. `parents`: index of the GPU that a MIG instance is part of."""
    variable = next((name for name in _VARIABLES if name in env), None)
    everything = list(range(len(uuids)))
    if variable is None:
        return everything, "no variable restricts the engine to some GPUs"
    asked = named_gpus(env[variable])
    if asked == ["all"]:
        return everything, f"{variable}=all"
    chosen = []
    for word in asked:
        index = _index(word, uuids, parents)
        if index is None:  # CUDA ignores what comes after the first that does not exist
            break
        chosen.append(index)
    return sorted(set(chosen)), f"{variable}={env[variable]}"


def _index(word: str, uuids: Sequence[str], parents: Mapping[str, int]) -> int | None:
    if word.isdecimal():
        return int(word) if int(word) < len(uuids) else None
    matches = [index for index, uuid in enumerate(uuids) if uuid.startswith(word)]
    matches += [index for uuid, index in parents.items() if uuid.startswith(word)]
    return matches[0] if len(set(matches)) == 1 else None
