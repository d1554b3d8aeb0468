"""What makes cells unequal, as data: the report shows it, a comparison refuses pairs by it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.dotted import value_at

Cell = Mapping[str, Any]  # of summary.json

# Relative differences: below the first they are told, above it they decide.
MATTERS = 0.05
TOLD = 0.005
IGNORED = 0.5  # share of valid answers below which a constraint was not enforced
PER_GAP = ("itl_ms",)
# With longer answers a smaller part of the time goes into prompts: every rate has another mix.
PER_LENGTH = (
    "e2e_ms",
    "requests_per_s",
    "goodput_requests_per_s",
    "output_tokens_per_s",
    "input_tokens_per_s",
    "output_chars_per_s",
    "cost_per_million_output_tokens",
    "joules_per_output_token",
)
# A first token and a gap depend on them only through what else is in the batch, so by far less.
LENGTHS_APART = 0.2
PER_BATCH = ("ttft_ms", "ttft_service_ms", "tpot_ms", "itl_ms")


@dataclass(frozen=True, slots=True)
class Unequal:
    """`matters`: a verdict on `metrics` (empty: on any) would be about this, not about the engines."""

    code: str
    labels: tuple[str, ...]
    text: str
    matters: bool
    metrics: tuple[str, ...] = ()


def unequal(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The `unequal` list of summary.json, and of any cells that are to be compared, of one run or several.

    Cells are held against those of other labels at the same load point and repeat, so cells of several runs
    need labels that tell them apart. One entry per kind of difference and set of labels.
    """
    groups: dict[tuple[Any, ...], dict[str, Cell]] = {}
    for cell in cells:
        point = (cell["load"]["kind"], cell["load"]["value"], cell["repeat"])
        groups.setdefault(point, {})[cell["label"]] = cell
    found: dict[tuple[str, tuple[str, ...]], Unequal] = {}
    labels = list(dict.fromkeys(cell["label"] for cell in cells))  # the order of measuring turns round
    for group in groups.values():
        for one in _differences({label: group[label] for label in labels if label in group}):
            key = (one.code, one.labels)
            if key not in found or (one.matters and not found[key].matters):
                found[key] = one
    return [
        asdict(one) | {"labels": list(one.labels), "metrics": list(one.metrics)} for one in found.values()
    ]


def _differences(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    if len(group) < 2:
        return
    for code, what, value, matters in _SETTINGS:
        yield from _setting(group, code, what, value, matters)
    yield from _cache_state(group)
    yield from _concurrency_limit(group)
    yield from _prompt_tokens(group)
    yield from _output_length(group)
    yield from _tokens_per_event(group)
    yield from _unsaid(group)
    yield from _shapes_kept(group)


def _condition(path: str) -> Callable[[Cell], Any]:
    return lambda cell: value_at(cell.get("conditions"), path)


def _on_off(value: Any) -> str | None:
    return None if value is None else "on" if value else "off"


_PENALTIES = ("repetition_penalty", "repeat_penalty", "frequency_penalty", "presence_penalty")


def _drawn(cell: Cell) -> Any:
    """None where nothing is drawn: then top_k changes nothing."""
    return _condition("sampling.temperature")(cell) or None


def _sends(cell: Cell, *names: str) -> str | None:
    """Where a field cannot be sent, the engine's or the model file's own value holds."""
    fields = _condition("sent_fields")(cell)
    return None if fields is None else "yes" if any(name in fields for name in names) else "no"


def _forced(cell: Cell) -> str | None:
    """Where an exact length was asked for."""
    length = _condition("exact_output")(cell) or {}
    return None if not length.get("asked") else "yes" if length["forced"] else "no"


# code, what differs, its value, whether that decides. Where a value is not known, nothing is said.
_SETTINGS: tuple[tuple[str, str, Callable[[Cell], Any], bool], ...] = (
    ("workload", "the requests", lambda cell: (cell.get("workload_sha256") or "")[:12] or None, True),
    ("simulated", "simulated", lambda cell: "yes" if cell.get("simulated") else "no", True),
    ("load", "arrivals", lambda cell: cell["load"].get("arrival"), True),
    ("temperature", "temperature", _condition("sampling.temperature"), True),
    ("top-p", "top_p", _condition("sampling.top_p"), True),
    ("top-k", "top_k sent", lambda cell: _drawn(cell) and _sends(cell, "top_k"), False),
    ("penalty", "neutral repetition penalty sent", lambda cell: _sends(cell, *_PENALTIES), False),
    ("thinking-asked", "thinking asked for", _condition("thinking.asked"), True),
    ("thinking", "reasoning text", lambda cell: _on_off(_condition("thinking.seen")(cell)), True),
    ("cache-wanted", "prefix cache at the start", _condition("cache.wanted"), True),
    ("length-forced", "length of answers forced", _forced, False),
    ("prefix-cache", "prefix cache", lambda cell: _on_off(_condition("prefix_cache")(cell)), False),
    ("weights", "weights", lambda cell: cell.get("quantisation"), False),
    ("context", "context per sequence", _condition("engine_values.context_tokens"), False),
    ("launch", "started as", lambda cell: cell.get("launch"), False),
)


def _setting(
    group: Mapping[str, Cell], code: str, what: str, value: Callable[[Cell], Any], matters: bool
) -> Iterator[Unequal]:
    values = {label: value(cell) for label, cell in group.items()}
    known = {label: found for label, found in values.items() if found is not None}
    if len(set(known.values())) > 1:
        yield Unequal(code, tuple(known), f"{what}: {_listed(known)}", matters)


def _listed(values: Mapping[str, Any]) -> str:
    """`16 (a, b), 8 (c)`."""
    of: dict[Any, list[str]] = {}
    for label, value in values.items():
        of.setdefault(value, []).append(label)
    return ", ".join(f"{value} ({', '.join(labels)})" for value, labels in of.items())


def _cache_state(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    """A state that was found in some and not in others decides; one that cannot be seen is told."""
    caches = {label: _condition("cache")(cell) for label, cell in group.items()}
    known = {label: cache for label, cache in caches.items() if cache and cache["wanted"] != "any"}
    states = {cache["holds"] for cache in known.values()}
    if len(states) < 2:
        return
    words = {True: "yes", False: "no", None: "not known"}
    found = _listed({label: words[cache["holds"]] for label, cache in known.items()})
    yield Unequal(
        "cache-state",
        tuple(known),
        f"prefix cache in the state that was asked for: {found}",
        False in states,
    )


def _concurrency_limit(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    """Engines that run different numbers of sequences at once: it decides where the load exceeds one."""
    limits = {label: _condition("engine_values.max_sequences")(cell) for label, cell in group.items()}
    known = {label: limit for label, limit in limits.items() if limit is not None}
    if len(set(known.values())) > 1:
        load = next(iter(group.values()))["load"]
        reached = load["kind"] != "concurrency" or load["value"] > min(map(int, known.values()))
        yield Unequal("max-sequences", tuple(known), f"sequences at once: {_listed(known)}", reached)


def _prompt_tokens(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    counts = {label: _condition("prompt_tokens")(cell) for label, cell in group.items()}
    known = {label: count for label, count in counts.items() if count and count["mean"] is not None}
    means = {label: count["mean"] for label, count in known.items()}
    if len(means) > 1 and _differ(known):
        spread = _spread(means.values())
        words = _listed({label: f"{mean:.1f}" for label, mean in means.items()})
        yield Unequal(
            "prompt-tokens", tuple(known), f"prompt tokens of the same chats: {words}", spread > MATTERS
        )


def _differ(known: Mapping[str, Mapping[str, Any]]) -> bool:
    """By every chat where all are known, else by the first few that both know."""
    digests = {count["sha256"] for count in known.values()}
    if None not in digests:
        return len(digests) > 1
    columns = zip(*(count["first"] for count in known.values()), strict=False)
    return any(len({count for count in column if count is not None}) > 1 for column in columns)


def _output_length(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    means = {label: _condition("output_tokens_mean")(cell) for label, cell in group.items()}
    known = {label: mean for label, mean in means.items() if mean is not None}
    if len(known) > 1 and (spread := _spread(known.values())) > TOLD:
        words = _listed({label: f"{mean:.1f}" for label, mean in known.items()})
        touched = PER_LENGTH + (PER_BATCH if spread > LENGTHS_APART else ())
        yield Unequal("output-length", tuple(known), f"tokens per answer: {words}", spread > MATTERS, touched)


def _tokens_per_event(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    """A gap between events of several tokens is not a gap between tokens."""
    sizes = {
        label: (cell.get("output_tokens") or {}).get("tokens_per_event") for label, cell in group.items()
    }
    known = {label: size for label, size in sizes.items() if size is not None}
    if len(known) > 1 and (spread := _spread(known.values())) > MATTERS:
        words = _listed({label: f"{size:.2f}" for label, size in known.items()})
        yield Unequal(
            "tokens-per-event", tuple(known), f"tokens per event: {words}", spread > MATTERS, PER_GAP
        )


def _unsaid(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    """What some were asked and others could not be. Lengths have their own rule."""
    missing = {label: _condition("unsaid")(cell) or {} for label, cell in group.items()}
    names = dict.fromkeys(name for unsaid in missing.values() for name in unsaid if name != "exact_output")
    for name in names:
        without = tuple(label for label, unsaid in missing.items() if name in unsaid)
        if len(without) < len(group):
            text = f"{name} could not be asked of {', '.join(without)}: {missing[without[0]][name]}"
            yield Unequal(f"unsaid-{name}", without, text, name != "seed")


def _shapes_kept(group: Mapping[str, Cell]) -> Iterator[Unequal]:
    """A shape that one engine enforces and another accepts and ignores."""
    rates: dict[str, dict[str, float]] = {}
    for label, cell in group.items():
        for shape, counts in ((cell.get("answers") or {}).get("structured") or {}).items():
            if counts["told"] and counts["rate"] is not None:
                rates.setdefault(shape, {})[label] = counts["rate"]
    for shape, known in rates.items():
        if min(known.values()) < IGNORED <= max(known.values()):
            words = _listed({label: f"{rate:.0%}" for label, rate in known.items()})
            yield Unequal(f"shape-{shape}", tuple(known), f"valid answers to {shape}: {words}", True)


def _spread(values: Any) -> float:
    """Relative to the smallest."""
    found = list(values)
    return (max(found) - min(found)) / min(found) if min(found) > 0 else float(max(found) > 0)
