import pytest

from harness.report.tables.engines import replica_tables
from tests.factories.summaries import cell, summary

URLS = [
    {"url": f"http://box:{port}", "requests": 30, "ok": 30, "failed": 0, "share": 0.5,
     "ttft_ms": {"p50": 50.0}, "tpot_ms": {"p50": 10.0}, "e2e_ms": {"p50": 350.0 + port},
     "output_tokens_per_s": 80.0}
    for port in (1, 2)
]  # fmt: skip


def table_of(api, **more):
    by_url = {"balance": "round-robin", "fairness": 0.98, "urls": URLS}
    (table,) = replica_tables(summary(cell(replicas=by_url, conditions={"api": api}, **more)))
    return table


def test_text_has_first_tokens_and_a_rate_by_url():
    table = table_of("chat")
    assert table.title.endswith("by URL, round-robin; fairness 0.980 (Jain's index of output tok/s)")
    assert table.rows[0] == [
        "http://box:1", "30", "50.0", "0", "50.0", "n/a", "10.0", "351", "n/a", "80.0"
    ]  # fmt: skip
    assert {len(row) for row in table.rows} == {len(table.head)}


@pytest.mark.parametrize("api", ["transcriptions", "embeddings", "rerank"])
def test_answers_that_come_whole_have_their_time_alone(api):
    table = table_of(api)
    assert table.title.endswith("by URL, round-robin")
    assert table.head[-1] == "E2E p50 ms"
    assert table.rows == [[f"http://box:{port}", "30", "50.0", "0", str(350 + port)] for port in (1, 2)]


@pytest.mark.parametrize("api", ["chat", "transcriptions"])
def test_an_invalid_cell_has_counts_only(api):
    table = table_of(api, validity={"verdict": "INVALID", "reasons": []})
    assert {figure for row in table.rows for figure in row[4:]} == {"n/a"}
