"""Lines that stay on the screen while a run goes on."""

from harness.model import WITHOUT_TEXT, CellResult, LoadPoint


def cell_words(label: str, load: LoadPoint, repeat: int) -> str:
    """`vllm, 8 in flight, repeat 1`: repeats are counted from one."""
    value = f"{load.value:g}"
    at = {
        "concurrency": f"{value} in flight",
        "rate": f"{value} requests/s",
        "trace": f"replayed {value} times as fast",
        "working-set": f"working set of {value} times the KV cache" if load.value else "no prefix used twice",
    }
    return f"{label}, {at[load.kind]}, repeat {repeat + 1}"


def cell_line(cell: CellResult) -> str:
    """The line of a finished cell: answers, medians, throughput and verdict."""

    def ms(value: float | None) -> str:
        return "n/a" if value is None else f"{value:.1f} ms"

    words = cell_words(cell.label, cell.point, cell.repeat)
    done = f"{words}: {cell.requests.ok}/{cell.requests.planned} ok"
    if cell.conditions.api in WITHOUT_TEXT:
        items = "n/a" if cell.items_per_s is None else f"{cell.items_per_s:.1f}"
        return f"{done}, E2E p50 {ms(cell.e2e_ms.p50)}, {items} items/s, {cell.validity.verdict}"
    rate = cell.output_tokens_per_s
    speed = "n/a" if rate is None else f"{rate:.1f}"
    return (
        f"{done}, TTFT p50 {ms(cell.ttft_ms.p50)}, "
        f"TPOT p50 {ms(cell.tpot_ms.p50)}, {speed} tok/s, {cell.validity.verdict}"
    )
