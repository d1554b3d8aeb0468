"""Sections that a page has when a run kept what they show, and has not when it did not."""

import pytest
from msgspec.structs import fields

from harness.model import CellResult, Summary, as_json
from tests.factories.documents import changed
from tests.factories.runs import TWO, Shape, copy_of, edit_summary, make_run
from tests.integration.report.test_html import Document, page_of

FIRST, SECOND = (engine.label for engine in TWO)
LOAD = {"kind": "concurrency", "value": 2.0}
EVIL = "<script>alert(1)</script>"

pytestmark = pytest.mark.usefixtures("without_plots")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), Shape(concurrency=(2,), requests=6))


@pytest.fixture
def folder(run, tmp_path):
    return copy_of(run, tmp_path)


def section(folder, identifier):
    """Its text, None where there is none. It is folded behind its title."""
    document = Document(page_of(folder))
    found = [one for one in document.all("section") if one["id"] == identifier]
    assert len(document.all("script")) == 1
    assert all("details" in one["inside"] for one in found)
    return found[0]["text"] if found else None


def without_defaults(document, kind):
    required = {field.name: field for field in fields(kind) if field.required}
    kept = {key: value for key, value in document.items() if key in required}
    if kind is Summary:
        kept["cells"] = [without_defaults(cell, CellResult) for cell in kept["cells"]]
    return kept


def with_cells(folder, **changes):
    cells = folder.read_summary().cells
    return edit_summary(folder, cells=[changed(cell, **changes) for cell in cells])


def test_what_was_not_kept_is_absent(folder):
    sections = {one["id"] for one in Document(page_of(folder)).all("section")}
    assert "peers" in sections
    assert not sections & {"agreement", "probe", "claims", "limits"}


def test_limits_of_the_scenario_were_kept_or_not(folder):
    limit = {"metric": "ttft_ms", "share": "p95", "limit_ms": 500, "within": 0.9, "met": False}
    with_cells(folder, slo={"limits": [limit, {**limit, "share": "p50", "met": True}]})
    text = section(folder, "limits")
    assert "TTFT p95 ≤ 500 ms90no" in text
    assert "TTFT p50 ≤ 500 ms90yes" in text


def test_the_capacity_stands_with_every_load_that_was_tried(folder):
    tried = {"value": 8.0, "runs": 2, "kept": 0, "attainment": 0.6, "requests_per_s": 7.5}
    found = {
        "label": FIRST,
        "kind": "rate",
        "value": 6.0,
        "kept_by_search": [5.0, 6.0, 6.0],
        "kept_short": 7.0,
        "interval": [5.0, 6.0, 7.0],
        "searches": 3,
        "saturated_from": 8.0,
        "tested": [{**tried, "saturated": True, "why": "540 answers to 600 arrivals"}],
    }
    edit_summary(folder, capacity=[found])
    text = section(folder, "limits")
    span = "(95% interval 5 to 7; 2 probes in 3 searches)"
    assert f"Capacity: {FIRST}: 6 requests/s keep the limits {span}; saturated from 8" in text
    assert "80 of 2607.50saturated: 540 answers to 600 arrivals" in text


def test_the_probe_names_what_does_not_hold(folder):
    finding = {
        "topic": "usage block",
        "declared": "last",
        "seen": EVIL,
        "holds": False,
        "then": "counted here",
    }
    fine = {"topic": "chat", "declared": "answered", "seen": "yes", "holds": True, "then": ""}
    folder.write_json(f"probe-{FIRST}.json", {"findings": [finding, fine]})
    folder.write_json(f"probe-{SECOND}.json", {"findings": [fine]})
    text = section(folder, "probe")
    assert f"{FIRST}: usage block: declared last, seen {EVIL}. counted here" in text
    assert "n/a" in text
    (folder.path / f"probe-{FIRST}.json").write_text("{", encoding="utf-8")
    assert "Every backend did what its definition declares." in section(folder, "probe")


def test_claims_stand_with_their_source_and_conditions(folder):
    found = {"about": FIRST, "load": LOAD, "stated": [1.0, None], "measured": [1.2, 1.3, 1.4]}
    claim = {
        "id": "A0-002",
        "says": f"llama.cpp is ahead {EVIL}",
        "source": "A page",
        "url": "https://example.org/page",
        "kind": "ratio",
        "measure": "output_tokens_per_s",
        "verdict": "reproduced",
        "why": "the whole interval fits the claim",
        "found": [found],
        "stated_under": "concurrency 1",
        "differs": ["hardware not stated; here a CPU"],
        "conflicts": ["one user"],
    }
    unsafe = {**claim, "id": "A0-003", "url": "javascript:alert(1)", "verdict": "contradicted"}
    edit_summary(folder, claims=[claim, unsafe])
    text = section(folder, "claims")
    assert "2 published claims are about this run: 1 reproduced and 1 contradicted." in text
    assert "more than 1×" in text
    assert "1.30× [1.20, 1.40]" in text
    assert "the sources contradict each other: one user" in text
    assert "javascript:" not in (folder.path / "report.html").read_text(encoding="utf-8")


def test_other_tools_stand_beside_what_is_said_here(folder):
    text = section(folder, "peers")
    assert "herevllmsglangaiperfguidellminference-perf" in text
    assert f"{FIRST} TPOT mean, ms" in text
    assert "the time to the first token is inside" in text


def test_what_forbids_a_comparison_is_said(folder):
    one = {"code": "weights", "text": f"weights: a, b {EVIL}", "matters": True, "metrics": ["ttft_ms.p50"]}
    edit_summary(folder, unequal=[one, one])
    text = section(folder, "differences")
    assert text.count("forbids a comparison") == 1
    assert "TTFT p50" in text


def test_the_workload_card_and_the_arrivals(folder):
    lengths = {"min": 10, "p50": 20.0, "max": 40, "histogram": {"edges": [10, 25, 41], "counts": [100, 3]}}
    card = {
        "requests": 6,
        "warmup_requests": 2,
        "input_tokens": lengths,
        "output_tokens": {**lengths, "histogram": {}},
        "sessions": {"count": 3, "turns_max": 2},
        "sharing": {"radix_hit_rate": 0.996, "block_hit_rate": 0.8, "block_tokens": 16},
    }
    edit_summary(folder, workload_card={"c2": card})
    asked = {"rate_per_s": 4.0, "gap_cv": 1.0, "dispersion": 1.0}
    told = {"verdict": "differs", "reason": "gap_cv", "against": "Poisson", "asked": asked, "achieved": asked}
    with_cells(folder, arrivals={**told, "limits": {"gap_cv": [0.5, 0.9]}})
    text = section(folder, "workload")
    assert "10 – 20 – 40█▁" in text  # a bar, however low, is not blank
    assert "3 of up to 2 turns99.6%80% (of 16)" in text
    assert "differs (gap CV)" in text


def test_the_answers_to_the_same_questions(folder):
    right = {"right": 50, "asked": 58, "by_kind": {"fact": {"right": 9, "asked": 10}}}
    changes = ("same", "reworded", "truncated", "repeated", "garbled", "empty", "failed")
    one = {
        "unloaded": right,
        "saturated": {"right": 48, "asked": 58, "concurrency": 58},
        "under_load": dict.fromkeys(changes, 0),
    }
    edit_summary(
        folder, agreement={"kinds": {"fact": 10}, "questions": 58, "backends": {FIRST: one}, "pairs": []}
    )
    text = section(folder, "agreement")
    assert "50/58" in text
    assert "9/10" in text


def test_the_state_of_the_cache_is_a_condition(folder):
    cache = {"requested": "cold", "description": "POST /reset", "holds": False, "measured": "hit rate 93%"}
    with_cells(folder, conditions={"cache": cache})
    assert "coldPOST /resetnohit rate 93%" in section(folder, "conditions")


def test_everything_at_once_in_a_folder_of_an_earlier_version(folder):
    """Only what the first version kept: no key that the model has a default for."""
    folder.write_json("summary.json", without_defaults(as_json(folder.read_summary()), Summary))
    document = Document(page_of(folder))
    assert "No verdict: 1 repeat per backend" in document.all("body")[0]["text"]
    assert len(document.all("figure")) > 10
