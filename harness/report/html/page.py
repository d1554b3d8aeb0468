"""The document around the sections."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import resources

from harness.model import Summary
from harness.model.numbers import counted
from harness.report.charts.axes import RULES
from harness.report.findings.manifest_lines import machine, model
from harness.report.findings.notes import banner
from harness.report.html import answer, cells, evidence, figures, limits, results, setting, verdicts, workload
from harness.report.html import machine_use as used
from harness.report.html.source import Source
from harness.report.html.tags import Html, fold, section, tag
from harness.report.view import asked_words, labels
from harness.report.wording import listing

NAMED = 4  # backends of a title; more are counted
Part = Callable[[Source], Html | None]

# By identifier. The first screen comes before them all.
OPEN: Mapping[str, tuple[str, Part]] = {
    "charts": ("Charts", figures.charts),
    "figures": ("Figures", results.results),
    "timelines": ("Timelines", figures.timelines),
}
# The title, and what a reader finds behind it.
FOLDED: Mapping[str, tuple[str, str, Part]] = {
    "notes": ("Warnings and notes", "all of them, with hints", answer.kept_in_mind),
    "verdicts": ("Verdicts", "every pair, its interval and the runs behind it", verdicts.pairs),
    "limits": ("Limits", "of the scenario: up to which load they were kept", limits.limits),
    "validity": ("Validity", "of every cell, and why", cells.validity),
    "machine": ("Machine", "what limited each cell, what it used and cost", used.machine),
    "differences": ("Differences", "what makes the backends unequal", setting.unequal),
    "agreement": ("Agreement", "whether the backends give the same answers", evidence.agreement),
    "statistics": ("Statistics", "every percentile of every cell", cells.statistics),
    "answers": ("Answers", "what the models said", cells.answers),
    "claims": ("Claims", "what others have published", evidence.claims),
    "peers": ("Other tools", "the same records as they would report them", evidence.peers),
    "workload": ("Workload", "what was asked of the backends", workload.workload),
    "probe": ("Probe", "whether each server does what its definition declares", evidence.probe),
    "conditions": ("Conditions", "command, machine, every setting", setting.conditions),
    "files": ("Files", "raw records and tables", setting.files),
}


def page(source: Source) -> str:
    names = labels(source.summary)
    shown = {key: part for key, (_, make) in OPEN.items() if (part := make(source)) is not None}
    links = [tag("a", OPEN[key][0], href=f"#{key}") for key in shown]
    legend = figures.legend(source, names) if len(names) > 1 else None
    more = section("more", "Everything else", *_folds(source))
    return framed(
        _title(source),
        _subtitle(source),
        source.summary,
        tag("nav", *links, tag("a", "Everything else", href="#more"), aria_label="Sections"),
        tag("main", answer.answer(source), legend, *shown.values(), more),
        run=source.summary.run,
    )


def _folds(source: Source) -> Iterator[Html]:
    for title, about, make in FOLDED.values():
        if (part := make(source)) is not None:
            yield fold(title, about, part)


def framed(title: str, subtitle: str, summary: Summary, *content: Html, run: str = "") -> str:
    """The file of this content between head and foot, which both say that a run is simulated.

    `run`: its name, next to the title.
    """
    loud = banner(summary)
    warned = tag("p", loud, class_="simulated", role="note") if loud else None
    skip = tag("a", "Skip to the answer", href="#answer", class_="skip")
    heading = [f"{title} ", tag("small", run, class_="muted")] if run else [title]
    header = tag("header", tag("h1", *heading), tag("p", subtitle, class_="muted"), warned)
    return document(title, skip, header, *content, tag("footer", warned))


def document(title: str, *content: Html) -> str:
    """The whole file, with the policy that forbids every request, and every script but our own."""
    body = tag("body", *content, tag("script", script()))
    return f"<!DOCTYPE html>\n{tag('html', _head(title), body, lang='en')}\n"


def _title(source: Source) -> str:
    names = labels(source.summary)
    names_shown = listing(names) if len(names) <= NAMED else counted(len(names), "backend")
    return f"{source.summary.scenario}: {names_shown or 'nothing measured'}"


def _subtitle(source: Source) -> str:
    summary, manifest = source.summary, source.manifest
    created = f"{manifest.created_utc[:16].replace('T', ' ')} UTC" if manifest else None
    state = None if summary.state == "complete" else summary.state
    files = dict.fromkeys(cell.imported.words for cell in summary.cells if cell.imported)
    known = (
        model(summary),
        asked_words(summary),
        *files,
        machine(source.host, summary),
        created,
        state,
    )
    return " · ".join(filter(None, known))


def _head(title: str) -> Html:
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
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
        tag("title", title),
        tag("style", _part("page.css")),
    )


def script() -> Html:
    """Includes the numbers by which it draws axes."""
    return Html(f"const axisRules = {json.dumps(RULES)};\n{_part('page.js')}")


def _part(name: str) -> Html:
    """Our own style and script need no escaping."""
    return Html((resources.files(__package__) / name).read_text(encoding="utf-8"))
