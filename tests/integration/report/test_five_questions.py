"""The five questions of a reader, answered by the first screen alone, against the figures of published runs.

Expected answers are worked out here from summary.json as plain JSON, without the code that words them.
"""

import json
import re
from html import unescape
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

import llm_servebench as sb
from harness.model.numbers import number
from harness.report.blocks.comparison import compared
from harness.report.findings.against import run_names
from harness.report.findings.conclude import conclude
from harness.report.findings.next_steps import reason_and_time
from harness.report.findings.sentences import load_words
from harness.report.html.answer import answer
from harness.report.html.source import Source
from harness.report.text.screen import next_lines, screen
from harness.report.text.terminal_text import terminal
from harness.store import RunFolder
from tests.long import others_long

PUBLISHED = Path(__file__).resolve().parents[3] / "results" / "published"
RUNS = (
    "20261122T122433Z-batch-1-8-32-d2c1a5",
    "20261122T202156Z-shared-prefix-cd0015",
    "20261124T023720Z-shared-prefix-8b803b",
    "20261125T020543Z-shared-prefix-9d36a6",
)


class Seen:
    """A published run: its plain JSON, what is concluded, and the two first screens as text."""

    def __init__(self, name):
        folder = RunFolder(PUBLISHED / name)
        summary = folder.read_summary()
        self.raw = json.loads((PUBLISHED / name / "summary.json").read_text(encoding="utf-8"))
        manifest = folder.read_manifest()
        self.found = conclude(summary, manifest)
        lines = [screen(summary, 80, color=False), *next_lines(summary, 80, manifest=manifest)]
        self.terminal = " ".join(" ".join(lines).replace(" \\ ", " ").split())
        source = Source(summary, manifest, {}, [], (), {}, {}, ())
        self.report = " ".join(unescape(re.sub(r"<[^>]+>", " ", answer(source))).split())
        self.rules = self.raw["verdict_rules"]

    def medians(self, load, metric):
        """Of the repeats that are not INVALID, by backend."""
        name, _, statistic = metric.partition(".")
        values = {}
        for cell in self.raw["cells"]:
            if cell["load"]["value"] != load.value or cell["validity"]["verdict"] == "INVALID":
                continue
            value = (cell.get(name) or {}).get(statistic) if statistic else cell.get(name)
            if value is not None:
                values.setdefault(cell["label"], []).append(value)
        return {label: median(mine) for label, mine in values.items()}

    def pairs(self, load):
        return [
            one
            for one in self.raw["comparison"]
            if one["load"]["value"] == load.value and one["metric"] == self.rules["primary"]
        ]


@pytest.fixture(scope="module", params=RUNS)
def run(request):
    return Seen(request.param)


def of_primary(run):
    return [one for one in run.found.orders if one.metric == run.rules["primary"]]


def test_which_is_faster_at_this_load(run):
    for order in of_primary(run):
        medians = run.medians(order.load, order.metric)
        best = min(medians, key=medians.get)
        assert order.best.label == best
        for label, value in medians.items():
            row = rf"{re.escape(label)}\*? .*?{re.escape(number(value))}"
            assert re.search(row, run.terminal), (label, value)
        assert best in run.report
        assert number(medians[best]) in run.report
        assert load_words(order.load) in run.terminal


def test_how_sure(run):
    """Of each pair with the best one: the factor and its interval, or that it is not decided."""
    for order in of_primary(run):
        best = order.best.label
        for entry in run.pairs(order.load):
            if best not in (entry["a"], entry["b"]) or entry["ratio"] is None:
                continue
            if entry["verdict"] in ("faster", "slower"):
                low, middle, high = sorted(
                    1 / end if entry["verdict"] == "faster" else end for end in entry["ratio"]
                )
                words = f"{middle:.3g}× (faster )?\\({low:.3g} to {high:.3g}\\)"
                assert re.search(words, run.terminal), words
                assert re.search(words, run.report), words
            if entry["verdict"] == "not enough runs":
                assert re.search("undecided|Not separated", run.terminal)
                assert re.search("undecided|Not separated", run.report)
    assert f"{100 * run.rules['confidence']:.4g}% interval" in run.terminal


def test_is_anything_wrong_with_this_run(run):
    cells = run.raw["cells"]
    words = [cell["validity"]["verdict"] for cell in cells]
    assert f"{len(cells)} cells: " in run.report
    for word in ("VALID", "SUSPECT", "INVALID"):
        if count := words.count(word):
            assert re.search(rf"\b(all|{count}) {word}\b", run.report), word
    codes = {reason["code"] for cell in cells for reason in cell["validity"]["reasons"]}
    assert bool(codes) <= bool(run.found.warnings)
    for warned in run.found.warnings[:3]:
        assert warned.text in run.terminal
        assert warned.text in run.report
    failed = sum(cell["requests"]["failed"] + cell["requests"]["dropped"] for cell in cells)
    assert ("No request failed" in run.terminal) == (failed == 0)


def test_what_do_i_run_next(run):
    step = run.found.next_steps[0]
    assert f"next: {reason_and_time(step)}: {step.do}" in run.terminal
    for one in run.found.next_steps:
        assert f"{reason_and_time(one)}: {one.do}" in run.terminal
        assert f"{reason_and_time(one)}: {one.do}" in run.report
    waiting = sum(
        entry["primary"] and entry["verdict"] == "not enough runs" for entry in run.raw["comparison"]
    )
    assert run.found.undecided == waiting
    if waiting:
        assert any(f"{waiting} of " in one.why and "undecided" in one.why for one in run.found.next_steps)


def of_one_scenario():
    """Published runs that follow each other in one scenario."""
    by = {}
    for path in sorted(PUBLISHED.glob("*/manifest.json")):
        scenario = json.loads(path.read_text(encoding="utf-8"))["scenario"]["scenario"]["name"]
        by.setdefault(scenario, []).append(path.parent)
    return [pair for runs in by.values() for pair in pairwise(runs)]


# Undecided, not comparable, and nothing in common.
OFTEN = {"20261125T120146Z", "20261126T161117Z", "20261126T090830Z"}  # the older ones


@pytest.mark.parametrize(
    ("old", "new"),
    [*others_long(of_one_scenario(), lambda old, new: old.name.partition("-")[0] in OFTEN)],
    ids=lambda path: path.name[:8],
)
def test_is_it_slower_than_last_week(old, new):
    document = sb.compare(old, new).document
    first = " ".join(terminal(compared(document), 80, color=False).partition("\n\n")[0].split())
    said = {"slower": "slower than", "not comparable": "cannot be compared", "same": "not slower",
            "faster": "faster than", "not enough runs": "Undecided whether"}  # fmt: skip
    if not document.pairs:
        assert "Nothing in common" in first
    names = run_names(document.runs)
    for pair in document.pairs:
        assert pair.a.label in first
        for figure in pair.findings:
            if not figure.primary:
                continue
            assert said[figure.verdict] in first
            if pair.refused:
                assert all(str(one.new) in first for one in pair.differences if one.matters)
            if figure.verdict in ("slower", "faster") and figure.ratio:
                ratio = figure.ratio.estimate  # of the baseline, as in the table
                by = float(f"{100 * abs(ratio - 1):.2g}")  # two digits, and 100 is no 1e+02
                assert (f"by {ratio:.3g}×" if ratio >= 2 else f"by {by:g}%") in first
        assert names[pair.b.run] in first
