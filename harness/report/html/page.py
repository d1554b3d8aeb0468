"""The document around the sections."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from importlib import resources

from harness.report.charts.axes import RULES
from harness.report.conditions import machine, model
from harness.report.html import answer, cells, evidence, figures, limits, setting, workload
from harness.report.html import machine as used
from harness.report.html.source import Source
from harness.report.html.tags import Html, tag
from harness.report.notes import banner
from harness.report.text import listing
from harness.report.view import labels

SECTIONS: Mapping[str, tuple[str, Callable[[Source], Html | None]]] = {
    "answer": ("Results", answer.answer),
    "charts": ("Charts", figures.charts),
    "timelines": ("Timelines", figures.timelines),
    "limits": ("Limits", limits.limits),
    "machine": ("Machine", used.machine),
    "validity": ("Validity", cells.validity),
    "conditions": ("Conditions", setting.conditions),
    "differences": ("Differences", setting.unequal),
    "agreement": ("Agreement", evidence.agreement),
    "probe": ("Probe", evidence.probe),
    "claims": ("Claims", evidence.claims),
    "peers": ("Other tools", evidence.peers),
    "workload": ("Workload", workload.workload),
    "statistics": ("Statistics", cells.statistics),
    "answers": ("Answers", cells.answers),
    "files": ("Files", setting.files),
}


def page(source: Source) -> str:
    loud = banner(source.summary)
    warned = tag("p", loud, class_="simulated", role="note") if loud else Html("")
    names = labels(source.summary)
    made = {key: part for key, (_, make) in SECTIONS.items() if (part := make(source)) is not None}
    links = (tag("a", SECTIONS[key][0], href=f"#{key}") for key in made)
    body = tag(
        "body",
        tag("a", "Skip to the answer", href="#answer", class_="skip"),
        tag("header", tag("h1", _title(source)), tag("p", _subtitle(source), class_="muted"), warned),
        tag("nav", *links, aria_label="Sections"),
        figures.legend(source, names) if len(names) > 1 else Html(""),
        tag("main", *made.values()),
        tag("footer", warned),
        tag("script", _script()),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(source), body, lang='en')}\n"


def _title(source: Source) -> str:
    return f"{source.summary.scenario}: {listing(labels(source.summary)) or 'nothing measured'}"


def _subtitle(source: Source) -> str:
    summary, manifest = source.summary, source.manifest
    known = (model(summary), machine(source.host), manifest.created_utc if manifest else None,
             f"run {summary.run}", summary.state)  # fmt: skip
    return " · ".join(filter(None, known))


def _head(source: Source) -> Html:
    """The policy forbids every request and every script but our own, should markup ever slip in."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", _title(source)),
        tag("style", _part("page.css")),
    )


def _script() -> Html:
    return Html(f"const axisRules = {json.dumps(RULES)};\n{_part('page.js')}")


def _part(name: str) -> Html:
    """Our own style and script, which need no escaping."""
    return Html((resources.files(__package__) / name).read_text(encoding="utf-8"))
