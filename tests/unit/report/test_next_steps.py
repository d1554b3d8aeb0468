"""What a report says is to be run next, and what it says is wrong."""

import re
from types import SimpleNamespace

from harness.compare import compare
from harness.compare.rules import Rules
from harness.report.html.next_steps import next_steps
from harness.report.html.trust import wrong
from tests.factories.documents import changed
from tests.factories.summaries import cell, summary, verdict
from tests.unit.report.test_evidence import interleaved

RULES = Rules("ttft_ms.p50", ("ttft_ms.p50",))
COMMAND = ["bench", "run", "--scenario", "chat", "--repeats", "3", "--out=results"]


def page(*cells, part=next_steps, command=COMMAND, **changes):
    found = {**compare(cells, RULES)._asdict(), **changes}
    source = SimpleNamespace(summary=summary(*cells, **found), manifest=SimpleNamespace(command=command))
    return re.sub(r"<[^>]+>", "", "".join(part(source)))


def test_an_undecided_pair_is_measured_more_often():
    text = page(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)))
    assert "TTFT p50: 1 of 1 comparison undecided. About " in text
    repeats = re.search(r"About (\d+) repeats would decide it: (.*)", text)
    assert repeats[2] == f"bench run --scenario chat --out=results --repeats {repeats[1]}"


def test_too_few_runs_are_completed():
    text = page(*interleaved((10.0, 11.0), (20.0, 21.0)))
    assert "About 3 repeats would decide it: bench run --scenario chat --out=results --repeats 3" in text


def test_where_more_repeats_would_not_help_none_are_asked_for():
    text = page(*interleaved((10.0, 31.0, 10.5), (11.0, 9.0, 30.0)))
    assert "More repeats would hardly decide it." in text
    assert "bench run" not in text


def test_where_all_is_decided_another_load_is_what_is_left():
    text = page(*interleaved((10.0, 11.0, 10.5), (20.0, 22.5, 21.0)))
    assert "other loads may have another order: bench run --scenario chat --repeats 3 --out=results" in text
    assert text.endswith("--concurrency 4,8")


def test_the_hints_of_the_first_warnings_come_first():
    doubtful = changed(cell("a"), validity=verdict("SUSPECT", "lockstep", "0.7", "0.5", "spread the start"))
    text = page(doubtful)
    assert text.startswith("What to run nextlockstep (1 cell): spread the start")
    assert "More users show where throughput ends: bench run" in text


def test_what_is_wrong_is_counted():
    doubtful = changed(cell("a"), validity=verdict("SUSPECT", "lockstep", "0.7", "0.5", "spread the start"))
    text = page(doubtful, cell("b"), part=wrong)
    assert "2 cells: 1 VALID and 1 SUSPECT. All 64 requests were answered." in text
    assert "SUSPECT lockstep: a c4 r0" in text
    assert "No warning." in page(cell("a"), part=wrong)


def test_only_three_warnings_stand_on_the_first_screen():
    warnings = [{"code": f"w{number}", "text": "text", "hint": ""} for number in range(5)]
    text = page(cell("a"), part=wrong, warnings=warnings)
    assert "w2: text" in text
    assert "w3: text" not in text
    assert "2 more warnings" in text


def test_a_run_without_its_command_says_what_without_how():
    text = page(*interleaved((10.0, 11.0, 10.5), (11.5, 12.6, 10.9)), command=None)
    assert "repeats would decide it" in text
    assert "bench run" not in text
