"""Under which conditions the numbers hold: what differs, what was asked, the machine, the raw files."""

import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import quote

import numpy as np

from harness.report.conditions import NOT_GIVEN, differences, flat, leaf
from harness.report.html.source import Source
from harness.report.html.tags import Html, details, items, section, table, tag
from harness.report.measures import measure
from harness.report.text import NOT_KNOWN, counted
from harness.report.view import Json, labels

SHOWN_APART = ("schema", "backends", "scenario", "command", "warnings", "order")


def unequal(source: Source) -> Html:
    backends = source.manifest.get("backends") or {}
    started = {label: entry for label, entry in backends.items() if entry.get("engine")}
    rows = differences(started)
    if rows:
        head, body = ["", *started], ([key, *values] for key, values in rows)
        found = table("What is not the same for every backend", head, body, class_="facts")
    else:
        alone = len(started) < 2
        found = tag("p", "One backend: nothing to tell apart." if alone else "Nothing recorded differs.")
    return section(
        "differences",
        "What makes the backends unequal",
        *_findings(source),
        *(tag("p", f"{label} was never started.") for label in backends if label not in started),
        found,
        *(details(label, _facts(f"Recorded of {label}", entry)) for label, entry in backends.items()),
    )


def _findings(source: Source) -> Iterator[Html]:
    """What was found to differ between cells, and whether it forbids a comparison."""
    found = source.summary.get("unequal") or ()
    if not found:
        return
    told = dict.fromkeys((one["text"], bool(one.get("matters")), _metrics(one)) for one in found)
    rows = (
        [text, tag("span", "forbids a comparison", class_="invalid") if matters else "to be kept in mind", of]
        for text, matters, of in told
    )
    yield table("What differs between the cells", ["what", "verdict", "of figures"], rows)


def _metrics(found: Json) -> str:
    return ", ".join(measure(metric).name for metric in found.get("metrics") or ()) or "all"


def workload(source: Source) -> Html:
    scenario = source.manifest.get("scenario") or {}
    return section(
        "workload", "Workload",
        tag("p", str(source.summary.get("purpose") or "")),
        _facts("As asked", {**scenario, "workload_sha256": source.summary.get("workload_sha256"),
                            "scenario_sha256": source.manifest.get("scenario_sha256")}),
        table("As measured, tokens per request (lowest – median – highest)",
              ["backend", "prompt", "output"], _lengths(source),
              [source.index(label) for label in labels(source.summary)]),
    )  # fmt: skip


def _lengths(source: Source) -> list[list[str]]:
    """Prompts of equal bytes differ in tokens where tokenizers or chat templates do."""
    rows = []
    for label in labels(source.summary):
        taken = source.samples_of(label)
        lengths = ([samples.prompt_tokens for samples in taken], [samples.output_tokens for samples in taken])
        rows.append(
            [source.name(label), *(_span(np.concatenate(found)) if found else NOT_KNOWN for found in lengths)]
        )
    return rows


def _span(values: np.ndarray) -> str:
    if not len(values):
        return f"{NOT_KNOWN} (not reported)"
    return " – ".join(f"{value:g}" for value in (values.min(), np.median(values), values.max()))


def conditions(source: Source) -> Html:
    manifest = source.manifest
    if not manifest:
        return section("conditions", "Conditions", tag("p", "manifest.json is missing: they are not known."))
    command = manifest.get("command") or []
    order = [tag("li", leaf(cell)) for cell in manifest.get("order") or []]
    return section(
        "conditions", "Conditions",
        tag("pre", tag("code", shlex.join(map(str, command)) if command else NOT_GIVEN), tabindex="0"),
        details("Order in which the cells were measured", tag("ol", *order)),
        *(_facts(key.replace("_", " ").capitalize(), value) if isinstance(value, dict) else Html("")
          for key, value in manifest.items() if key not in SHOWN_APART),
        _facts("Run", {key: value for key, value in manifest.items()
                       if not isinstance(value, dict) and key not in SHOWN_APART}),
    )  # fmt: skip


def _facts(caption: str, value: object) -> Html:
    return table(caption, ["key", "value"], flat(value), class_="facts")


def files(source: Source) -> Html:
    cells = [name for name in source.files if name.startswith("cells/")]
    others = [name for name in source.files if name not in cells]
    return section(
        "files", "Raw files",
        tag("p", "Beside this page in the run folder:"),
        _links(others),
        details(f"Records of the cells, {counted(len(cells), 'file')}", _links(cells)),
    )  # fmt: skip


def _links(names: Sequence[str]) -> Html:
    return items(tag("a", name, href=quote(name)) for name in names)
