"""Answers that think, from the wire to every view, against servers of known times."""

import pyarrow.parquet as parquet
import pytest

from harness.store import RunFolder
from tests.integration.scripted import bench, define, run_folder, summary

TTFT, GAP, TOKENS, THOUGHTS = 100, 10, 12, 5
RUN = (
    *("run", "--scenario", "fixed-length", "--backends", "thinks", "--no-probe", "--price-per-hour", "2"),
    *("--requests", "16", "--concurrency", "2", "--output-tokens", str(TOKENS)),
)
MEASURED = (0, 4)  # how late this machine's client may be is not what is tested here


def run(here, *habits, api="chat"):
    file = define("thinks", "--reasoning-tokens", str(THOUGHTS), *habits, ttft_ms=TTFT, gap_ms=GAP)
    if api != "chat":
        file.write_text(
            file.read_text().replace("[prefix_cache]", f"[dialect.apis.{api}]\n[prefix_cache]", 1)
        )
    done = bench(*RUN, "--api", api, code=MEASURED)
    (cell,) = summary()["cells"]
    return done, cell


@pytest.mark.time
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_both_beginnings_are_known_in_each_api(here, api):
    done, cell = run(here, "--counts-reasoning", api=api)
    assert cell["ttft_ms"]["p50"] == cell["ttft_reasoning_ms"]["p50"]
    assert cell["ttft_reasoning_ms"]["p50"] == pytest.approx(TTFT, abs=20)
    assert cell["ttft_answer_ms"]["p50"] == pytest.approx(TTFT + THOUGHTS * GAP, abs=20)
    assert "TTFT answer" in done.stdout
    (folder,) = RunFolder(run_folder()).cells()
    columns = parquet.read_table(run_folder() / "cells" / folder / "requests.parquet").to_pydict()
    assert all(a < b for a, b in zip(columns["first_reasoning_ns"], columns["first_answer_ns"], strict=True))
    assert columns["first_text_ns"] == columns["first_reasoning_ns"]
    page = (run_folder() / "report.html").read_text()
    assert "TTFT answer" in page
    counted = api != "messages"  # it has no count of its own for reasoning
    assert set(columns["reasoning_tokens"]) == {THOUGHTS if counted else None}
    if counted:
        whole, thought, said = (cell[f"{name}_tokens_per_s"] for name in ("output", "reasoning", "answer"))
        assert thought / whole == pytest.approx(THOUGHTS / TOKENS)
        assert thought + said == pytest.approx(whole)
        cost = cell["cost"]
        ratio = cost["per_million_answer_tokens"] / cost["per_million_output_tokens"]
        assert ratio == pytest.approx(TOKENS / (TOKENS - THOUGHTS))
    else:
        assert cell["answer_tokens_per_s"] is None
        assert "does not count reasoning" in cell["null_reasons"]["answer_tokens_per_s"]


@pytest.mark.time
def test_a_server_that_does_not_count_reasoning_leaves_it_unknown(here):
    _, cell = run(here)
    assert cell["ttft_answer_ms"]["p50"] == pytest.approx(TTFT + THOUGHTS * GAP, abs=20)
    assert cell["reasoning_tokens_per_s"] is None
    assert cell["null_reasons"]["reasoning_tokens_per_s"] == "the server does not count reasoning tokens"
    assert cell["cost"]["per_million_answer_tokens"] is None


@pytest.mark.time
def test_an_answer_that_thinks_to_its_end_never_begins(here):
    _, cell = run(here, "--counts-reasoning", "--reasoning-tokens", str(TOKENS))
    assert cell["ttft_reasoning_ms"]["p50"] == pytest.approx(TTFT, abs=20)
    assert cell["ttft_answer_ms"]["p50"] is None
    assert cell["answer_tokens_per_s"] == pytest.approx(0)


def test_without_reasoning_nothing_is_shown_twice(here):
    define("thinks", ttft_ms=TTFT, gap_ms=GAP)
    done = bench(*RUN, code=MEASURED)
    (cell,) = summary()["cells"]
    assert cell["ttft_answer_ms"] is None
    assert cell["null_reasons"]["ttft_answer_ms"] == "no answer has reasoning text"
    assert "TTFT answer" not in done.stdout
