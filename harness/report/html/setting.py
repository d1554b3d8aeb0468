"""Conditions under which the numbers hold: what differs, what was asked, the machine, the raw files."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from harness.model import as_json
from harness.model.conditions import NOT_GIVEN
from harness.model.measures import measure
from harness.model.numbers import counted
from harness.report.findings.manifest_lines import differences, flat, leaf
from harness.report.html.source import Source
from harness.report.html.tags import Html, details, items, section, table, tag

SHOWN_APART = ("schema", "backends", "scenario", "command", "warnings", "order", "host")


def unequal(source: Source) -> Html:
    """Imported backends have no `engine` in the manifest; it is null for one that was never started."""
    backends = as_json(source.manifest.backends) if source.manifest else {}
    started = {label: entry for label, entry in backends.items() if entry.get("engine")}
    rows = differences(started)
    if rows:
        head, body = ["setting", *started], ([key, *values] for key, values in rows)
        shown = table("What is not the same for every backend", head, body, class_="facts")
    elif len({*source.labels, *started}) == 1:
        shown = Html("") if source.summary.unequal else tag("p", "One backend: nothing to tell apart.")
    else:
        known = len(started) > 1
        shown = tag("p", "Nothing recorded differs." if known else "No settings of the backends are known.")
    return section(
        "differences",
        "What makes the backends unequal",
        *_findings(source),
        *(
            tag("p", f"{label} was never started.")
            for label, entry in backends.items()
            if entry.get("engine", {}) is None
        ),
        shown,
        *_known(started),
        *(details(label, facts(f"Recorded of {label}", entry)) for label, entry in backends.items()),
    )


def _known(started: Mapping[str, Mapping[str, Any]]) -> Iterator[Html]:
    """Known biases by the definitions; runs from before it was kept have none.

    `started`: by backend, its entry of the manifest as JSON.
    """
    rows = [[label, line] for label, entry in started.items() for line in entry["engine"].get("known") or ()]
    if rows:
        yield table(
            "What is known of each, whatever was measured", ["backend", "known"], rows, class_="facts"
        )


def _findings(source: Source) -> Iterator[Html]:
    """Differences between cells, and whether they forbid a comparison."""
    differences = source.summary.unequal
    if not differences:
        return
    forbids = tag("span", "forbids a comparison", class_="invalid")
    rows = dict.fromkeys(
        (
            difference.text,
            forbids if difference.matters else "to be kept in mind",
            ", ".join(measure(metric).name for metric in difference.metrics) or "all",
        )
        for difference in differences
    )
    yield table("What differs between the cells", ["what", "verdict", "of figures"], rows)


def conditions(source: Source) -> Html:
    if source.manifest is None:
        return section("conditions", "Conditions", tag("p", "manifest.json is missing: they are not known."))
    command = source.manifest.command
    manifest = as_json(source.manifest)
    order = [tag("li", leaf(cell)) for cell in source.manifest.order]
    return section(
        "conditions", "Conditions",
        tag("pre", tag("code", shlex.join(command) if command else NOT_GIVEN), tabindex="0"),
        details("Order in which the cells were measured", tag("ol", *order)),
        *_cache_states(source),
        facts("Host", manifest["host"] or {}),
        *(_folded(key.replace("_", " ").capitalize(), value)
          for key, value in manifest.items() if isinstance(value, dict) and key not in SHOWN_APART),
        _folded("Run", {key: value for key, value in manifest.items()
                       if not isinstance(value, dict) and key not in SHOWN_APART}),
    )  # fmt: skip


def _cache_states(source: Source) -> Iterator[Html]:
    """The state that was asked of each prefix cache, and its engine's counts; cells from before it was kept
    have none."""
    rows: dict[tuple[str, ...], str] = {}
    for cell in source.summary.cells:
        cache = cell.conditions.cache
        if cache:
            holds = {True: "yes", False: "no", None: "not known"}[cache.holds]
            state = (cell.label, cache.requested, cache.description, holds)
            rows.setdefault(tuple(part or NOT_GIVEN for part in state), cache.measured)
    if rows:
        head = ["backend", "state asked", "method", "holds", "example"]
        body = ([source.name(label), *rest, instance] for (label, *rest), instance in rows.items())
        yield table("State of the prefix cache before each cell", head, body)


def _folded(title: str, value: object) -> Html:
    return details(title, facts(title, value))


def facts(caption: str, value: object) -> Html:
    """A value without keys of its own, such as an empty table, goes next to the caption."""
    rows = ((key or caption, text) for key, text in flat(value))
    return table(caption, ["key", "value"], rows, class_="facts")


def files(source: Source) -> Html:
    cells = [name for name in source.files if name.startswith("cells/")]
    others = [name for name in source.files if name not in cells]
    return section(
        "files", "Raw files",
        tag("p", "Next to this page in the run folder:"),
        _links(others),
        details(f"Records of the cells, {counted(len(cells), 'file')}", _links(cells)),
    )  # fmt: skip


def _links(names: Sequence[str]) -> Html:
    return items(tag("a", name, href=quote(name)) for name in names)
