"""Differences between a stored summary and one that was computed, and which of them are other words alone."""

import math
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any

ABSENT = "absent"  # shown for a key that is not there
_CLOSE = 1e-9  # relative: another version of numpy may add in another order
# Sentences that are made of figures and codes next to them. Rank lines, verdicts and settings are none.
_SENTENCES = re.compile(
    r"(^|\.)(null_reasons\..+|(why|text|hint|lacks|measured|limit|sentence|law|state_why|unavailable|what)"
    r"|(notes|differs|conflicts)\[\d+\])$"
)
_SHOWN, _BEFORE = 120, 40  # characters of a text, and of them before the first that differs
# What turns the sense of a sentence, and units.
_TURNING = frozenset(
    "no not never none same other more less fewer higher lower faster slower better worse gains loses above "
    "below beyond within outside inside ahead behind s ms µs ns min h".split()
)


@dataclass(frozen=True, slots=True)
class Difference:
    path: str  # in summary.json: `cells[003-vllm-c4-r1].e2e_ms.p50`
    stored: Any
    computed: Any
    added: bool = False  # only one of the two has this key

    @property
    def text(self) -> str:
        pairs = zip(self.stored, self.computed, strict=False) if self.are_texts else ()
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        begin = alike - _BEFORE if alike > _SHOWN - _BEFORE else 0
        stored, computed = _short(self.stored, begin), _short(self.computed, begin)
        return f"{self.path}: {stored} stored, {computed} from the records{self._by}"

    @property
    def are_texts(self) -> bool:
        return isinstance(self.stored, str) and isinstance(self.computed, str)

    @property
    def _by(self) -> str:
        first, other = self.stored, self.computed
        if not (_is_number(first) and _is_number(other) and other):
            return ""
        return f" ({100 * (first / other - 1):+.3g}%)"


def differences(stored: Any, computed: Any, path: str = "") -> Iterator[Difference]:
    """Every value of two JSON documents that is not the same. `path`: of these in the whole document."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        for key in [*computed, *(key for key in stored if key not in computed)]:
            if path or key != "schema":
                below = f"{path}.{key}" if path else key
                if key in stored and key in computed:
                    yield from differences(stored[key], computed[key], below)
                else:
                    yield Difference(below, stored.get(key, ABSENT), computed.get(key, ABSENT), added=True)
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for index, (mine, other) in enumerate(zip(stored, computed, strict=True)):
            yield from differences(mine, other, f"{path}[{_name(other, index)}]")
    elif not _alike(stored, computed):
        yield Difference(path, stored, computed)


def is_reworded(entry: Difference, labels: Container[str]) -> bool:
    """Whether the two are sentences that name the same figures, backends and codes in the same order. What is
    named twice in a row counts once. A hint is advice: it may name other flags.
    """
    stored, computed = entry.stored, entry.computed
    if not (_SENTENCES.search(entry.path) and entry.are_texts):
        return False
    if entry.path.endswith(".hint"):
        return True
    return _named(stored, labels) == _named(computed, labels)


def _named(sentence: str, labels: Container[str]) -> list[str]:
    parts = (part.strip(".,:;()%") for part in sentence.split())
    named = (part for part in parts if part in labels or part in _TURNING or _is_figure_or_code(part))
    return [part for part, _again in groupby(named)]


def _is_figure_or_code(part: str) -> bool:
    """`12.5`, `ttft_ms`, `vllm@no-prefix-cache`, `INVALID`, `GiB`, `tokens/s`."""
    digits = any(char.isdigit() or char in "_@/" for char in part)
    return digits or part.isupper() or any(map(str.isupper, part[1:]))


def _name(item: Any, index: int) -> object:
    return item.get("cell", index) if isinstance(item, dict) else index


def _alike(stored: Any, other: Any) -> bool:
    if _is_number(stored) and _is_number(other):
        return math.isclose(stored, other, rel_tol=_CLOSE, abs_tol=1e-12)
    return type(stored) is type(other) and bool(stored == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any, begin: int) -> str:
    if isinstance(value, list | dict):
        return "1 entry" if len(value) == 1 else f"{len(value)} entries"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    shown = text[begin : begin + _SHOWN]
    return f"{'…' if begin else ''}{shown}{'…' if text[begin + _SHOWN :] else ''}"
