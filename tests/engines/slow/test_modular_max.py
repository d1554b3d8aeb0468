"""Modular MAX on a CPU, really run: it compiles for minutes the first time."""

import pytest

from tests.engines.runs import cells_of

pytestmark = pytest.mark.engine

NAME = "modular-max"


def test_it_answers_every_request_and_its_definition_holds(tmp_path):
    small = ("--concurrency", "2", "--requests", "4", "--input-tokens", "32", "--output-tokens", "8")
    folder, cells = cells_of(tmp_path, "fixed-length", [NAME], *small, "--set", "load.warmup_requests=1")
    cell = cells[NAME]
    assert cell["requests"]["ok"] == 4
    assert cell["output_tokens"]["total"] == 4 * 8
    assert cell["engine_version"]
    server = cell["server"]  # its metrics have a port of their own, and are in milliseconds
    assert server["output_tokens"] == (4 + 2) * 8  # one wave warms up
    assert server["histograms"]["ttft_ms"]["count"] == 4 + 2
    assert server["histograms"]["ttft_ms"]["mean"] == pytest.approx(cell["ttft_ms"]["mean"], rel=0.3)
    findings = folder.read_json(f"probe-{NAME}.json")["findings"]
    assert [finding for finding in findings if finding["holds"] is False] == []
    held = {finding["topic"] for finding in findings if finding["holds"]}
    assert {"exactly 32 tokens", "unknown field", "cache reset"} <= held
