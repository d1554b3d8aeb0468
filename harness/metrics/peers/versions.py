"""Which definitions a version of a tool has."""

from packaging.version import InvalidVersion, Version

from harness.metrics.peers.definitions import CHANGED, TOOLS, Tool


def tool_named(name: str) -> Tool:
    """`vllm`: as it was checked by running it; `vllm@0.33`: as that version means it.

    ValueError with what is wrong.
    """
    plain, _, wanted = name.partition("@")
    if plain not in TOOLS:
        raise ValueError(f"unknown tool '{plain}': {', '.join(TOOLS)}")
    found = TOOLS[plain]
    if not wanted and "@" not in name:
        return found
    try:
        version = Version(wanted)
    except InvalidVersion:
        raise ValueError(f"'{wanted}' is no version, such as {plain}@0.33") from None
    for later in CHANGED.get(plain, ()):
        if Version(later.name.partition("@")[2]) <= version:
            found = later
    return found
