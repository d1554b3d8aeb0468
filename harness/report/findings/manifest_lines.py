"""A manifest in lines: the machine in a few words, everything flat, what differs by backend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.model import CellResult, HostFacts, Summary, known
from harness.model.conditions import NOT_GIVEN
from harness.report.wording import plain

# Different at every start of an engine, or said by its name: not what makes two backends unequal.
INCIDENTAL = {
    "backend", "variant", "definition_sha256", "launch.why", "engine.backend", "engine.variant", "engine.pid",
    "engine.port", "engine.base_url", "engine.log", "engine.startup_s",
}  # fmt: skip
ASIDE = ("engine.packages.", "engine.about.", "engine.launch.")  # kept in the manifest, too much for a table


def machine(host: HostFacts | None, summary: Summary) -> str:
    """The part that sets the speed: the GPUs if there are any, with how many an engine used, else the CPU.

    Of running servers that were not seen on this machine it is only where the load came from.
    """
    words = plain(host.hardware or "") if host else ""
    elsewhere = words and summary.cells and not any(map(_seen_here, summary.cells))
    there = len(host.gpus or ()) if host else 0
    return f"load from {words}" if elsewhere else words + _used(there, summary)


def _used(there: int, summary: Summary) -> str:
    """`, each engine on 1` where these are not all GPUs of the machine; "" where it was not seen."""
    found = [cell.gpu for cell in summary.cells if cell.gpu]
    counts = {len(gpu.engine_gpus) for gpu in found if gpu.seen_using_them}
    if not counts or max(counts) >= there:
        return ""
    return f", each engine on {' to '.join(map(str, sorted({min(counts), max(counts)})))}"


def _seen_here(cell: CellResult) -> bool:
    gpus, server = cell.gpu and cell.gpu.engine_gpus, cell.server
    return cell.launch != "attach" or bool(gpus) or bool(server and known(server.cpu_cores) is not None)


def model(summary: Summary) -> str:
    return plain(summary.model.title or summary.model.name) if summary.model else ""


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted key and text of every leaf; a list of plain values is one leaf."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, Sequence) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from flat(item, f"{prefix}[{index}]")
    else:
        yield prefix, leaf(value)


def leaf(value: Any) -> str:
    if value is None:
        return NOT_GIVEN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        texts = [*map(str, value)]
        between = "; " if all(" " in text for text in texts) else " "  # of sentences, or of a command
        return between.join(texts) or "none"
    return str(value) if value != {} else "none"


def differences(backends: Mapping[str, object]) -> list[tuple[str, list[str]]]:
    """Keys whose values differ between backends, each with the values in the backends' order."""
    facts = [dict(flat(entry)) for entry in backends.values()]
    every = dict.fromkeys(key for entry in facts for key in entry)
    keys = [key for key in every if key not in INCIDENTAL and not key.startswith(ASIDE)]
    rows = [(key, [entry.get(key, NOT_GIVEN) for entry in facts]) for key in keys]
    return [(key, values) for key, values in rows if len(set(values)) > 1]
