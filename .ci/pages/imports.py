"""Table of docs/import.md: the files of other tools that are read."""

from harness.imports import READERS

_HEAD = "| tool | file | flag | level | read from a file of |\n|---|---|---|---|---|\n"


def page() -> str:
    rows = (f"| {row} |\n" for reader in READERS for row in reader.rows)
    return _HEAD + "".join(sorted(rows, key=str.casefold))
