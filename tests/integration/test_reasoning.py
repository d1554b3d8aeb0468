"""Answers that think, from the wire to every view, against servers of known times."""

import pyarrow.parquet as parquet
import pytest

from harness.store import RunFolder
from tests.integration.conftest import inside
from tests.integration.scripted import MEASURED, bench, bench_in, define, only_cell, run_folder

TTFT, GAP, TOKENS, THOUGHTS = 100, 10, 12, 5
THINKS, SILENT, ENDLESS = "thinks", "silent", "endless"
APIS = {"chat": THINKS, "responses": f"{THINKS}@responses", "messages": f"{THINKS}@messages"}
RUN = (
    *("run", "--scenario", "fixed-length", "--no-probe", "--price-per-hour", "2", "--repeats", "1"),
    *("--requests", "8", "--concurrency", "4", "--output-tokens", str(TOKENS)),
    *("--set", "verdict.cool_down_s=0", "--set", "load.min_answers=8"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """(run folder, what was printed) of servers that count thoughts, do not, or only think."""
    with inside(tmp_path_factory.mktemp("reasoning")) as here:
        habits = ("--reasoning-tokens", str(THOUGHTS))
        file = define(THINKS, *habits, "--counts-reasoning", ttft_ms=TTFT, gap_ms=GAP)
        tables = "".join(f"[dialect.apis.{api}]\n" for api in APIS if api != "chat")
        file.write_text(file.read_text().replace("[prefix_cache]", f"{tables}[prefix_cache]", 1))
        define(SILENT, *habits, ttft_ms=TTFT, gap_ms=GAP)
        define(ENDLESS, "--counts-reasoning", "--reasoning-tokens", str(TOKENS), ttft_ms=TTFT, gap_ms=GAP)
        backends = ",".join([*APIS.values(), SILENT, ENDLESS])
        done = bench_in(here, *RUN, "--backends", backends, code=MEASURED)
        return RunFolder(run_folder().absolute()), done.stdout


def cell_of(run, label):
    (cell,) = [one for one in run[0].read_json("summary.json")["cells"] if one["label"] == label]
    return cell


@pytest.mark.time
@pytest.mark.parametrize("api", APIS)
def test_both_beginnings_are_known_in_each_api(run, api):
    cell = cell_of(run, APIS[api])
    assert cell["ttft_ms"]["p50"] == cell["ttft_reasoning_ms"]["p50"]
    assert cell["ttft_reasoning_ms"]["p50"] == pytest.approx(TTFT, abs=20)
    assert cell["ttft_answer_ms"]["p50"] == pytest.approx(TTFT + THOUGHTS * GAP, abs=20)
    columns = parquet.read_table(run[0].path / "cells" / cell["cell"] / "requests.parquet").to_pydict()
    assert all(a < b for a, b in zip(columns["first_reasoning_ns"], columns["first_answer_ns"], strict=True))
    assert columns["first_text_ns"] == columns["first_reasoning_ns"]
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
def test_the_answers_beginning_has_its_column_in_every_view(run):
    assert "TTFT answer" in run[1]
    assert "TTFT answer" in (run[0].path / "report.html").read_text()


@pytest.mark.time
def test_a_server_that_does_not_count_reasoning_leaves_it_unknown(run):
    cell = cell_of(run, SILENT)
    assert cell["ttft_answer_ms"]["p50"] == pytest.approx(TTFT + THOUGHTS * GAP, abs=20)
    assert cell["reasoning_tokens_per_s"] is None
    assert cell["null_reasons"]["reasoning_tokens_per_s"] == "the server does not count reasoning tokens"
    assert cell["cost"]["per_million_answer_tokens"] is None


@pytest.mark.time
def test_an_answer_that_thinks_to_its_end_never_begins(run):
    cell = cell_of(run, ENDLESS)
    assert cell["ttft_reasoning_ms"]["p50"] == pytest.approx(TTFT, abs=20)
    assert cell["ttft_answer_ms"]["p50"] is None
    assert cell["answer_tokens_per_s"] == pytest.approx(0)


def test_without_reasoning_nothing_is_shown_twice(here):
    define("plain", ttft_ms=TTFT, gap_ms=GAP)
    done = bench(*RUN, "--backends", "plain", "--no-report", code=MEASURED)
    cell = only_cell()
    assert cell["ttft_answer_ms"] is None
    assert cell["null_reasons"]["ttft_answer_ms"] == "no answer has reasoning text"
    assert "TTFT answer" not in done.stdout
