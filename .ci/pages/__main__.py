"""Writes what docs/ says of the code's own tables: `make pages`. With `--check`, names what is behind.

Whole pages are made, or the part of one between `<!-- made -->` and `<!-- /made -->`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import conditions
import engines
import imports
import issues
import keys
import metrics

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "engines": engines.page,
    "scenario": keys.page,
    "validity": issues.page,
}
PARTS: dict[str, Callable[[], str]] = {
    "fairness": conditions.page,
    "import": imports.page,
    "metrics": metrics.page,
}
BEGIN, END = "<!-- made -->\n", "<!-- /made -->"


def current(name: str) -> str:
    """Text of the page `name`, as it should be."""
    if name in PAGES:
        return PAGES[name]()
    before, begin, rest = (DOCS / f"{name}.md").read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}{PARTS[name]().rstrip()}\n{end}{after}"


def main() -> int:
    behind = []
    for name in (*PAGES, *PARTS):
        path, text = DOCS / f"{name}.md", current(name)
        if path.read_text(encoding="utf-8") != text:
            behind.append(f"docs/{name}.md")
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    print("\n".join(behind) or "every page is current")
    return int(bool(behind) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
