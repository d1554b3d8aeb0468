"""The definitions of a tool by its version."""

from collections.abc import Iterable, Iterator

from packaging.version import InvalidVersion, Version

from harness.metrics.peers.definitions import CHANGED, TOOLS, Tool
from harness.metrics.peers.recompute import HERE

# The newest version of each package whose definitions and files were read: a later one may have others.
READ_IN = {
    "vllm": "0.33.0",
    "sglang": "0.5.23",
    "aiperf": "0.13.0",
    "guidellm": "0.8.1",
    "inference-perf": "0.7.0",
    "genai-bench": "0.0.5",
    "genai-perf": "0.0.16",
    "evalscope": "1.14.1",
    "llmd-benchmark-report": "0.2.1",
    "endpoints-submission-cli": "1.5.3.0",  # the checker of MLPerf's endpoints
}


def tool_named(name: str) -> Tool:
    """`vllm` is the version that was checked by running it, `vllm@0.33` that version. ValueError with what is
    wrong."""
    plain, _, wanted = name.partition("@")
    if plain not in TOOLS:
        raise ValueError(f"unknown tool '{plain}': {', '.join(TOOLS)}")
    found = TOOLS[plain]
    if not wanted and "@" not in name:
        return found
    try:
        version = Version(wanted)
    except InvalidVersion:
        raise ValueError(f"'{wanted}' is not a version such as 0.33") from None
    for later in CHANGED.get(plain, ()):
        if Version(later.name.partition("@")[2]) <= version:
            found = later
    return found


def changed(metrics: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Metric, tool with version, and its meaning there, wherever a later version means something else."""
    measures = {path: measure for measure, (path, _) in HERE.items()}
    for metric in metrics:
        for name, later in CHANGED.items():
            meanings = {tool.title: tool.why[measures[metric]] for tool in (TOOLS[name], *later)
                        if metric in measures}  # fmt: skip
            if len(set(meanings.values())) > 1:
                yield from ((metric, title, meaning) for title, meaning in meanings.items())
