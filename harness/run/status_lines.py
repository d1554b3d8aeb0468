"""Lines that stay on the screen while a run goes on."""

from harness.model import WITHOUT_TEXT, CellResult, Load, LoadPoint
from harness.model.metric import OF_AUDIO
from harness.model.numbers import as_given, number
from harness.plan import Cell
from harness.untrusted import one_line
from harness.validity import decisive

_REASON_CHARS = 160  # most of the reason on the line: a server's error may be long


def load_words(load: LoadPoint | Load) -> str:
    """`8 in flight`, `2.5 requests/s`: the value of a load, and what it counts."""
    value = as_given(load.value)
    return {
        "concurrency": f"{value} in flight",
        "rate": f"{value} requests/s",
        "trace": f"replayed {value} times as fast" if load.value != 1 else "replayed at its own pace",
        "working-set": f"working set of {value} times the KV cache" if load.value else "no prefix used twice",
    }[load.kind]


def cell_words(label: str, cell: Cell) -> str:
    """`vllm, 8 in flight, repeat 1`, counted from one; `start 1, block 1` of engines that are up together."""
    which = "repeat" if cell.start is None else f"start {cell.start + 1}, block"
    return f"{label}, {load_words(cell.load)}, {which} {cell.repeat + 1}"


def cell_line(words: str, cell: CellResult) -> str:
    """The line of a finished cell, which `words` name: answers, medians, throughput and verdict.

    Of an INVALID one it has the reason that decided, and no figures where nothing was answered.
    """

    def figure(value: float | None, unit: str) -> str:
        return "n/a" if value is None else f"{number(value)} {unit}"  # in the digits of the table

    left = cell.requests.abandoned
    done = f"{words}: {cell.requests.ok}/{cell.requests.due} ok{f', {left} hung up' if left else ''}"
    verdict = str(cell.validity.verdict)
    if (found := decisive(cell.validity)) is not None:
        reason = found[1]
        verdict += f": {one_line(f'{reason.code}, {reason.measured}', _REASON_CHARS)}"
    if not cell.requests.ok:
        return f"{done}, {verdict}"
    if cell.conditions.api in WITHOUT_TEXT:
        rate, unit = cell.items_per_s, "items/s"
        if cell.conditions.api in OF_AUDIO:
            rate, unit = cell.audio_s_per_s, "s of audio/s"
        return f"{done}, E2E p50 {figure(cell.e2e_ms.p50, 'ms')}, {figure(rate, unit)}, {verdict}"
    return (
        f"{done}, TTFT p50 {figure(cell.ttft_ms.p50, 'ms')}, TPOT p50 {figure(cell.tpot_ms.p50, 'ms')}, "
        f"{figure(cell.output_tokens_per_s, 'tok/s')}, {verdict}"
    )
