"""The first screen of the page."""

import re

import pytest

from harness.report.charts import charts
from harness.report.findings.sentences import ADAPTERS, HITS, IMAGES, claims
from harness.report.findings.verdict_words import knee_lines
from harness.report.html.answer import answer
from harness.report.html.source import Source
from harness.report.html.tags import text
from harness.report.view import groups
from harness.report.wording import capital
from harness.verdicts import compare
from harness.verdicts.rules import Rules
from tests.factories.summaries import cell, summary

KNEE = {
    "label": "vllm", "value": 1.4, "interval": [1.0, 2.0], "repeats": 3, "crossed": 3, "largest": 4.0,
    "fits": 0.9, "ideal": 0.95, "unrelated": 0.0,
}  # fmt: skip
OF_IMAGES = {"images": {"ms_by_sort": {"fresh": 41.0}}}
OF_ADAPTERS = {"adapters": {"ttft_over_base": 1.3, "tpot_over_base": 1.1}}


def page_of(found):
    return answer(Source(found, None, {}, (), (), {}, {}, ()))


@pytest.mark.parametrize(
    ("load", "changes", "about"),
    [
        ({"kind": "working-set", "value": 8}, {}, HITS),
        ({"kind": "concurrency", "value": 8}, OF_ADAPTERS, ADAPTERS),
        ({"kind": "concurrency", "value": 8}, OF_IMAGES, IMAGES),
    ],
)
def test_the_page_gives_what_the_terminal_gives_beyond_the_verdicts(load, changes, about):
    found = summary(cell("vllm", load=load, **changes), cell("sglang", load=load, **changes))
    said = dict(claims(found, groups(found)[0]))[about]
    assert text(f"{capital(about)}: {said}.") in page_of(found)


def test_the_page_names_the_knee_of_working_sets():
    load = {"kind": "working-set", "value": 8}
    found = summary(cell("vllm", load=load), cell("sglang", load=load), knees=[KNEE])
    lines = list(knee_lines(found))
    assert lines
    assert all(text(line) in page_of(found) for line in lines)


def test_names_in_a_caption_keep_their_letters():
    load = {"kind": "working-set", "value": 8}
    found = summary(cell("vllm", load=load), cell("sglang", load=load))
    assert "Working set of 8 times the KV cache" in page_of(found)


def test_the_sentence_of_one_backend_names_its_load():
    loads = [{"kind": "concurrency", "value": users} for users in (1, 4, 8)]
    page = page_of(summary(*(cell("vllm", load=load) for load in loads)))
    assert "<p><strong>Closed loop, concurrency 8.</strong> vllm: first token after" in page


def test_what_stands_in_the_brackets_of_a_bar_is_named():
    rules = {"primary": "ttft_ms.p50", "metrics": ["ttft_ms.p50"]}
    cells = [cell(label, repeat=repeat, p50=10.0 + repeat) for repeat in (0, 1) for label in ("a", "b")]
    several, once = (page_of(summary(*part, verdict_rules=rules)) for part in (cells, cells[:2]))
    assert ", median and range of TTFT p50, lowest first" in several
    assert ">10.5 ms (10.0 to 11.0)<" in several
    assert ", median TTFT p50, lowest first" in once


UNKNOWN = {"ttft_ms": {"mean": None, "p50": None, "p90": None, "p95": None, "p99": None}}


RIVALS = {"a": (10.0, {}), "b": (90.0, {}), "c": (20.0, UNKNOWN)}


@pytest.mark.parametrize(
    ("labels", "said", "coloured"),
    [
        ("ab", "a 8.91× faster (8.7 to 9.13)", True),
        ("abc", "a 10.1 ms, better than b, not separated from c", False),
    ],
)
def test_the_colour_is_of_a_backend_that_is_separated_from_every_other(labels, said, coloured):
    cells = [
        cell(label, repeat=repeat, p50=RIVALS[label][0] + repeat / 9, state="saturated",
             started_unix_ns=repeat, workload_sha256=str(repeat), **RIVALS[label][1])
        for repeat in range(3) for label in labels
    ]  # fmt: skip
    page = page_of(summary(*cells, **compare(cells, Rules("ttft_ms.p50", ("ttft_ms.p50",)))._asdict()))
    assert (f'<span class="ahead k0">{said}</span>' if coloured else f"<span>{said}</span>") in page


@pytest.mark.parametrize(
    ("values", "widths"), [((-12.0, 40.0), ["0.0", "100.0"]), ((-12.0, -4.0), ["0.0", "0.0"])]
)
def test_no_bar_is_drawn_for_less_than_nothing(values, widths):
    cells = [cell(label, image_ms=value) for label, value in zip("ab", values, strict=True)]
    page = page_of(summary(*cells, **compare(cells, Rules("image_ms", ("image_ms",)))._asdict()))
    assert re.findall(r"width: ([^%]+)%", page) == widths


def test_a_search_shows_the_latency_that_has_the_limit_and_begins_with_what_was_decided():
    """Its first picture was throughput against TTFT p50, of which the limit says nothing."""
    limits = [{"metric": "ttft_ms", "share": "p95", "limit_ms": 100.0}]
    cells = [
        cell(label, load={"kind": "concurrency", "value": users}, ttft_ms={"p50": 9.0, "p95": p95},
             slo={"attainment": 1.0, "limits": limits})
        for label in "ab" for users, p95 in ((4, 50.0), (8, 90.0))
    ]  # fmt: skip
    answers = [
        {"label": label, "kind": "concurrency", "value": value, "interval": [value, value, value + 1],
         "kept_by_search": [value], "searches": 3, "highest": 64}
        for label, value in (("a", 8), ("b", 4))
    ]  # fmt: skip
    pair = {"a": "a", "b": "b", "verdict": "more", "ratio": [1.6, 2.0, 2.25]}
    found = summary(*cells, capacity=answers, capacity_pairs=[pair])
    page = answer(Source(found, None, {}, list(charts(found, {})), (), {}, {}, ()))
    assert re.search(r"<figcaption><b>(.*?)</b>", page)[1] == (
        "Time to first token p95 against concurrency (closed loop)"
    )
    strong = re.findall(r"<p><strong>(.*?)</strong></p>", page)
    assert strong[0] == "a carries more than b: 2 times the load (1.6 to 2.25)"
    assert strong[1].startswith("Within TTFT p95 ≤ 100 ms, a serves 8 users at once")
    assert "64 of them, divided evenly, take 16 such servers" in strong[2]
    assert '<p class="muted small">Capacity a: 8 users keep the limits' in page
