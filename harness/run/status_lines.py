"""Lines that stay on the screen while a run goes on."""

from harness.model import CellResult


def cell_line(cell: CellResult) -> str:
    """Of a finished cell."""

    def ms(value: float | None) -> str:
        return "n/a" if value is None else f"{value:.1f} ms"

    rate = cell.output_tokens_per_s
    speed = "n/a" if rate is None else f"{rate:.1f}"
    return (
        f"{cell.cell}: {cell.requests.ok}/{cell.requests.planned} ok, TTFT p50 {ms(cell.ttft_ms.p50)}, "
        f"TPOT p50 {ms(cell.tpot_ms.p50)}, {speed} tok/s, {cell.validity.verdict}"
    )
