"""One reason to doubt a cell, as every check gives it."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["SUSPECT", "INVALID"]


@dataclass(frozen=True, slots=True)
class Finding:
    code: str
    verdict: Verdict
    measured: str
    limit: str
    hint: str
