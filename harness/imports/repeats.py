"""Decides which measurements are repeats of one: by names, settings and lengths of requests."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from harness.conditions.cell_conditions import stated_length
from harness.conditions.measured import MATTERS, SURE
from harness.imports.source import ReadFile, wrong
from harness.imports.taken import Taken, as_name
from harness.model import LoadPoint
from harness.model.imported import SERVER
from harness.records.layout import UNKNOWN, Outcome
from harness.store.confined import fitting

_MANY = 6  # figures: a test of llama-bench has four
_LONGEST, _KEPT = 64, 24  # characters of a value in a name; of a longer one as many as are kept
_LENGTHS = {
    "prompt_tokens": ("prompts", "input_tokens_per_s"),
    "output_tokens": ("answers", "output_tokens_per_s"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """One measurement of a file, under the name of its backend."""

    label: str
    source: ReadFile
    taken: Taken

    @property
    def name(self) -> str:
        """The given name, with what sets it apart from others of its file. If none was given, a name that the
        file has stands alone.
        """
        own = self.taken.label
        if own and self.label == SERVER:
            return own
        return "-".join(filter(None, (self.label, own, self.taken.variant)))


def labels(parts: Sequence[Part]) -> list[str]:
    """The name of each one's backend, with the settings in which it differs from others of that name."""
    settings: dict[str, dict[str, set[str | None]]] = defaultdict(lambda: defaultdict(set))
    keys = {key for part in parts for key in part.taken.settings}
    for part in parts:
        for key in keys:
            settings[part.name][key].add(part.taken.settings.get(key))
    return [fitting("-".join([part.name, *_apart(part, settings[part.name])])) for part in parts]


def _apart(part: Part, settings: Mapping[str, Set[str | None]]) -> Iterator[str]:
    for key, value in part.taken.settings.items():
        if len(settings[key]) > 1:
            yield as_name(f"{key}={_short(value)}", ".-_=")


def _short(value: str) -> str:
    """A long value, such as the names of eight GPUs, by its beginning and its hash: it names a folder."""
    if len(value) <= _LONGEST:
        return value
    return f"{value[:_KEPT]}-{hashlib.sha256(value.encode()).hexdigest()[:7]}"


def check(parts: Sequence[Part], names: Sequence[str]) -> None:
    """Raises SpecError if measurements of one name are no repeats, or if one of them is there twice."""
    where = ", ".join(dict.fromkeys(str(part.source.path) for part in parts))
    if len(models := {part.taken.model for part in parts if part.taken.model}) > 1:
        text = f"different models: {', '.join(sorted(models))}"
        raise wrong(text, where, hint="import the files of each model apart")
    seen: dict[str, Part] = {}
    for part in parts:
        first = seen.setdefault(part.source.sha256, part)
        if first.source is not part.source:  # one file may hold several measurements
            text = f"is the same as {first.source.path} of {first.label}: no repeat"
            raise wrong(text, str(part.source.path), hint="leave it out")
    apart: dict[object, Part] = {}
    for part in parts:
        first = apart.setdefault(_evidence(part), part)
        if first is not part:  # a tool may append its runs to one file, of which another is a copy
            also = "twice" if first.source is part.source else f"that {first.source.path} has too"
            raise wrong(f"has a measurement {also}: no repeat", str(part.source.path), hint="keep each once")
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    same: dict[tuple[str, LoadPoint], list[Taken]] = defaultdict(list)
    for name, part in zip(names, parts, strict=True):
        taken = part.taken
        kinds[name][f"{taken.tool} {taken.version or '(version not known)'}, {taken.level}"] = None
        same[name, taken.load.point].append(taken)
    differences = ["; ".join(found) for found in kinds.values() if len(found) > 1]
    differences += [text for repeats in same.values() for text in _lengths(repeats)]
    if differences:
        hint = "give each a name: a=FILE b=FILE; or compare them: two runs"
        raise wrong(f"no repeats of one backend: {differences[0]}", where, hint=hint)


def _evidence(part: Part) -> object:
    """What two measurements never share: times of answers, or many figures. A few figures may be equal by
    chance, and where nothing was answered all are 0.
    """
    rows = part.taken.records.requests
    figures = tuple(figure for figure in part.taken.reported.items() if figure[1])
    if not np.any(rows["outcome"] == Outcome.OK) and len(figures) < _MANY:
        return id(part)
    return hashlib.sha256(rows.tobytes()).digest(), figures


def _lengths(repeats: Sequence[Taken]) -> Iterator[str]:
    """Lengths of requests in which repeats differ as much as two runs may not, and not by chance."""
    for column, (what, rate) in _LENGTHS.items():
        known = [found for taken in repeats if (found := _mean_length(taken, column, rate))]
        if len(known) < 2:
            continue
        (low, low_error), (high, high_error) = min(known), max(known)
        spread, error = high / low - 1, np.hypot(low_error, high_error)
        if spread > max(MATTERS, SURE * error):
            yield f"{what} of {low:.1f} and of {high:.1f} tokens (means)"


def _mean_length(taken: Taken, column: str, rate: str) -> tuple[float, float] | None:
    """The mean and its relative standard error. Of figures alone lengths are taken to spread as widely as
    they are long.
    """
    counts = taken.records.requests[column]
    counts = counts[counts != UNKNOWN]
    if len(counts) and (mean := float(counts.mean())):
        return mean, float(counts.std()) / mean / len(counts) ** 0.5
    stated = stated_length(taken.reported, rate)
    return (stated, taken.answered**-0.5) if stated and taken.answered else None
