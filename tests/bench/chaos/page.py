"""The tables of tests/bench/tried.md. What was tried now replaces what stood there; the rest stays."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[1] / "tried.md"
ALL = "**all**"

Rows = Mapping[str, Sequence[str]]  # by the name of the row: its cells; an empty one was not tried


def cell_of(broken: Sequence[str] | None) -> str:
    """Promises that did not hold; of what does not exist, or was not asked for, nothing."""
    return "" if broken is None else "; ".join(broken).replace("|", "/") or "held"


@dataclass(frozen=True)
class Table:
    """Between `<!-- NAME -->` and `<!-- /NAME -->`. `rows` are the names in their order."""

    name: str
    columns: tuple[str, ...]  # the first is that of the names
    rows: tuple[str, ...]
    summed: bool = False  # with a last row of sums

    def publish(self, tried: Rows, arguments: argparse.Namespace) -> None:
        print(self._text(tried))
        if arguments.page:
            page = PAGE.read_text(encoding="utf-8")
            before, start, rest = page.partition(f"<!-- {self.name} -->\n")
            stood, end, after = rest.partition(f"<!-- /{self.name} -->")
            assert end, f"{PAGE} has no place for {self.name}"
            text = self._text(self._merged(_parsed(stood), tried))
            PAGE.write_text(f"{before}{start}{text}\n{end}{after}", encoding="utf-8")

    def _merged(self, stood: Rows, tried: Rows) -> Rows:
        empty = ("",) * (len(self.columns) - 1)
        return {
            name: [
                new or old for new, old in zip(tried.get(name, empty), stood.get(name, empty), strict=True)
            ]
            for name in self.rows
            if name in tried or name in stood
        }

    def _text(self, rows: Rows) -> str:
        align = "--:" if self.summed else "---"
        shown = {name: rows[name] for name in self.rows if name in rows}
        if self.summed:
            shown[ALL] = [
                f"{sum(int(cell.replace(',', '')) for cell in column if cell):,}"
                for column in zip(*shown.values(), strict=True)
            ]
        head = [f"| {' | '.join(self.columns)} |", f"|---|{f'{align}|' * (len(self.columns) - 1)}"]
        return "\n".join(head + [f"| {name} | {' | '.join(cells)} |" for name, cells in shown.items()])


def _parsed(text: str) -> dict[str, list[str]]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:] if line]
    return {name: cells for name, *cells in lines if name != ALL}
