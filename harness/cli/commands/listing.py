"""`bench list`: what there is to run, and what was run."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.cli.display.result import Result
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SpecError
from harness.host import paths
from harness.model import METRICS, SLO_METRICS, WorkloadCard, as_json, from_json
from harness.model.lines import wrap
from harness.model.numbers import as_given

if TYPE_CHECKING:
    from harness.spec.backend import Backend
    from harness.spec.scenario import Scenario
    from harness.store import RunFolder

NARROWEST = 16  # columns of text
LONGEST_CELL = 70  # characters; longer texts are sentences
NARROWEST_SENTENCE = 40  # columns

Row = dict[str, Any]  # of one listing, as --json prints it: each has columns of its own


class _Stated(msgspec.Struct):
    """All that a list reads of summary.json: the rest, most of it figures of cells, is skipped."""

    state: str


@dataclass(frozen=True)
class Options(Flags):
    what: str | None
    verbose: bool
    out: Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        choices=tuple(_LISTS),
        metavar="WHAT",
        help=f"kind to list: {', '.join(_LISTS)} (default: the first three)",
    )
    options.add_verbose(
        parser, "scenarios: also show lengths, prefix sharing and arrivals; backends: a row per variant"
    )
    options.add_json(parser)
    options.add_runs_folder(parser)


def main(given: Options) -> Result:
    wanted = (given.what,) if given.what else ("scenarios", "backends", "models")
    lists = {what: _LISTS[what](given) for what in wanted}
    return Result(lambda screen: _lines(lists, given, screen.rows), lambda: lists)


def _lines(lists: Mapping[str, Sequence[Row]], given: Options, width: int) -> Iterator[str]:
    for index, (what, rows) in enumerate(lists.items()):
        if len(lists) > 1:
            yield ("\n" if index else "") + what.upper()
        where = f" in {given.out}" if what == "runs" else ""
        yield _as_text(what, rows, width, verbose=given.verbose) or f"no {what}{where}"


def _as_text(what: str, rows: Sequence[Row], width: int, *, verbose: bool) -> str:
    if what == "scenarios" and verbose:
        return _with_cards(rows, width)
    return _columns(rows if verbose or what != "backends" else _engines(rows), width)


def _engines(rows: Sequence[Row]) -> list[Row]:
    """A row per engine with the number of its variants, of which there are more than a hundred."""
    variants = Counter(row["name"].partition("@")[0] for row in rows)
    engines = [row for row in rows if "@" not in row["name"]]
    return [
        {"name": row["name"], "variants": variants[row["name"]] - 1 or "", "start": row["start"],
         "about": row["about"]}
        for row in engines
    ]  # fmt: skip


def _scenarios(given: Options) -> list[Row]:
    from harness.spec.scenario import load_scenario

    rows = []
    for name in sorted(paths.definitions("workloads")):
        scenario = load_scenario(name)
        load = scenario.load
        if load.working_set:
            shape = f"working set {','.join(map(as_given, load.working_set))} x KV cache"
        elif load.concurrency:
            shape = f"concurrency {','.join(map(str, load.concurrency))}"
        elif load.rate:
            shape = f"rate {','.join(map(as_given, load.rate))}/s"
        else:
            shape = f"replay {','.join(map(as_given, load.replay_speed))}x"
        row = {"name": name, "load": shape, "requests": load.requests, "purpose": scenario.scenario.purpose}
        rows.append(row | ({"cards": _cards(scenario)} if given.verbose else {}))
    return rows


def _cards(scenario: "Scenario") -> Row:
    """Takes each word for a token, since there is no tokenizer at hand."""
    from harness.run.measure.workloads import Workloads
    from harness.spec.scenario import Images

    if scenario.load.working_set and scenario.load.kv_tokens is None:
        return {}  # as many prefixes as an engine has room for
    scenario = replace(scenario, images=Images())  # whose drawing takes seconds
    cards: Row = as_json(Workloads(scenario, 1, 0, None).cards(0))
    return cards


def _with_cards(rows: Sequence[Row], width: int) -> str:
    from harness.report.text.card import card_lines

    lines = []
    for row in rows:
        cards = from_json(row["cards"], dict[str, WorkloadCard])
        below = [row["purpose"], *(line for card in cards.values() for line in card_lines(card))]
        lines.append(row["name"])
        lines += [part for line in below for part in wrap(f"  {line}", width, subsequent_indent=" " * 6)]
    return "\n".join(lines)


def _backends(_given: Options) -> list[Row]:
    from harness.spec.backend_refs import load_backend
    from harness.spec.files import names

    rows = []
    for name in names("backends"):
        backend = load_backend(name)
        start = _start(backend)
        for variant in (None, *backend.variants):
            state = f" ({backend.backend.status})" if backend.backend.status != "active" else ""
            about = backend.variants[variant].description if variant else backend.backend.title + state
            rows.append(
                {
                    "name": name if variant is None else f"{name}@{variant}",
                    "start": start,
                    "about": about + (" (simulated)" if backend.backend.simulated else ""),
                }
            )
        rows += _tuned(name, backend.name, start)
    return rows


def _tuned(name: str, backend: str, start: str) -> list[Row]:
    """The variant that `bench tune` stored for a backend. A file that does not fit says so here."""
    from harness.spec.tuned import load_tuned, tuned_path

    path = tuned_path(backend)
    if paths.entry(path) is None:
        return []
    try:
        about = load_tuned(path).description
    except SpecError as error:
        about = f"unreadable: {error}"
    return [{"name": f"{name}@tuned", "start": start, "about": about}]


def _conditions(_given: Options) -> list[Row]:
    from harness.conditions import TABLE

    return [
        {
            "name": key.code,
            "two engines": key.engines,
            "one engine, two runs": key.itself,
            "what": key.title,
            "why": key.why,
        }
        for key in TABLE
    ]


def _issues(_given: Options) -> list[Row]:
    from harness.validity import RULES
    from harness.validity.notices import NOTICES

    cells = [
        {
            "name": rule.code,
            "of": "cell",
            "verdict": ", ".join(rule.verdicts),
            "about": rule.measures,
            "hint": rule.hint,
        }
        for rule in RULES.values()
    ]
    runs = [
        {"name": notice.code, "of": "run", "verdict": "", "about": notice.when, "hint": notice.hint}
        for notice in NOTICES
    ]
    return cells + runs


def _metrics(_given: Options) -> list[Row]:
    return [
        {
            "name": metric.name,
            "short": metric.short,
            "unit": metric.unit,
            "better": metric.better or "",
            "slo": "yes" if metric.name in SLO_METRICS else "",
            "about": metric.about,
        }
        for metric in METRICS.values()
    ]


def _start(backend: "Backend") -> str:
    """The ways to start it here. Any can be attached to."""
    from harness.engines.known import not_run
    from harness.engines.provide.install import installed

    modes = []
    if backend.process and backend.process.install:
        modes.append("process (installed)" if installed(backend) else "process (installs itself)")
    elif backend.process:
        modes.append("process")
    if backend.process_cuda:
        modes.append("process on a GPU" + (" (not run yet)" if not_run(backend.process_cuda) else ""))
    if backend.compose:
        modes.append("compose")
    return ", ".join(modes) or "attach"


def _models(_given: Options) -> list[Row]:
    from harness.spec.models import load_models

    known = load_models()
    return [
        {
            "name": name + (" (default)" if name == known.default else ""),
            "weights": track_name,
            "format": track.weights,
            "quantisation": track.quantisation,
        }
        for name, model in known.models.items()
        for track_name, track in model.tracks.items()
    ]


def _runs(given: Options) -> list[Row]:
    from harness.store import stored_runs

    rows = []
    for folder in stored_runs(given.out):
        name = folder.path.name  # by which it is found here, also of a link
        try:
            manifest = folder.read_manifest()
        except SpecError as error:
            rows.append({"run": name, "state": "unreadable", "scenario": "", "backends": str(error)})
            continue
        dead = manifest.state == "running" and folder.is_held is False
        rows.append(
            {
                "run": name,
                "state": "killed" if dead else _state(folder, manifest.state),
                "scenario": manifest.scenario.scenario.name,
                "backends": ", ".join(manifest.backends),
            }
        )
    return rows


def _state(folder: "RunFolder", state: str) -> str:
    """`invalid` of a complete run that has INVALID cells, as its summary says."""
    with suppress(SpecError, OSError, ValueError, RecursionError):
        if state == "complete":
            stated = msgspec.json.decode(folder.files.read("summary.json"), type=_Stated)
            return "invalid" if stated.state == "invalid" else state
    return state


def _suites(_given: Options) -> list[Row]:
    from harness.nightly import load_suite
    from harness.spec.files import names

    return [
        {
            "name": name,
            "minutes": f"{suite.suite.budget_minutes:g}",
            "runs": len(suite.run),
            "purpose": suite.suite.purpose,
        }
        for name in names("workloads/suites")
        for suite in (load_suite(name),)
    ]


_LISTS: dict[str, Callable[[Options], list[Row]]] = {
    "scenarios": _scenarios,
    "backends": _backends,
    "models": _models,
    "runs": _runs,
    "suites": _suites,
    "conditions": _conditions,
    "issues": _issues,
    "metrics": _metrics,
}


def _columns(rows: Sequence[Row], width: int) -> str:
    """Fits `width` where whole words allow it: wide columns are wrapped, sentences stand below."""
    if not rows:
        return ""
    fitted = _next_to_each_other(rows, width)
    sentences = [name for name in rows[0] if name not in fitted]
    lines = ["  ".join(f"{name:<{fitted[name]}}" for name in fitted).rstrip()]
    for row in rows:
        parts = [_wrapped(str(row[name]), fitted[name]) for name in fitted]
        for line in zip_longest(*parts, fillvalue=""):
            filled = (f"{text:<{fitted[name]}}" for name, text in zip(fitted, line, strict=True))
            lines.append("  ".join(filled).rstrip())
        for name in sentences:
            text = str(row[name]) if len(sentences) == 1 else f"{name}: {row[name]}"
            lines += [f"    {line}" for line in _wrapped(text, width - 4)]
    return "\n".join(lines)


def _next_to_each_other(rows: Sequence[Row], width: int) -> dict[str, int]:
    """Widths of the columns that stand next to each other. All others stand below.

    Long sentences stand below, and where whole words need more than `width`, the widest columns. The first
    column never does.
    """
    texts = {name: [name, *(str(row[name]) for row in rows)] for name in rows[0]}
    widths = {name: max(map(len, column)) for name, column in texts.items()}
    least = {name: max(NARROWEST, *map(len, " ".join(column).split())) for name, column in texts.items()}
    columns = dict(widths)
    first, *others = widths
    long = [name for name in others if widths[name] > LONGEST_CELL]
    if any(_fitted(widths, least, width)[name] < NARROWEST_SENTENCE for name in long):
        columns = {name: widths[name] for name in widths if name not in long}
    while len(columns) > 1 and _over(_fitted(columns, least, width), width) > 0:
        del columns[max((name for name in columns if name != first), key=lambda name: widths[name])]
    return _fitted(columns, least, width)


def _fitted(natural: Mapping[str, int], least: Mapping[str, int], width: int) -> dict[str, int]:
    """Columns as narrow as they must be, the widest ones first, and none narrower than `least`."""
    widths = dict(natural)
    while (over := _over(widths, width)) > 0:
        wide = [name for name in widths if widths[name] > least[name]]
        if not wide:
            break
        widest = max(wide, key=lambda name: widths[name])
        widths[widest] = max(widths[widest] - min(over, 4), least[widest])
    return widths


def _over(widths: Mapping[str, int], width: int) -> int:
    """The number of characters by which columns, two apart, are too wide."""
    return sum(widths.values()) + 2 * (len(widths) - 1) - width


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, max(width, 1), break_long_words=False)
