"""Lines that stay on the screen while a run goes on."""

from typing import Any


def cell_line(cell: dict[str, Any]) -> str:
    """Of a finished cell."""

    def ms(name: str) -> str:
        value = cell[name]["p50"]
        return "n/a" if value is None else f"{value:.1f} ms"

    rate = cell["output_tokens_per_s"]
    speed = "n/a" if rate is None else f"{rate:.1f}"
    counts = cell["requests"]
    return (
        f"{cell['cell']}: {counts['ok']}/{counts['planned']} ok, TTFT p50 {ms('ttft_ms')}, "
        f"TPOT p50 {ms('tpot_ms')}, {speed} tok/s, {cell['validity']['verdict']}"
    )
