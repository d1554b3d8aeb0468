"""The GPUs that an engine was given, by its environment."""

from collections.abc import Mapping, Sequence

from harness.host.nvml import named_gpus

# The first that is set decides. An order of devices other than the bus's (CUDA's default is fastest first)
# is not known here: where processes are listed, those say which GPUs were used.
NVIDIA = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
AMD = ("HIP_VISIBLE_DEVICES", *NVIDIA)
NOT_NAMED = "no variable restricts the engine to some GPUs"
_AMD_FIRST = "ROCR_VISIBLE_DEVICES"  # the others count from 0 among the GPUs that it leaves


def visible(
    env: Mapping[str, str],
    uuids: Sequence[str],
    parents: Mapping[str, int],
    variables: Sequence[str] = NVIDIA,
) -> tuple[list[int], str]:
    """Indices into `uuids`, and the reason. `parents`: index of the GPU that a MIG instance is part of."""
    given = _given(env, variables)
    chosen = list(range(len(uuids)))
    for variable in given:
        asked = named_gpus(env[variable])
        if asked == ["all"]:
            continue
        left, before = [uuids[index] for index in chosen], chosen
        chosen = []
        for word in asked:
            index = _index(word, left, parents)
            if index is None:  # CUDA ignores what comes after the first that does not exist
                break
            chosen.append(before[index])
    why = ", ".join(f"{variable}={env[variable]}" for variable in given)
    return sorted(set(chosen)), why or NOT_NAMED


def all_hidden(env: Mapping[str, str], variables: Sequence[str] = NVIDIA) -> str:
    """Says why the engine has no GPU, whatever the machine has; "": it may have some."""
    hiding = [f"{name}={env[name]}" for name in _given(env, variables) if not named_gpus(env[name])]
    return f"no GPU: {hiding[0]}" if hiding else ""


def _given(env: Mapping[str, str], variables: Sequence[str]) -> list[str]:
    given = [name for name in variables if name in env][:1]
    return [_AMD_FIRST, *given] if variables is AMD and _AMD_FIRST in env else given


def _index(word: str, uuids: Sequence[str], parents: Mapping[str, int]) -> int | None:
    if word.isdecimal():
        return int(word) if int(word) < len(uuids) else None
    matches = [index for index, uuid in enumerate(uuids) if uuid.startswith(word)]
    matches += [index for uuid, index in parents.items() if uuid.startswith(word)]
    return matches[0] if len(set(matches)) == 1 else None
